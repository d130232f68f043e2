/**
 * Follows a call through its server: measures the server's time, passes the trace on, and continues with the other half
 * if the server turns out to be of the other era.
 */
import { OwnedByReplica } from '../ports/replicas.js'
import type { Call, Handler, Reply, UpstreamSpan } from '../protocol/call.js'
import { Fault } from '../protocol/fault.js'
import { withTrace } from '../protocol/trace.js'
import { Contradiction } from './failure.js'

/** Answers a call in the other era, after a Contradiction: nothing has been done for the call yet. */
export type InOtherEra = (call: Call, why: Contradiction) => AsyncIterable<Reply>

/**
 * Returns a handler that reports the beginning and the end of each call of `next` to the call's log. If `next` throws a
 * Contradiction, `otherEra` answers the call.
 */
export function handedOver(next: Handler, otherEra: InOtherEra): Handler {
  return (call) => {
    const span = call.log.handedOver?.()
    const traced = span?.trace ? { ...call, meta: withTrace(call.meta, span.trace) } : call
    return new Followed(traced, next(traced), span, otherEra)
  }
}

/** Returns the replies of a half. If it throws a Contradiction, those of `otherEra` follow. */
export function inEitherEra(call: Call, replies: AsyncIterable<Reply>, otherEra: InOtherEra): AsyncIterable<Reply> {
  return new Followed(call, replies, undefined, otherEra)
}

/** Observes replies as they pass. Not a generator, because each generator adds a cost to every reply. */
class Followed implements AsyncIterableIterator<Reply> {
  readonly #call: Call
  #replies: AsyncIterator<Reply>
  readonly #span: UpstreamSpan | undefined
  readonly #otherEra: InOtherEra

  constructor(call: Call, replies: AsyncIterable<Reply>, span: UpstreamSpan | undefined, otherEra: InOtherEra) {
    this.#call = call
    this.#replies = replies[Symbol.asyncIterator]()
    this.#span = span
    this.#otherEra = otherEra
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  async next(): Promise<IteratorResult<Reply>> {
    for (;;) {
      try {
        const next = await this.#replies.next()
        if (!next.done && next.value.kind !== 'notification') this.#span?.over(next.value)
        return next
      } catch (error) {
        if (!(error instanceof Contradiction)) throw this.#failed(error)
        this.#replies = this.#otherEra(this.#call, error)[Symbol.asyncIterator]()
      }
    }
  }

  async return(): Promise<IteratorResult<Reply>> {
    this.#span?.over()
    return (await this.#replies.return?.()) ?? { done: true, value: undefined }
  }

  #failed(error: unknown): unknown {
    const { aborted, reason } = this.#call.signal
    const why = aborted ? reason : error
    const failed = why instanceof Fault || (!aborted && !(error instanceof OwnedByReplica))
    this.#span?.over(failed ? Fault.from(why) : undefined)
    return error
  }
}
