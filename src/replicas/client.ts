/** Connections to Redis by the library @redis/client. Loaded on demand: most bridges have no replicas. */
import { createClient, ErrorReply } from '@redis/client'
import { backoff } from '../time.js'

export { ErrorReply }

export type Client = ReturnType<typeof clientOf>

/** Milliseconds between attempts to connect: the first delay and the longest. */
const RECONNECT = { first: 50, most: 500 }
/** Milliseconds between pings, and of silence until a connection is dropped. */
const PING_EVERY = 1_000
const SILENCE = 4_000
const CONNECT_TIMEOUT = 2_000
/** Most commands that may wait for an answer. */
const MAX_WAITING = 20_000

/** A client that is not connected yet. */
export function clientOf(url: string) {
  return createClient({
    url,
    RESP: 2,
    disableOfflineQueue: true,
    commandsQueueMaxLength: MAX_WAITING,
    pingInterval: PING_EVERY,
    // CLIENT SETINFO makes the library wait for an answer before a connection counts as established, even if the answer
    // is an error. Without that, another program that accepts connections in place of Redis and closes them would cause
    // attempts without delay.
    disableClientInfo: false,
    maintNotifications: 'disabled',
    // `Redis` has its own timeout: the one of the library ends when a command is written.
    commandOptions: { timeout: 0 },
    socket: {
      connectTimeout: CONNECT_TIMEOUT,
      socketTimeout: SILENCE,
      reconnectStrategy: (retries) => backoff(retries, RECONNECT),
    },
  })
}
