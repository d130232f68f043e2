/** Borrows memory for the events of one answer while they wait to be written. */
import type { FastifyReply } from 'fastify'
import { Fault } from '../../protocol/fault.js'
import { type Loan, type Memory, SMALL } from '../../protocol/memory.js'
import type { Id } from '../../rpc/message.js'
import { lengthOf, type Wire } from '../../rpc/source.js'
import { answerLost, type Frame } from '../frames.js'
import { whenOver } from './replies.js'

/** The bytes of one answer that wait to be written. */
export class Outgoing {
  readonly #raw: FastifyReply['raw']
  readonly #loan: Loan
  readonly #id: Id

  constructor(reply: FastifyReply, memory: Memory, id: Id) {
    this.#raw = reply.raw
    this.#loan = memory.borrow(reply.request.principal, SMALL)
    this.#id = id
    whenOver(reply, () => this.#loan.end())
  }

  /** Returns the memory of bytes that have been written. */
  settle(): void {
    this.#loan.hold(this.#raw.writableLength)
  }

  /**
   * Borrows memory for a message, in addition to what waits already. Returns the message. If there is no memory,
   * returns an error in place of an answer, and throws a Fault for any other message.
   */
  lend({ text, last }: Frame): Wire {
    if (this.#loan.hold(this.#raw.writableLength + lengthOf(text)) === undefined) return text
    if (last) return answerLost(this.#id)
    throw new Fault(
      'answerLost',
      'The client reads its answer too slowly, and the bridge has no memory left to keep it (limits.memory)',
    )
  }
}
