/** Follows a call through its server: continues with the other half if the server turns out to be of the other era. */
import { OwnedByReplica } from '../ports/replicas.js'
import type { Call, Final, UpstreamSpan } from '../protocol/call.js'
import { Fault } from '../protocol/fault.js'
import { Contradiction } from './failure.js'

/** Answers a call in the other era, after a Contradiction: nothing has been done for the call yet. */
export type InOtherEra = (call: Call, why: Contradiction) => Promise<Final>

/**
 * Returns the answer of a half. If that rejects with a Contradiction, the answer of `otherEra`. Ends `span` with it, the
 * time that the call spends at the server.
 */
export async function inEitherEra(
  call: Call,
  answering: Promise<Final>,
  otherEra: InOtherEra,
  span?: UpstreamSpan,
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
