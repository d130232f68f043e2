/**
 * Connections to Redis by the library @redis/client: to an address, or to the primary that Sentinels know. Loaded on
 * demand: most bridges have no replicas.
 */
import { createClient, createSentinel, ErrorReply } from '@redis/client'
import { backoff } from '../time.js'

export { ErrorReply }

/** Where Redis is. */
export interface RedisAddress {
  /** With Sentinels, the host is the name of the primary. */
  url: string
  /** Addresses of Sentinels; none without them. The user and password of the first are those of all. */
  sentinels?: readonly string[]
}

/** What the bridge uses of a connection, whatever it leads to. */
export interface Client {
  readonly isReady: boolean
  /** Connects, and reconnects until it is destroyed. */
  connect(): Promise<unknown>
  destroy(): unknown
  on(event: string, listener: (error: Error) => void): unknown
  publish(channel: string, message: Buffer): Promise<number>
  subscribe(channel: string, listener: (message: Buffer) => void, buffers: true): Promise<void>
  get(key: string): Promise<string | null>
  set(key: string, text: string, options: Expiring): Promise<unknown>
  del(key: string): Promise<unknown>
  configGet(name: string): Promise<Record<string, string | undefined>>
  multi(): Multi
}

interface Expiring {
  condition?: 'NX'
  expiration: { type: 'PX'; value: number }
}

interface Multi {
  set(key: string, text: string, options: Expiring): Multi
  incr(key: string): Multi
  pTTL(key: string): Multi
  exec(): Promise<unknown[]>
}

/** Milliseconds between attempts to connect: the first delay and the longest. */
const RECONNECT = { first: 50, most: 500 }
/** Milliseconds between pings, and of silence until a connection is dropped. */
const PING_EVERY = 1_000
const SILENCE = 4_000
const CONNECT_TIMEOUT = 2_000
/** Most commands that may wait for an answer. */
const MAX_WAITING = 20_000
/** Connections to the primary that Sentinels know. Each carries one command at a time. */
const TO_PRIMARY = 8

const socket = {
  connectTimeout: CONNECT_TIMEOUT,
  socketTimeout: SILENCE,
  reconnectStrategy: (retries: number) => backoff(retries, RECONNECT),
}
const ONE = {
  disableOfflineQueue: true,
  commandsQueueMaxLength: MAX_WAITING,
  pingInterval: PING_EVERY,
  // CLIENT SETINFO makes the library wait for an answer before a connection counts as established, even if the answer
  // is an error. Without that, another program that accepts connections in place of Redis and closes them would cause
  // attempts without delay.
  disableClientInfo: false,
  maintNotifications: 'disabled',
} as const
// `Redis` has its own timeout: the one of the library ends when a command is written.
const COMMANDS = { RESP: 2, commandOptions: { timeout: 0 } } as const

/** A client that is not connected yet. It emits `ready` each time it can be used again. */
export function clientOf({ url, sentinels = [] }: RedisAddress): Client {
  if (sentinels.length > 0) return primaryOf(url, sentinels)
  return createClient({ url, ...ONE, ...COMMANDS, socket }) as unknown as Client
}

function primaryOf(url: string, sentinels: readonly string[]): Client {
  const client = createSentinel({
    name: partsOf(url).host,
    sentinelRootNodes: sentinels.map((one) => ({ host: partsOf(one).host, port: partsOf(one).port ?? 26_379 })),
    nodeClientOptions: { ...ONE, ...accessOf(url) },
    sentinelClientOptions: { ...ONE, ...accessOf(sentinels[0] as string) },
    masterPoolSize: TO_PRIMARY,
    // It ends when the client is destroyed, not after some attempts.
    maxCommandRediscovers: Number.MAX_SAFE_INTEGER,
    passthroughClientErrorEvents: true,
    ...COMMANDS,
  })
  return client as unknown as Client
}

/** How to connect to a Redis or a Sentinel: TLS, user, password and database as in the address. */
function accessOf(url: string) {
  const { protocol, username, password, pathname } = new URL(url)
  const database = Number(pathname.slice(1)) || undefined
  return {
    socket: protocol === 'rediss:' ? { ...socket, tls: true as const } : socket,
    ...(username !== '' && { username: decodeURIComponent(username) }),
    ...(password !== '' && { password: decodeURIComponent(password) }),
    ...(database !== undefined && { database }),
  }
}

function partsOf(url: string): { host: string; port: number | undefined } {
  const { hostname, port } = new URL(url)
  return { host: hostname.replace(/^\[|\]$/g, ''), port: port === '' ? undefined : Number(port) }
}
