/** Ends what stays open for ever when the bridge is stopped: with a result, so that clients know that nothing broke. */
import type { Policy, Reply } from '../protocol/call.js'
import { methodTraits } from '../protocol/methods.js'
import { EMPTY } from '../rpc/splice.js'

export function endings(stopping: AbortSignal): Policy {
  return (next) =>
    async function* endedCall(call) {
      if (!methodTraits(call.method).endless) return yield* next(call)
      // Not the caller's own signal: whoever has had the last reply has not gone away.
      const over = new AbortController()
      const signal = AbortSignal.any([call.signal, over.signal])
      const replies = next({ ...call, signal })[Symbol.asyncIterator]()
      let stop = () => {}
      const stopped = new Promise<undefined>((resolve) => {
        stop = () => resolve(undefined)
        stopping.addEventListener('abort', stop, { once: true })
        if (stopping.aborted) stop()
      })
      try {
        for (;;) {
          const arriving = replies.next()
          arriving.catch(() => {})
          const arrived = await Promise.race([arriving, stopped])
          if (arrived === undefined) {
            yield { kind: 'result', result: EMPTY } satisfies Reply
            return
          }
          if (arrived.done) return
          yield arrived.value
        }
      } finally {
        stopping.removeEventListener('abort', stop)
        over.abort()
        replies.return?.()?.catch(() => {})
      }
    }
}
