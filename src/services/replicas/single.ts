/** A connection to Redis by one client of the library @redis/client, which is replaced when it fails. */
import type { Channels, Keys, RedisConnection } from './connection.js'
import { Replaced } from './replaced.js'

/** The client of the library for one Redis, or for the primary of Sentinels. */
export interface SingleClient extends Keys {
  readonly isReady: boolean
  connect(): Promise<unknown>
  destroy(): unknown
  on(event: string, listener: (error: Error) => void): unknown
  ping(): Promise<unknown>
  publish(channel: string, message: Buffer): Promise<number>
  subscribe(channel: string, listener: (message: Buffer) => void, buffers: true): Promise<void>
  configGet(name: string): Promise<Record<string, string | undefined>>
  info(section: string): Promise<string>
}

/** Which client, and what it hears. */
export interface SingleOptions {
  make(): SingleClient
  /** Without it, the client connects again by itself. */
  failure?: 'error'
  channels?: Channels
}

/** The connection. It is ready only if Redis answers and all channels are heard. */
export class Single implements RedisConnection {
  readonly #client: Replaced<SingleClient>

  constructor({ channels = new Map(), ...making }: SingleOptions) {
    const prepare = async (client: SingleClient) => {
      // An error reply here, such as LOADING or NOAUTH, is the reason why Redis cannot be used.
      await client.ping()
      for (const [channel, listener] of channels) await client.subscribe(channel, listener, true)
    }
    this.#client = new Replaced({ ...making, prepare })
  }

  get isReady(): boolean {
    return this.#client.client?.isReady === true
  }

  connect(): Promise<unknown> {
    return this.#client.connect()
  }

  anew(): void {
    this.#client.anew()
  }

  destroy(): void {
    this.#client.destroy()
  }

  on(event: 'error' | 'ready', listener: (error: Error) => void): void {
    this.#client.on(event, listener)
  }

  publish(channel: string, message: Buffer): Promise<number> {
    return this.#client.use((client) => client.publish(channel, message))
  }

  async policy(): Promise<string | undefined> {
    const configured = this.#client.use((client) => client.configGet('maxmemory-policy'))
    const policy = (await configured.catch(() => undefined))?.['maxmemory-policy']
    if (policy !== undefined) return policy
    // Managed services refuse CONFIG, or answer it with nothing.
    const memory = await this.#client.use((client) => client.info('memory')).catch(() => '')
    return /^maxmemory_policy:(\S+)/m.exec(memory)?.[1]
  }

  withKeys<T>(run: (keys: Keys) => Promise<T>): Promise<T> {
    return this.#client.use(run)
  }
}
