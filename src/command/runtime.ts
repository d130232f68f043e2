/** Known problems of the Node.js that runs the bridge. */

/** The first patch of each line that keeps all headers of a request. */
const MENDED: Readonly<Record<number, readonly [minor: number, patch: number]>> = {
  22: [23, 2],
  24: [18, 1],
  26: [5, 1],
}

/**
 * Whether this Node.js should be updated to a newer patch of its line, because it drops headers of a request past the
 * 1,000th (CVE-2026-58044). Node 20 has no such patch. The bridge itself refuses requests with over 100 headers.
 */
export function losesHeaders(version: string): boolean {
  const [major = 0, minor = 0, patch = 0] = version.split('.').map(Number)
  if (major < 22 || major > 26) return false
  const mended = MENDED[major]
  return mended === undefined || minor < mended[0] || (minor === mended[0] && patch < mended[1])
}
