/** Replaces a client of the library @redis/client when it fails: the next one looks up the address again. */
import { ErrorReply } from '@redis/client'
import { backoff, pause } from '../../base/time/pause.js'
import { RECONNECT } from './connection.js'

/** The methods that all clients of the library have. */
interface LibraryClient {
  connect(): Promise<unknown>
  destroy(): unknown
  on(event: string, listener: (error: Error) => void): unknown
}

/** How to make a client. */
export interface Making<C> {
  make(): C
  /** The event of the library for a failed connection. Without one, the client connects again by itself, and says `error` and `ready`. */
  failure?: string
  /** Makes a connection ready for use. Rejects if it cannot be used. */
  prepare?(client: C): Promise<unknown>
}

/** The client in use, and its replacement. */
export class Replaced<C extends LibraryClient> {
  readonly #onError: ((error: Error) => void)[] = []
  readonly #onReady: (() => void)[] = []
  readonly #making: Making<C>
  readonly #destroyed = new AbortController()
  #failures = 0
  #connecting: C | undefined
  /** Undefined while there is no connection. */
  client: C | undefined

  constructor(making: Making<C>) {
    this.#making = making
  }

  /** Resolves when connected, or destroyed. */
  async connect(): Promise<void> {
    const { signal } = this.#destroyed
    while (!signal.aborted) {
      const client = this.#make()
      this.#connecting = client
      try {
        await client.connect()
        await this.#making.prepare?.(client)
        if (signal.aborted) return end(client)
        this.client = client
        this.#failures = 0
        for (const listener of this.#onReady) listener()
        return
      } catch (error) {
        end(client)
        this.#tell(error)
      } finally {
        this.#connecting = undefined
      }
      await pause(backoff(this.#failures++, RECONNECT), signal)
    }
  }

  /** Runs commands. Rejects without a connection, or when they fail. */
  async use<T>(run: (client: C) => Promise<T>): Promise<T> {
    const { client } = this
    if (!client) throw new Error('There is no connection to Redis')
    try {
      return await run(client)
    } catch (error) {
      if (!(error instanceof ErrorReply)) this.#replace(client, error)
      throw error
    }
  }

  /** Connects again. */
  anew(): void {
    if (this.client) this.#replace(this.client)
  }

  on(event: 'error' | 'ready', listener: (error: Error) => void): void {
    if (event === 'error') this.#onError.push(listener)
    else this.#onReady.push(listener as () => void)
  }

  destroy(): void {
    this.#destroyed.abort()
    for (const client of [this.client, this.#connecting]) if (client) end(client)
    this.client = undefined
  }

  #make(): C {
    const { make, failure } = this.#making
    const client = make()
    // Without a listener, the event would end the process.
    client.on('error', (error) => failure === undefined && this.#tell(error))
    if (failure !== undefined) client.on(failure, (error) => this.#replace(client, error))
    else client.on('ready', () => client === this.client && this.#onReady.forEach((listener) => void listener()))
    return client
  }

  #tell(reason: unknown): void {
    if (this.#destroyed.signal.aborted) return
    const error = reason instanceof Error ? reason : new Error(String(reason))
    for (const listener of this.#onError) listener(error)
  }

  #replace(client: C, error?: unknown): void {
    if (client !== this.client) return
    this.client = undefined
    end(client)
    if (error !== undefined) this.#tell(error)
    pause(RECONNECT.first, this.#destroyed.signal).then(
      () => this.connect(),
      () => {},
    )
  }
}

/** With Sentinels, `destroy` resolves only after the current attempt to connect. */
function end(client: LibraryClient): void {
  Promise.resolve(client.destroy()).catch(() => {})
}
