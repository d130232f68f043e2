/**
 * Where a call goes over to its server and comes back: its log is told, and its trace goes with it. A half that finds the
 * server to be of the other era is replaced by the other half.
 */
import { OwnedByReplica } from '../ports/replicas.js'
import type { Call, Handler, Reply, UpstreamSpan } from '../protocol/call.js'
import { Fault } from '../protocol/fault.js'
import { withTrace } from '../protocol/trace.js'
import { Contradiction } from './failure.js'

/** Answers a call for which the half of one era has done nothing. */
export type InOtherEra = (call: Call, why: Contradiction) => AsyncIterable<Reply>

/**
 * A handler whose calls are followed to their last reply. Where `next` throws a Contradiction, `otherEra` goes on with the
 * call.
 */
export function handedOver(next: Handler, otherEra: InOtherEra): Handler {
  return (call) => {
    const span = call.log.handedOver?.()
    const traced = span?.trace ? { ...call, meta: withTrace(call.meta, span.trace) } : call
    return new Followed(traced, next(traced), span, otherEra)
  }
}

/** The replies of a half, or where it throws a Contradiction, from then on those of `otherEra`. */
export function inEitherEra(call: Call, replies: AsyncIterable<Reply>, otherEra: InOtherEra): AsyncIterable<Reply> {
  return new Followed(call, replies, undefined, otherEra)
}

/** Replies that somebody looks at as they pass. No generator, because each one costs on every reply. */
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
