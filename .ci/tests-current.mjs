/** The test of the file that a process runs (tests-worker.mjs): what its modules import from tap by default (tests-bundle.mjs). */
export const current = { test: undefined }
