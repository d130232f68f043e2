/**
 * Sends messages without an answer (notifications and answers to the server) over HTTP. No bound on calls limits them,
 * so their bytes are borrowed.
 */
import { type Loan, type Memory, NOBODY, SMALL } from '../limits/memory.js'
import { ChannelError, type OutgoingMessage } from './transport/channel.js'

export class OneWaySender {
  readonly #loan: Loan
  #bytes = 0

  constructor(memory: Memory) {
    this.#loan = memory.borrow(NOBODY, SMALL)
  }

  /**
   * Sends a message, and borrows its size until that has settled. Rejects with a ChannelError if there is no memory.
   */
  async send({ text }: OutgoingMessage, send: () => Promise<void>): Promise<void> {
    if (this.#loan.hold(this.#bytes + text.length))
      throw new ChannelError('The server accepts notifications too slowly, and no memory is left for more', {
        delivered: 'no',
      })
    this.#bytes += text.length
    try {
      await send()
    } finally {
      this.#bytes -= text.length
      this.#loan.hold(this.#bytes)
    }
  }
}
