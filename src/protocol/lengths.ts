/** How long texts may be that peers send and that are kept, or become headers or keys: in characters. */

/** What a client says of itself: its capabilities, and its name with all that belongs to it. */
export const MAX_CAPABILITIES = 64 * 1024
/** A name of a tool or prompt that is kept. Longer ones are carried, and not kept. */
export const MAX_NAME = 1_024
/** An address that somebody subscribes to; all of one subscription, or of one session; and a subscription as a whole. */
export const MAX_ADDRESS = 2_048
export const MAX_ADDRESSES = 64 * 1024
export const MAX_SUBSCRIPTION = 128 * 1024
/** Headers of one request to a server that say what the request is about. HTTP servers take 16 KiB of headers in all. */
export const MAX_HEADERS = 14 * 1024
