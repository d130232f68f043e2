/** A connection to Redis, as the library has it. Loaded on demand: most bridges are on their own. */
import { createClient, ErrorReply } from '@redis/client'

export { ErrorReply }

export type Client = ReturnType<typeof clientOf>

/** Milliseconds between attempts to connect: the first, and the most. */
const RECONNECT = { first: 50, most: 500 }
/** Milliseconds between signs of life on a connection, and of silence after which it is dropped. */
const PING_EVERY = 1_000
const SILENCE = 4_000
const CONNECT_TIMEOUT = 2_000
/** Commands that may wait to be answered. */
const MAX_WAITING = 20_000

export function clientOf(url: string) {
  return createClient({
    url,
    RESP: 2,
    disableOfflineQueue: true,
    commandsQueueMaxLength: MAX_WAITING,
    pingInterval: PING_EVERY,
    // Whatever Redis says to CLIENT SETINFO, it is an answer. Without one a connection does not count as made, and the next
    // attempt waits: something else may accept connections in the place of Redis and close them.
    disableClientInfo: false,
    maintNotifications: 'disabled',
    // The library would count by itself, and only until a command is written.
    commandOptions: { timeout: 0 },
    socket: {
      connectTimeout: CONNECT_TIMEOUT,
      socketTimeout: SILENCE,
      reconnectStrategy: (retries) => Math.min(RECONNECT.first * 2 ** retries, RECONNECT.most),
    },
  })
}
