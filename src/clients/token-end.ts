/** Ends calls when the token of their request does: what its caller may do is unknown from then on. */
import type { HangUp, Signal } from '../base/time/hang-up.js'

/** Aborts a call when the token ends. The returned function is to be called when the call has ended. */
export function endWith(ends: Signal, call: HangUp): () => void {
  const end = () => call.abort(ends.reason)
  if (ends.aborted) end()
  else ends.addEventListener('abort', end)
  return () => ends.removeEventListener('abort', end)
}
