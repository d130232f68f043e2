/**
 * The connections to Redis: one for commands, one for subscriptions; timeouts and failures. A command fails after a timeout. After a failure, no
 * commands are sent for a moment.
 */
import type { Log } from '../log/events.js'
import { Deadline, within } from '../time/time.js'
import type { Keys, RedisAddress, RedisChannels, RedisConnection } from './connection.js'

/** The class of error replies: of the library, which is loaded on demand. */
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

/** Milliseconds without commands after a failure. */
const REST = 500
/** Milliseconds for which Redis must stay reachable before that is logged. */
const STEADY = 2_000
/** Most milliseconds that the start waits for Redis. */
const FIRST_WAIT = 2_000

/** Both connections. */
export class Redis {
  readonly #options: RedisOptions
  #errorReply: ErrorReply | undefined
  #asking: RedisConnection | undefined
  #listening: RedisChannels | undefined
  readonly #listeners = new Map<string, Listener>()
  #listens = false
  /** Separate, because a Cluster can carry messages while the keys of a lost primary are unreachable. */
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

  /** Subscribes to a channel. Must be called before `connect`. */
  listen(channel: string, listener: Listener): void {
    this.#listeners.set(channel, listener)
  }

  /** Runs commands for keys. Rejects with RedisAway. */
  run<T>(command: (keys: Keys) => Promise<T>): Promise<T> {
    return this.#ask(this.#keys, (client) => client.withKeys(command))
  }

  close(): void {
    this.#closed = true
    clearTimeout(this.#steady)
    // With Sentinels, `destroy` resolves only after the current attempt to connect.
    for (const client of [this.#asking, this.#listening]) Promise.resolve(client?.destroy()).catch(() => {})
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
      // Also without an answer: the client for Sentinels may never settle commands that a lost primary had received.
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

/** The circuit breaker of a group of commands. */
class Lane {
  readonly #timeout: number
  /** The number of commands without an answer, and the time of the last answer, or of the first of them. */
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

  /** Counts a command as open until the returned function is called. */
  begin(): () => void {
    if (this.#open++ === 0) this.#since = performance.now()
    return () => {
      this.#open--
      this.#since = performance.now()
    }
  }

  /** Lets no command be sent for a moment. */
  rest(): void {
    this.#restUntil = performance.now() + REST
  }
}
