/** Bounds, in characters, of texts from peers that are kept or become headers or keys. */

/** A client's capabilities, and its clientInfo: each. */
export const MAX_CAPABILITIES = 64 * 1024
/** A name of a tool or prompt. Longer names are forwarded but not kept. */
export const MAX_NAME = 1_024
/** One URI of a subscription; all URIs of one subscription or session; one subscription in total. */
export const MAX_ADDRESS = 2_048
export const MAX_ADDRESSES = 64 * 1024
export const MAX_SUBSCRIPTION = 128 * 1024
/**
 * All headers of one request to a server that mirror the request. Node's HTTP servers take 16 KiB of headers in all.
 */
export const MAX_HEADERS = 14 * 1024
