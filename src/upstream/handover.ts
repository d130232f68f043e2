/**
 * Follows a call through its server: measures the server's time, passes the trace on, and continues with the other half
 * if the server turns out to be of the other era.
 */
import { OwnedByReplica } from '../ports/replicas.js'
import type { Call, Final, Handler, UpstreamSpan } from '../protocol/call.js'
import { Fault } from '../protocol/fault.js'
import { withTrace } from '../protocol/trace.js'
import { Contradiction } from './failure.js'

/** Answers a call in the other era, after a Contradiction: nothing has been done for the call yet. */
export type InOtherEra = (call: Call, why: Contradiction) => Promise<Final>

/**
 * Returns a handler that reports the beginning and the end of each call of `next` to the call's log. If `next` rejects
 * with a Contradiction, `otherEra` answers the call.
 */
export function handedOver(next: Handler, otherEra: InOtherEra): Handler {
  return (call) => {
    const span = call.log.handedOver?.()
    const traced = span?.trace ? { ...call, meta: withTrace(call.meta, span.trace) } : call
    return followed(traced, next(traced), otherEra, span)
  }
}

/** Returns the answer of a half. If that rejects with a Contradiction, the answer of `otherEra`. */
export function inEitherEra(call: Call, answering: Promise<Final>, otherEra: InOtherEra): Promise<Final> {
  return followed(call, answering, otherEra, undefined)
}

async function followed(
  call: Call,
  answering: Promise<Final>,
  otherEra: InOtherEra,
  span: UpstreamSpan | undefined,
): Promise<Final> {
  for (let next = answering; ; ) {
    try {
      const last = await next
      span?.over(last)
      return last
    } catch (error) {
      if (!(error instanceof Contradiction)) {
        span?.over(endOf(call, error))
        throw error
      }
      next = otherEra(call, error)
    }
  }
}

/** What a failed call ends with in its trace: a Fault; undefined if nobody waits, or if another replica answers. */
function endOf({ signal: { aborted, reason } }: Call, error: unknown): Fault | undefined {
  const why: unknown = aborted ? reason : error
  const failed = why instanceof Fault || (!aborted && !(error instanceof OwnedByReplica))
  return failed ? Fault.from(why) : undefined
}
