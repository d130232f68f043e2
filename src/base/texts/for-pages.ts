/** Headers for web pages of other origins. */

/** Of a document that all of them may read. */
export const FOR_PAGES = { 'access-control-allow-origin': '*' } as const

/** For browsers that ask whether a page may read it: clients add `MCP-Protocol-Version` to their requests. */
export const PREFLIGHT = {
  ...FOR_PAGES,
  'access-control-allow-methods': 'GET, HEAD',
  'access-control-allow-headers': '*, authorization',
  'access-control-max-age': '600',
} as const
