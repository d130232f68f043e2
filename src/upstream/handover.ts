/** Where a call goes over to its server and comes back: its log is told, and its trace goes with it. */

import { OwnedByReplica } from '../ports/replicas.js'
import type { Call, Handler, Reply, UpstreamSpan } from '../protocol/call.js'
import { Fault } from '../protocol/fault.js'
import { withTrace } from '../protocol/trace.js'

/** A handler whose calls are followed to their last reply, where their log wants to know. */
export function handedOver(next: Handler): Handler {
  return (call) => {
    const handOver = call.log.handedOver?.()
    if (!handOver) return next(call)
    const { trace } = handOver
    return new Followed(call, next(trace ? { ...call, meta: withTrace(call.meta, trace) } : call), handOver)
  }
}

/** Replies that somebody looks at as they pass. No generator, because each one costs on every reply. */
class Followed implements AsyncIterableIterator<Reply> {
  readonly #call: Call
  readonly #replies: AsyncIterator<Reply>
  readonly #handOver: UpstreamSpan

  constructor(call: Call, replies: AsyncIterable<Reply>, handOver: UpstreamSpan) {
    this.#call = call
    this.#replies = replies[Symbol.asyncIterator]()
    this.#handOver = handOver
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  async next(): Promise<IteratorResult<Reply>> {
    try {
      const next = await this.#replies.next()
      if (!next.done && next.value.kind !== 'notification') this.#handOver.over(next.value)
      return next
    } catch (error) {
      const { aborted, reason } = this.#call.signal
      const why = aborted ? reason : error
      const failed = why instanceof Fault || (!aborted && !(error instanceof OwnedByReplica))
      this.#handOver.over(failed ? Fault.from(why) : undefined)
      throw error
    }
  }

  async return(): Promise<IteratorResult<Reply>> {
    this.#handOver.over()
    return (await this.#replies.return?.()) ?? { done: true, value: undefined }
  }
}
