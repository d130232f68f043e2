/** Calls that a server has accepted without an answer (HTTP 202): their answers come on the stream for its own messages. */
import type { ChannelError, Receiver } from './channel.js'

interface Waiting {
  resolve(): void
  reject(error: ChannelError): void
}

export class AcceptedCalls {
  /** By exchange. Those that have been answered stay until the next call is accepted. */
  readonly #waiting = new Map<number, Waiting>()

  /** Resolves when the answer is not awaited any more. Rejects if it cannot arrive. */
  wait(exchange: number, receiver: Pick<Receiver, 'isWaiting'>): Promise<void> {
    for (const other of [...this.#waiting.keys()]) if (!receiver.isWaiting(other)) this.forget(other)
    return new Promise((resolve, reject) => this.#waiting.set(exchange, { resolve, reject }))
  }

  forget(exchange: number): void {
    this.#waiting.get(exchange)?.resolve()
    this.#waiting.delete(exchange)
  }

  /** The answers cannot arrive any more. */
  fail(error: ChannelError): void {
    for (const { reject } of this.#waiting.values()) reject(error)
    this.#waiting.clear()
  }
}
