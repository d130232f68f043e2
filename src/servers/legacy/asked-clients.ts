/** The connected clients that a legacy server may ask beside their calls, by the session with the server that is theirs. */
import type { AskedClient } from '../../mcp/protocol/call.js'

export interface AskedClientsOptions {
  /** The key of the session in which the server may ask a client; undefined if there is none. */
  keyOf(client: AskedClient): string | undefined
  /** Called when a client of this session has connected. */
  onConnected(): void
}

export class AskedClients {
  readonly #options: AskedClientsOptions
  readonly #clients = new Map<string, Set<AskedClient>>()

  constructor(options: AskedClientsOptions) {
    this.#options = options
  }

  /** Adds a connected client. The returned function removes it. */
  enter(client: AskedClient): () => void {
    const key = this.#options.keyOf(client)
    if (key === undefined) return () => {}
    const clients = this.#clients.get(key) ?? new Set()
    clients.add(client)
    this.#clients.set(key, clients)
    this.#options.onConnected()
    return () => {
      clients.delete(client)
      if (clients.size === 0 && this.#clients.get(key) === clients) this.#clients.delete(key)
    }
  }

  /** The client of a session that connected last; undefined without one. */
  newestOf(key: string | undefined): AskedClient | undefined {
    const clients = key === undefined ? undefined : this.#clients.get(key)
    return clients && [...clients].findLast(({ isGone }) => !isGone)
  }
}
