/**
 * Connections to Redis by the library @redis/client: to an address, to the primary that Sentinels know, or to a Cluster.
 * Loaded on demand: most bridges have no replicas.
 */
import { createSentinel, ErrorReply } from '@redis/client'
import { backoff } from '../../base/time/pause.js'
import { clientAt, clusterClients } from './cluster.js'
import {
  accessOf,
  type Channels,
  COMMANDS,
  placeOf,
  RECONNECT,
  REDIS_PORT,
  type RedisAddress,
  type RedisConnection,
} from './connection.js'
import { endDestroyedClients } from './destroyed.js'
import { hearLastWords } from './last-words.js'
import { Single, type SingleClient } from './single.js'

export { ErrorReply }

/** Connections to the primary with Sentinels. Each carries one command at a time. */
const TO_PRIMARY = 8
const SENTINEL_PORT = 26_379

endDestroyedClients()
hearLastWords()

/** A connection for commands, and one that hears these channels. They are not connected yet. */
export function clientsOf(
  address: RedisAddress,
  channels: Channels = new Map(),
): { asking: RedisConnection; listening: RedisConnection } {
  const { url = '', sentinels = [], cluster, tls } = address
  if (cluster?.length) return clusterClients(cluster, tls, channels)
  const making =
    sentinels.length > 0
      ? { make: () => primaryOf(url, sentinels, tls) }
      : { make: () => clientAt(placeOf(url, REDIS_PORT), accessOf(url, tls)), failure: 'error' as const }
  return { asking: new Single(making), listening: new Single({ ...making, channels }) }
}

function primaryOf(url: string, sentinels: readonly string[], tls: RedisAddress['tls']): SingleClient {
  const reconnectStrategy = (retries: number) => backoff(retries, RECONNECT)
  const access = accessOf(url, tls)
  return createSentinel({
    name: placeOf(url, 0).host,
    sentinelRootNodes: sentinels.map((one) => placeOf(one, SENTINEL_PORT)),
    nodeClientOptions: { ...access, socket: { ...access.socket, reconnectStrategy } },
    sentinelClientOptions: accessOf(sentinels[0] as string, tls),
    masterPoolSize: TO_PRIMARY,
    // An attempt that fails is the last one, and another client follows after a delay. By itself the library repeats a
    // command without delay, for as long as the node that Sentinels name is read-only.
    maxCommandRediscovers: 0,
    passthroughClientErrorEvents: true,
    ...COMMANDS,
  }) as unknown as SingleClient
}
