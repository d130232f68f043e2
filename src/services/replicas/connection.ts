/** The interfaces of connections to Redis, and their options: addresses, credentials, time limits, attempts to connect again. */
import { withoutBrackets } from '../../base/texts/parse-url.js'

/** The addresses of Redis: either `url` or `cluster`. */
export interface RedisAddress {
  /** With Sentinels, the host is the name of the primary. */
  url?: string | undefined
  /** Addresses of Sentinels; empty without them. All have the user and password of the first. */
  sentinels?: readonly string[]
  /** Addresses of nodes of a Redis Cluster; empty without one. All have the user and password of the first. */
  cluster?: readonly string[]
  /** PEM for TLS: authorities in place of the public ones, and the certificate of the bridge. */
  tls?: { ca?: string; cert?: string; key?: string }
}

/** What is heard, by channel. */
export type Channels = ReadonlyMap<string, (message: Buffer) => void>

/** A connection. It hears its channels whenever it is ready. */
export interface RedisConnection {
  readonly isReady: boolean
  /** Connects, and reconnects until it is destroyed. */
  connect(): Promise<unknown>
  /** Connects again, to where the address leads now. */
  anew(): void
  destroy(): unknown
  /** `ready`: the connection and its subscriptions work, or work again. */
  on(event: 'error' | 'ready', listener: (error: Error) => void): unknown
  publish(channel: string, message: Buffer): Promise<number>
  /** What Redis does when its memory is full (`maxmemory-policy`); undefined if it does not tell. */
  policy(): Promise<string | undefined>
  /** Runs commands for keys. Rejects if they cannot be run. */
  withKeys<T>(run: (keys: Keys) => Promise<T>): Promise<T>
}

/** Commands for keys. */
export interface Keys {
  get(key: string): Promise<string | null>
  set(key: string, text: string, options: Expiring): Promise<unknown>
  del(key: string): Promise<unknown>
  /** Runs a script of Lua. */
  eval(script: string, options: { keys: string[]; arguments: string[] }): Promise<unknown>
  /** For commands with the same key. */
  multi(): Multi
}

export interface Expiring {
  condition?: 'NX'
  expiration: { type: 'PX'; value: number }
}

interface Multi {
  set(key: string, text: string, options: Expiring): Multi
  incr(key: string): Multi
  pTTL(key: string): Multi
  exec(): Promise<unknown[]>
}

export const REDIS_PORT = 6_379
/** Milliseconds between attempts to connect: the first delay and the longest. */
export const RECONNECT = { first: 50, most: 500 }
/** Milliseconds between pings, and milliseconds of silence before a connection is dropped. */
const PING_EVERY = 1_000
const SILENCE = 4_000
const CONNECT_TIMEOUT = 2_000
/** Most commands without an answer. */
const MAX_COMMANDS = 20_000

/** Options of every connection. */
const CONNECTION = {
  disableOfflineQueue: true,
  commandsQueueMaxLength: MAX_COMMANDS,
  pingInterval: PING_EVERY,
  // CLIENT SETINFO makes the library wait for an answer before a connection counts as established, even if the answer
  // is an error. Without that, another program that accepts connections in place of Redis and closes them would cause
  // attempts without delay.
  disableClientInfo: false,
  maintNotifications: 'disabled',
} as const
// `Redis` has its own timeout: that of @redis/client 6.3 covers only the time until a command is written.
export const COMMANDS = { RESP: 2, commandOptions: { timeout: 0 } } as const

// Without reconnection, because a failed client is replaced.
const SOCKET = { connectTimeout: CONNECT_TIMEOUT, socketTimeout: SILENCE, reconnectStrategy: false as const }

/** Options of a connection: TLS, user, password and database. The other nodes have the same. */
export function accessOf(url: string, tls: RedisAddress['tls']) {
  const { protocol, username, password, pathname } = new URL(url)
  const database = Number(pathname.slice(1)) || undefined
  return {
    ...CONNECTION,
    socket: protocol === 'rediss:' ? { ...SOCKET, ...tls, tls: true as const } : SOCKET,
    ...(username !== '' && { username: decodeURIComponent(username) }),
    ...(password !== '' && { password: decodeURIComponent(password) }),
    ...(database !== undefined && { database }),
  }
}

/** The host and port in an address. */
export function placeOf(url: string, usual: number): { host: string; port: number } {
  const { hostname, port } = new URL(url)
  return { host: withoutBrackets(hostname), port: port === '' ? usual : Number(port) }
}
