/**
 * Decodes answers that are compressed although the request does not allow it, as direct clients do (undici). The readers
 * behind it count decoded bytes and apply backpressure, so that a few compressed bytes cannot fill the memory.
 */
import type { Dispatcher, interceptors } from 'undici'

/** Statuses of answers without a body, whatever their headers say. The body of 202 is not used. */
const WITHOUT_BODY = [202, 204, 205, 304]
/** Error codes of zlib, Brotli and Zstandard. */
const CANNOT_DECODE = /^(?:Z_|ERR__ERROR|ERR_BROTLI|ZSTD_)/

/** Makes a dispatcher decode the answers. Those in an unknown encoding stay as they are. */
export function decoding(decompress: typeof interceptors.decompress): Dispatcher.DispatcherComposeInterceptor {
  const decode = decompress({ skipErrorResponses: false, skipStatusCodes: WITHOUT_BODY })
  return (dispatch) => {
    const decoded = decode(dispatch)
    return (options, handler) => (options.method === 'HEAD' ? dispatch : decoded)(options, handler)
  }
}

/** Whether an error means that an answer is not what its `Content-Encoding` says. */
export function isUndecodable(error: Error): boolean {
  return 'code' in error && CANNOT_DECODE.test(String(error.code))
}
