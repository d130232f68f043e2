/**
 * The connections to Redis, one for commands and one for subscriptions: what happens when a command takes too long, or
 * Redis fails. A command that takes too long counts as failed, and after a failure no commands are sent for a moment.
 */
import type { Log } from '../log/events.js'
import { Deadline, within } from '../time/time.js'
import type { Keys, RedisAddress, RedisChannels, RedisConnection } from './connection.js'

/** An answer of Redis that is an error: a class of the library, which is loaded on demand. */
type ErrorReply = typeof import('./client.js').ErrorReply

/** How to connect to Redis. */
export interface RedisOptions extends RedisAddress {
  /** Milliseconds that one command may take. */
  timeout: number
  log: RedisLog
}

/** Where the state of the connections is logged. */
export type RedisLog = Pick<Log, 'debug' | 'info' | 'warn'>

/** Redis is unreachable, or a command has failed. */
class RedisAway extends Error {
  override name = 'RedisAway'
}

type Listener = (message: Buffer) => void

/** Replaces the value of a key if it is the one that is expected. An empty text stands for none. */
const SWAP = `if (redis.call('GET', KEYS[1]) or '') ~= ARGV[1] then return 0 end
if ARGV[2] == '' then redis.call('DEL', KEYS[1]) else redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3]) end
return 1`

/** Milliseconds after a failure in which no commands are sent. */
const REST = 500
/** Milliseconds for which Redis must stay reachable before that is logged. */
const STEADY = 2_000
/** Milliseconds for which the start waits for Redis. */
const FIRST_WAIT = 2_000

/** Both connections. */
export class Redis {
  readonly #options: RedisOptions
  #errorReply: ErrorReply | undefined
  #asking: RedisConnection | undefined
  #listening: RedisChannels | undefined
  readonly #listeners = new Map<string, Listener>()
  #listens = false
  /** A Cluster can carry messages while keys of a lost primary are unreachable, so both fail apart. */
  readonly #channels: Lane
  readonly #keys: Lane
  #reported = false
  #steady: NodeJS.Timeout | undefined
  #closed = false
  /** Called when the subscriptions work again after an interruption. */
  onReturn: () => void = () => {}

  constructor(options: RedisOptions) {
    this.#options = options
    this.#channels = new Lane(options.timeout)
    this.#keys = new Lane(options.timeout)
  }

  /** Whether Redis answers and the subscriptions work. */
  get working(): boolean {
    const areReady = this.#asking?.isReady === true && this.#listening?.isReady === true
    return areReady && this.#listens && this.#channels.answers
  }

  /** Connects, and keeps trying. Resolves when connected, or after FIRST_WAIT. */
  async connect(): Promise<void> {
    // Loaded on demand: most bridges have no replicas.
    const { clientsOf, ErrorReply } = await import('./client.js')
    if (this.#closed) return
    this.#errorReply = ErrorReply
    const { asking, listening } = clientsOf(this.#options)
    for (const client of [asking, listening]) this.#watch(client)
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
    return this.#ask(this.#channels, (client) => client.publish(channel, message))
  }

  /** Subscribes to a channel. To be called before `connect`. */
  listen(channel: string, listener: Listener): void {
    this.#listeners.set(channel, listener)
  }

  /** The bytes under a key. Rejects with RedisAway. */
  async get(key: string): Promise<Buffer | undefined> {
    const text = await this.#askForKeys((keys) => keys.get(key))
    return text === null ? undefined : Buffer.from(text, 'base64')
  }

  /** Stores bytes under a key for so many milliseconds. Rejects with RedisAway. */
  async set(key: string, bytes: Buffer, milliseconds: number): Promise<void> {
    const PX = Math.max(1, Math.round(milliseconds))
    await this.#askForKeys((keys) => keys.set(key, bytes.toString('base64'), { expiration: { type: 'PX', value: PX } }))
  }

  /** Stores a mark under a key for so many milliseconds. Resolves to whether there was none. Rejects with RedisAway. */
  async claim(key: string, milliseconds: number): Promise<boolean> {
    const options = { condition: 'NX', expiration: { type: 'PX', value: milliseconds } } as const
    return (await this.#askForKeys((keys) => keys.set(key, '1', options))) !== null
  }

  /**
   * Replaces the bytes under a key, or removes them, if they still are `before`. Resolves to whether it has. Rejects with
   * RedisAway.
   */
  async swap(
    key: string,
    before: Buffer | undefined,
    after: Buffer | undefined,
    milliseconds: number,
  ): Promise<boolean> {
    const texts = [before, after].map((bytes) => bytes?.toString('base64') ?? '')
    const given = { keys: [key], arguments: [...texts, String(Math.max(1, Math.round(milliseconds)))] }
    return (await this.#askForKeys((keys) => keys.eval(SWAP, given))) === 1
  }

  /** Counts one more under a key, which expires so many milliseconds after the first. Rejects with RedisAway. */
  async count(key: string, milliseconds: number): Promise<{ current: number; ttl: number }> {
    const [, current, ttl] = await this.#askForKeys((keys) =>
      keys
        .multi()
        .set(key, '0', { condition: 'NX', expiration: { type: 'PX', value: milliseconds } })
        .incr(key)
        .pTTL(key)
        .exec(),
    )
    return { current: Number(current), ttl: Number(ttl) }
  }

  async forget(key: string): Promise<void> {
    await this.#askForKeys((keys) => keys.del(key))
  }

  close(): void {
    this.#closed = true
    clearTimeout(this.#steady)
    // With Sentinels, it ends when an attempt to connect has ended.
    for (const client of [this.#asking, this.#listening]) Promise.resolve(client?.destroy()).catch(() => {})
  }

  #askForKeys<T>(command: (keys: Keys) => Promise<T>): Promise<T> {
    return this.#ask(this.#keys, (client) => client.withKeys(command))
  }

  async #ask<T>(lane: Lane, command: (client: RedisConnection) => Promise<T>): Promise<T> {
    if (!this.#asking?.isReady || !lane.answers) throw new RedisAway('Redis does not answer')
    const over = lane.begin()
    let timer: Deadline | undefined
    const late = new Promise<never>((_resolve, reject) => {
      timer = new Deadline(this.#options.timeout, () => reject(new RedisAway('Redis takes too long')))
    })
    try {
      return await Promise.race([command(this.#asking), late])
    } catch (error) {
      // An error reply is an answer: Redis may be out of memory, or refuse the command.
      if (!(this.#errorReply && error instanceof this.#errorReply)) lane.rest()
      throw error instanceof RedisAway ? error : new RedisAway('A Redis command failed', { cause: error })
    } finally {
      // Also if it has no answer: the client for Sentinels may never answer commands that a primary had when it was lost.
      over()
      timer?.clear()
    }
  }

  async #listenToAll(client: RedisChannels): Promise<void> {
    for (const [channel, listener] of this.#listeners) await client.subscribe(channel, listener, true)
    this.#listens = true
  }

  /** With these policies Redis may evict keys before they expire, without an error. */
  async #checkPolicy(client: RedisChannels): Promise<void> {
    const found = await client.configGet('maxmemory-policy').catch(() => undefined)
    const policy = found?.['maxmemory-policy']
    if (policy?.startsWith('allkeys-'))
      this.#options.log.warn(
        { event: 'redis_may_evict', policy },
        'Redis may evict keys that replicas need; set its maxmemory-policy to noeviction',
      )
  }

  /** Logs once that Redis is unreachable, and once that it has stayed reachable again. */
  #watch(client: RedisChannels): void {
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
  }
}

/** Commands that are answered or fail together. */
class Lane {
  readonly #timeout: number
  /** Commands without an answer, and since when there was none. */
  #open = 0
  #since = 0
  #restUntil = 0

  constructor(timeout: number) {
    this.#timeout = timeout
  }

  /** Whether a command may be sent. */
  get answers(): boolean {
    const now = performance.now()
    const late = this.#open > 0 && now - this.#since > this.#timeout
    return !late && now >= this.#restUntil
  }

  /** Counts a command until the returned function is called. */
  begin(): () => void {
    if (this.#open++ === 0) this.#since = performance.now()
    return () => {
      this.#open--
      this.#since = performance.now()
    }
  }

  /** Sends nothing for a moment. */
  rest(): void {
    this.#restUntil = performance.now() + REST
  }
}
