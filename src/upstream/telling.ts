/** What a channel over HTTP is telling a server without waiting for an answer. No call is counted for it, so its bytes are. */
import { type Loan, type Memory, NOBODY, SMALL } from '../protocol/memory.js'
import { ChannelError, type Outgoing } from './transport/channel.js'

export class Telling {
  readonly #loan: Loan
  #bytes = 0

  constructor(memory: Memory) {
    this.#loan = memory.borrow(NOBODY, SMALL)
  }

  /** Borrows for a message until the server has taken it. Rejects with a ChannelError where there is no memory for that. */
  async send({ text }: Outgoing, send: () => Promise<void>): Promise<void> {
    if (this.#loan.hold(this.#bytes + text.length))
      throw new ChannelError('The server does not take what it is told', { delivered: 'no' })
    this.#bytes += text.length
    try {
      await send()
    } finally {
      this.#bytes -= text.length
      this.#loan.hold(this.#bytes)
    }
  }
}
