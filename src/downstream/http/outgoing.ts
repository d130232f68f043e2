/** What waits to be written of the events that answer one request: lent by the ledger, as far as it is not small. */
import type { FastifyReply } from 'fastify'
import { Fault } from '../../protocol/fault.js'
import { type Loan, type Memory, SMALL } from '../../protocol/memory.js'
import type { Id } from '../../rpc/message.js'
import { lengthOf, type Wire } from '../../rpc/source.js'
import { answerLost, type Frame } from '../frames.js'
import { whenOver } from './replies.js'

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

  /** Gives back what has been written meanwhile. */
  settle(): void {
    this.#loan.hold(this.#raw.writableLength)
  }

  /**
   * Borrows for a message that is to be written, beside what waits already. Gives the message; or in place of an answer that
   * there is no memory for, an error that says so. Throws a Fault where it is something else.
   */
  lend({ text, last }: Frame): Wire {
    if (this.#loan.hold(this.#raw.writableLength + lengthOf(text)) === undefined) return text
    if (last) return answerLost(this.#id)
    throw new Fault('answerLost', 'The client does not read what it is sent, and there is no memory to keep it')
  }
}
