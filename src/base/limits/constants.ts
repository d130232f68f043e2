/**
 * The bounds that several rooms share and no option changes, such as lengths of names and URIs, pages of lists, unread
 * notifications and rounds of questions. Lengths are in characters.
 */

/** A client's capabilities, and its clientInfo: each. */
export const MAX_CAPABILITIES = 64 * 1024
/** A name of a tool or prompt. Longer names are forwarded but not stored. */
export const MAX_NAME = 1_024
/** A name in the log or in the inspector. Longer ones are truncated. */
export const MAX_LOGGED_NAME = 120
/** One URI of a subscription; all URIs of one subscription or session; one subscription in total. */
export const MAX_ADDRESS = 2_048
export const MAX_ADDRESSES = 64 * 1024
export const MAX_SUBSCRIPTION = 128 * 1024
/** All headers of one request to a server that mirror the request. Node's HTTP servers take 16 KiB of headers in all. */
export const MAX_MIRRORED = 14 * 1024

/** Pages of one list that are read, compared or remembered. */
export const MAX_PAGES = 100
/** A cursor of a server in a group. Clients send the cursors of all servers back in one request. */
export const MAX_MEMBER_CURSOR = 16 * 1024
/** Milliseconds for which what a server listed is kept beyond a restart. */
export const MAX_KEPT_LISTS = 30 * 86_400_000
/** Bytes of one list that are read. */
export const MAX_LIST_BYTES = 16 * 1024 * 1024
/** Milliseconds for reading all pages of a list. */
export const MAX_LIST_TIME = 30_000
/** Tools of one server that are remembered, for one client or for all. */
export const MAX_TOOLS = 2_000
/** Resources and tasks in one subscription at a server. */
export const MAX_URIS = 256
/** Notifications that wait for one reader. */
export const MAX_UNREAD = 1_024
/** Rounds of questions in one call. */
export const MAX_ROUNDS = 16
