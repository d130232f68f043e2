/**
 * In the bundle of tests, this is what tap takes for async-hook-domain (tests-bundle.mjs), which hooks into every promise and
 * handle of the process. Files run one after the other, so the worker knows
 * whose test is running when an error is heard by nobody (tests-worker.mjs).
 */
export class Domain {
  constructor(onerror) {
    this.onerror = onerror
  }

  destroy() {}
}
