/**
 * Sends messages that get no answer (notifications, and answers to the server) over HTTP. The bounds on calls do not limit
 * them, so their bytes are reserved.
 */
import { type Memory, NOBODY, type Reservation, SMALL } from '../base/limits/memory.js'
import { ChannelError, type OutgoingMessage } from './transport/channel.js'

export class OneWaySender {
  readonly #reservation: Reservation
  #bytes = 0

  constructor(memory: Memory) {
    this.#reservation = memory.reserve(NOBODY, SMALL)
  }

  /**
   * Sends a message, and reserves its size until it is sent. Rejects with a ChannelError if there is no memory.
   */
  async send({ text, bytes }: OutgoingMessage, send: () => Promise<void>): Promise<void> {
    const { length } = bytes ?? text
    if (this.#reservation.resize(this.#bytes + length))
      throw new ChannelError('The server accepts notifications too slowly, and no memory is left for more', {
        delivered: 'no',
      })
    this.#bytes += length
    try {
      await send()
    } finally {
      this.#bytes -= length
      this.#reservation.resize(this.#bytes)
    }
  }
}
