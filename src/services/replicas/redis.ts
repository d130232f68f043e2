/**
 * The connections to Redis: one for commands, one for subscriptions; timeouts, failures and refusals. A command fails after a timeout. After a
 * failure, no commands are sent for a moment. While a lost connection is replaced, commands wait, for as long as one may take.
 */
import type { Log } from '../../base/log/events.js'
import { printable } from '../../base/texts/printable.js'
import { Deadline, lookEvery, within } from '../../base/time/time.js'
import type { Common, Count, Swap } from './common.js'
import type { Keys, RedisAddress, RedisConnection } from './connection.js'
import { adviceOn, codeOf, type Need, RefusedNeeds } from './refused.js'
import { expiring, increment, swap, tryCounts, tryKeys } from './scripts.js'

/** The class of error replies: of the library, which is loaded on demand. */
type ErrorReply = typeof import('./client.js').ErrorReply

/** How to connect to Redis. */
export interface RedisOptions extends RedisAddress {
  /** Prefix of all keys and channels. */
  prefix?: string
  /** Milliseconds that one command may take. */
  timeout: number
  log: RedisLog
}

/** Where the state of the connections is logged. */
type RedisLog = Pick<Log, 'debug' | 'info' | 'warn'>

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
/** Most characters of an error of Redis in the log. */
const MOST_WORDS = 300
/** Most lines of the log until Redis is available again: one for each code of its errors. */
const MOST_REASONS = 8
/** Milliseconds between two looks at the policy of Redis. */
const POLICY_EVERY = 60_000
/** Policies with which Redis may evict keys before they expire, without an error. */
const EVICTING = /^(allkeys|volatile)-/

/** Both connections. */
export class Redis implements Common {
  readonly lasting = true
  readonly #options: RedisOptions
  #errorReply: ErrorReply | undefined
  #asking: RedisConnection | undefined
  #listening: RedisConnection | undefined
  readonly #listeners = new Map<string, Listener>()
  /** Separate, because a Cluster can carry messages while the keys of a lost primary are unreachable. */
  readonly #channels = new Lane()
  readonly #keys = new Lane()
  readonly #refused: RefusedNeeds
  /** Codes of errors in the log, since Redis was available. */
  readonly #reported = new Set<string>()
  #steady: NodeJS.Timeout | undefined
  /** Settles when the connection for commands is there, or late; undefined until a command needs one that is lost. */
  #awaited: Promise<unknown> | undefined
  #arrived = () => {}
  /** The eviction policy of Redis. */
  #policy: string | undefined
  #policyLooks: NodeJS.Timeout | undefined
  #closed = false
  /** Called when the subscriptions work again after an interruption. */
  onReturn: () => void = () => {}

  constructor(options: RedisOptions) {
    this.#options = options
    this.#refused = new RefusedNeeds({
      attempt: (need, key) => this.#attempt(need, key),
      connectAnew: () => this.#asking?.anew(),
      over: (anew) => {
        // Once, because sessions are then told that all may have changed.
        if (anew) this.#listening?.anew()
        this.#settle()
      },
    })
  }

  /** Whether Redis answers, refuses nothing, and the subscriptions work. */
  get working(): boolean {
    const areReady = this.#asking?.isReady === true && this.#listening?.isReady === true
    return areReady && !this.#channels.rests && !this.#refused.any
  }

  /** Whether Redis may evict what replicas need; undefined if it has not told. */
  get mayEvict(): boolean | undefined {
    return this.#policy === undefined ? undefined : EVICTING.test(this.#policy)
  }

  /** Connects, and keeps trying. Resolves when connected, or after FIRST_WAIT. */
  async connect(): Promise<void> {
    // Loaded on demand: most bridges have no replicas.
    const { clientsOf, ErrorReply } = await import('./client.js')
    if (this.#closed) return
    this.#errorReply = ErrorReply
    const { asking, listening } = clientsOf(this.#options, this.#listeners)
    for (const client of [asking, listening]) this.#watch(client)
    this.#asking = asking
    this.#listening = listening
    let checked = Promise.resolve()
    const checkPolicy = () => {
      checked = this.#checkPolicy(asking)
    }
    asking.on('ready', checkPolicy)
    asking.on('ready', () => {
      if (!asking.isReady) return
      this.#arrived()
      this.#awaited = undefined
    })
    // The policy of a running Redis may be changed.
    this.#policyLooks = lookEvery(POLICY_EVERY, checkPolicy)
    let isFirst = true
    listening.on('ready', () => {
      if (!isFirst) this.onReturn()
      isFirst = false
    })
    const connected = Promise.all([asking.connect(), listening.connect()]).then(
      () => Promise.all([this.#attemptAll(), checked]),
      (error: unknown) =>
        this.#options.log.debug({ event: 'redis_connect_failed', err: error }, 'cannot connect to Redis'),
    )
    await within(connected, FIRST_WAIT)
  }

  /** Publishes a message. Resolves to the number of receivers; rejects with RedisAway. */
  publish(channel: string, message: Buffer): Promise<number> {
    return this.#ask('channels', channel, (client) => client.publish(channel, message))
  }

  /** Subscribes to a channel. Must be called before `connect`. */
  listen(channel: string, listener: Listener): void {
    this.#listeners.set(channel, listener)
  }

  /** Runs commands for a key. Rejects with RedisAway. */
  run<T>(command: (keys: Keys) => Promise<T>, key?: string, need: Need = 'keys'): Promise<T> {
    return this.#ask(need, key, (client) => client.withKeys(command))
  }

  get(key: string): Promise<string | null> {
    return this.run((keys) => keys.get(key), key)
  }

  set(key: string, text: string, milliseconds: number): Promise<unknown> {
    return this.run((keys) => keys.set(key, text, expiring(milliseconds)), key)
  }

  async add(key: string, text: string, milliseconds: number): Promise<boolean> {
    const options = { condition: 'NX', ...expiring(milliseconds) } as const
    return (await this.run((keys) => keys.set(key, text, options), key)) !== null
  }

  delete(key: string): Promise<unknown> {
    return this.run((keys) => keys.del(key), key)
  }

  swap(key: string, change: Swap): Promise<boolean> {
    return this.run((keys) => swap(keys, key, change), key)
  }

  increment(key: string, milliseconds: number): Promise<Count> {
    return this.run((keys) => increment(keys, key, milliseconds), key, 'counts')
  }

  close(): void {
    this.#closed = true
    clearTimeout(this.#steady)
    clearInterval(this.#policyLooks)
    this.#refused.close()
    for (const client of [this.#asking, this.#listening]) client?.destroy()
    this.#arrived()
  }

  async #ask<T>(need: Need, key: string | undefined, command: (client: RedisConnection) => Promise<T>): Promise<T> {
    const lane = need === 'channels' ? this.#channels : this.#keys
    const asking = this.#asking
    if (asking?.isReady === false && !this.#closed) await this.#connection()
    if (!asking?.isReady || lane.rests) throw new RedisAway('Redis does not answer')
    let timer: Deadline | undefined
    const late = new Promise<never>((_resolve, reject) => {
      timer = new Deadline(this.#options.timeout, () => reject(new RedisAway('Redis takes too long')))
    })
    try {
      return await Promise.race([command(asking), late])
    } catch (error) {
      if (this.#errorReply && error instanceof this.#errorReply) this.#refuse(need, key, error)
      // Another connection may work at once. In a Cluster, this one is not that to the node that failed.
      else if (error instanceof RedisAway || asking.isReady) lane.rest()
      throw error instanceof RedisAway ? error : new RedisAway('A Redis command failed', { cause: error })
    } finally {
      // Also without an answer: the client for Sentinels may never settle commands that a lost primary had received.
      timer?.clear()
    }
  }

  /** Waits for the next connection, together with all commands since the first one that needed it. */
  #connection(): Promise<unknown> {
    this.#awaited ??= within(
      new Promise<void>((resolve) => {
        this.#arrived = resolve
      }),
      this.#options.timeout,
    )
    return this.#awaited
  }

  /** An error reply is an answer: Redis may be out of memory, or refuse the command. Others may still work. */
  #refuse(need: Need, key: string | undefined, error: Error): void {
    this.#report(error)
    this.#refused.add(need, key, error)
  }

  /** Tries what the bridge needs in any case, so that a refusal is known from the start. */
  async #attemptAll(): Promise<void> {
    const needs: Need[] = ['keys', 'channels']
    await Promise.all(needs.map((need) => this.#attempt(need).catch(() => {})))
  }

  #attempt(need: Need, key?: string): Promise<unknown> {
    const check = checkKey(this.#options.prefix ?? '', key)
    if (need === 'keys') return this.run((keys) => tryKeys(keys, check), key)
    if (need === 'counts') return this.run((keys) => tryCounts(keys, check), key, need)
    // Nobody takes an empty message.
    const [channel = key] = this.#listeners.keys()
    return channel === undefined ? Promise.resolve() : this.publish(channel, Buffer.alloc(0))
  }

  async #checkPolicy(client: RedisConnection): Promise<void> {
    const policy = await client.policy().catch(() => undefined)
    if (policy === this.#policy || policy === undefined) return
    this.#policy = policy
    if (EVICTING.test(policy))
      this.#options.log.warn(
        { event: 'redis_may_evict', policy },
        'Redis may evict keys that replicas need; set its maxmemory-policy to noeviction',
      )
  }

  #watch(client: RedisConnection): void {
    client.on('error', (error) => this.#report(error))
    client.on('ready', () => this.#settle())
  }

  /** Logs once that Redis is unreachable, and once for each code of its errors. */
  #report(error: Error): void {
    if (this.#closed) return
    clearTimeout(this.#steady)
    const code = codeOf(error)
    const isNew = code === '' ? this.#reported.size === 0 : !this.#reported.has(code)
    if (!isNew || this.#reported.size >= MOST_REASONS) return
    this.#reported.add(code)
    const next = adviceOn(error)
    const why = printable(error.message, MOST_WORDS)
    this.#options.log.warn({ event: 'redis_unavailable', why, ...(next && { next }) }, 'Redis is unavailable')
  }

  /** Logs once that Redis has stayed available. */
  #settle(): void {
    clearTimeout(this.#steady)
    if (this.#reported.size === 0) return
    this.#steady = setTimeout(() => {
      if (!this.working) return
      this.#options.log.info({ event: 'redis_available' }, 'Redis is available again')
      this.#reported.clear()
    }, STEADY).unref()
  }
}

/** A key to try commands with: in a Cluster, its slot is that of the other key. */
function checkKey(prefix: string, key?: string): string {
  if (key === undefined) return `${prefix}check`
  const tag = /^[^{]*\{([^}]+)\}/.exec(key)?.[1] ?? key
  return `${prefix}check{${tag}}`
}

/** The circuit breaker of a group of commands. */
class Lane {
  #until = 0

  /** Whether no command may be sent. */
  get rests(): boolean {
    return performance.now() < this.#until
  }

  /** Lets no command be sent for a moment. */
  rest(): void {
    this.#until = performance.now() + REST
  }
}
