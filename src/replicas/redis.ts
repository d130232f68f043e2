/**
 * The connections to Redis: one for commands, one for subscriptions. A command that takes too long counts as failed,
 * and after a failure no commands are sent for a moment.
 */
import type { Log } from '../logging.js'
import { within } from '../time.js'
import type { Client, RedisAddress } from './client.js'

type Library = typeof import('./client.js')

/** How to connect to Redis. */
export interface RedisOptions extends RedisAddress {
  /** Milliseconds that one command may take. */
  timeout: number
  log: RedisLog
}

/** Where the state of the connections is logged. */
export type RedisLog = Pick<Log, 'debug' | 'info' | 'warn'>

/** Redis is unreachable, or a command has failed. */
export class RedisAway extends Error {
  override name = 'RedisAway'
}

type Listener = (message: Buffer) => void

/** Milliseconds after a failure in which no commands are sent. */
const REST = 500
/** Milliseconds for which Redis must stay reachable before that is logged. */
const STEADY = 2_000
/** Milliseconds for which the start waits for Redis. */
const FIRST_WAIT = 2_000

/** Both connections. */
export class Redis {
  readonly #options: RedisOptions
  #library: Library | undefined
  #asking: Client | undefined
  #listening: Client | undefined
  readonly #listeners = new Map<string, Listener>()
  #listens = false
  #restUntil = 0
  /** Commands without an answer, and since when there was none. */
  #open = 0
  #since = 0
  #reported = false
  #steady: NodeJS.Timeout | undefined
  #closed = false
  /** Called when the subscriptions work again after an interruption. */
  onReturn: () => void = () => {}

  constructor(options: RedisOptions) {
    this.#options = options
  }

  /** Whether Redis answers and the subscriptions work. */
  get working(): boolean {
    return this.#answers && this.#listens && this.#listening?.isReady === true
  }

  get #answers(): boolean {
    const late = this.#open > 0 && performance.now() - this.#since > this.#options.timeout
    return this.#asking?.isReady === true && !late && performance.now() >= this.#restUntil
  }

  /** Connects, and keeps trying. Resolves when connected, or after FIRST_WAIT. */
  async connect(): Promise<void> {
    // Loaded on demand: most bridges have no replicas.
    const library = await import('./client.js')
    if (this.#closed) return
    this.#library = library
    const asking = this.#watched(library.clientOf(this.#options))
    const listening = this.#watched(library.clientOf(this.#options))
    this.#asking = asking
    this.#listening = listening
    const heard = new Promise<void>((resolve) => {
      listening.on('ready', () => {
        if (this.#listens) this.onReturn()
        else this.#listenToAll(listening).then(resolve, () => {})
      })
    })
    const connected = Promise.all([asking.connect(), listening.connect(), heard]).then(
      () => this.#checkPolicy(asking),
      (error: unknown) =>
        this.#options.log.debug({ event: 'redis_connect_failed', err: error }, 'cannot connect to Redis'),
    )
    await within(connected, FIRST_WAIT)
  }

  /** Publishes a message. Resolves to the number of receivers; rejects with RedisAway. */
  publish(channel: string, message: Buffer): Promise<number> {
    return this.#ask((client) => client.publish(channel, message))
  }

  /** Subscribes to a channel. To be called before `connect`. */
  listen(channel: string, listener: Listener): void {
    this.#listeners.set(channel, listener)
  }

  /** The bytes under a key. Rejects with RedisAway. */
  async get(key: string): Promise<Buffer | undefined> {
    const text = await this.#ask((client) => client.get(key))
    return text === null ? undefined : Buffer.from(text, 'base64')
  }

  /** Stores bytes under a key for so many milliseconds. Rejects with RedisAway. */
  async set(key: string, bytes: Buffer, milliseconds: number): Promise<void> {
    const PX = Math.max(1, Math.round(milliseconds))
    await this.#ask((client) => client.set(key, bytes.toString('base64'), { expiration: { type: 'PX', value: PX } }))
  }

  /** Counts one more under a key, which expires so many milliseconds after the first. Rejects with RedisAway. */
  async count(key: string, milliseconds: number): Promise<{ current: number; ttl: number }> {
    const [, current, ttl] = await this.#ask((client) =>
      client
        .multi()
        .set(key, '0', { condition: 'NX', expiration: { type: 'PX', value: milliseconds } })
        .incr(key)
        .pTTL(key)
        .exec(),
    )
    return { current: Number(current), ttl: Number(ttl) }
  }

  async forget(key: string): Promise<void> {
    await this.#ask((client) => client.del(key))
  }

  close(): void {
    this.#closed = true
    clearTimeout(this.#steady)
    // With Sentinels, it ends when an attempt to connect has ended.
    for (const client of [this.#asking, this.#listening]) Promise.resolve(client?.destroy()).catch(() => {})
  }

  async #ask<T>(command: (client: Client) => Promise<T>): Promise<T> {
    if (!this.#asking || !this.#answers) throw new RedisAway('Redis does not answer')
    if (this.#open++ === 0) this.#since = performance.now()
    const asked = command(this.#asking)
    const settled = () => {
      this.#open--
      this.#since = performance.now()
    }
    asked.then(settled, settled)
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<never>((_resolve, reject) => {
      // What has come while this process was busy is still to be read.
      const tooLong = () => setImmediate(() => reject(new RedisAway('Redis takes too long')))
      timer = setTimeout(tooLong, this.#options.timeout)
    })
    try {
      return await Promise.race([asked, late])
    } catch (error) {
      // An error reply is an answer: Redis may be out of memory, or refuse the command.
      if (!(this.#library && error instanceof this.#library.ErrorReply)) this.#restUntil = performance.now() + REST
      throw error instanceof RedisAway ? error : new RedisAway('A Redis command failed', { cause: error })
    } finally {
      clearTimeout(timer)
    }
  }

  async #listenToAll(client: Client): Promise<void> {
    for (const [channel, listener] of this.#listeners) await client.subscribe(channel, listener, true)
    this.#listens = true
  }

  /** With these policies Redis may evict keys before they expire, without an error. */
  async #checkPolicy(client: Client): Promise<void> {
    const found = await client.configGet('maxmemory-policy').catch(() => undefined)
    const policy = found?.['maxmemory-policy']
    if (policy?.startsWith('allkeys-'))
      this.#options.log.warn(
        { event: 'redis_may_evict', policy },
        'Redis may evict keys that replicas need; set its maxmemory-policy to noeviction',
      )
  }

  /** Logs once that Redis is unreachable, and once that it has stayed reachable again. */
  #watched(client: Client): Client {
    const { log } = this.#options
    client.on('error', (error: Error) => {
      if (this.#closed) return
      clearTimeout(this.#steady)
      if (!this.#reported) log.warn({ event: 'redis_unavailable', why: error.message }, 'Redis is unavailable')
      this.#reported = true
    })
    client.on('ready', () => {
      clearTimeout(this.#steady)
      if (!this.#reported) return
      this.#steady = setTimeout(() => {
        if (!this.#asking?.isReady || !this.#listening?.isReady) return
        log.info({ event: 'redis_available' }, 'Redis is available again')
        this.#reported = false
      }, STEADY).unref()
    })
    return client
  }
}
