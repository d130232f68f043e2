/** Ends calls that take too long. Progress resets the idle timeout, but not the total timeout. */
import type { Policy, Told } from '../protocol/call.js'
import { Fault } from '../protocol/fault.js'
import { methodTraits } from '../protocol/methods.js'
import { Deadline } from '../time.js'

/** Time limits of a call. */
export interface Timeouts {
  /** Milliseconds without any reply. */
  idle: number
  /** Milliseconds in total. */
  total: number
}

/** Aborts a call with the fault `upstreamTimeout` when a limit is exceeded. */
export function timeout({ idle, total }: Timeouts): Policy {
  return (next) =>
    async function timedCall(call) {
      if (methodTraits(call.method).endless) return next(call)
      const started = performance.now()
      const giveUp = (why: string) => {
        const outcome = 'whether it acted on the call is unknown'
        call.abort(new Fault('upstreamTimeout', `The server ${why}; ${outcome}`))
      }
      const silence = new Deadline(idle, () => giveUp(`sent nothing for ${idle / 1000} s`))
      let overdue: NodeJS.Immediate | undefined
      const tell = (told: Told) => {
        // The answer may have arrived together with the notification.
        if (performance.now() - started > total)
          overdue ??= setImmediate(() => giveUp(`did not answer within ${total / 1000} s`))
        silence.refresh()
        return call.tell(told)
      }
      try {
        return await next({ ...call, tell })
      } finally {
        silence.clear()
        clearImmediate(overdue)
      }
    }
}
