/** Calls that a server has accepted with HTTP 202: their answers arrive on the stream for the server's own messages. */
import type { ChannelError, Receiver } from './channel.js'

interface Waiting {
  resolve(): void
  reject(error: ChannelError): void
}

export class AcceptedCalls {
  /** By exchange. Answered calls stay until the next one is accepted. */
  readonly #waiting = new Map<number, Waiting>()

  /** Resolves when the answer is no longer awaited. Rejects if it cannot arrive. */
  wait(exchange: number, receiver: Pick<Receiver, 'isWaiting'>): Promise<void> {
    for (const other of [...this.#waiting.keys()]) if (!receiver.isWaiting(other)) this.forget(other)
    return new Promise((resolve, reject) => this.#waiting.set(exchange, { resolve, reject }))
  }

  forget(exchange: number): void {
    this.#waiting.get(exchange)?.resolve()
    this.#waiting.delete(exchange)
  }

  /** Rejects all waiting calls, because their answers can no longer arrive. */
  fail(error: ChannelError): void {
    for (const { reject } of this.#waiting.values()) reject(error)
    this.#waiting.clear()
  }
}
