/**
 * The memory of messages that get no answer (notifications, and answers to the server) while they are sent over HTTP: the bounds on
 * calls do not limit them.
 */
import { type Memory, NOBODY, type Reservation, SMALL } from '../base/limits/memory.js'
import { ChannelError, type OutgoingMessage } from './transport/channel.js'

export class OneWayMemory {
  readonly #reservation: Reservation
  #bytes = 0

  constructor(memory: Memory) {
    this.#reservation = memory.reserve(NOBODY, SMALL)
  }

  /** Reserves the size of a message until the returned function is called. Throws a ChannelError if there is no memory. */
  hold({ text, bytes }: OutgoingMessage): () => void {
    const { length } = bytes ?? text
    if (this.#reservation.resize(this.#bytes + length))
      throw new ChannelError('The server accepts notifications too slowly, and no memory is left for more', {
        delivered: 'no',
      })
    this.#bytes += length
    return () => {
      this.#bytes -= length
      this.#reservation.resize(this.#bytes)
    }
  }
}
