/**
 * Connections to Redis by the library @redis/client: to an address, to the primary that Sentinels know, or to a Cluster.
 * Loaded on demand: most bridges have no replicas.
 */
import { createClient, createSentinel, ErrorReply } from '@redis/client'
import { clusterClients } from './cluster.js'
import {
  accessOf,
  COMMANDS,
  type Keys,
  placeOf,
  type RedisAddress,
  type RedisChannels,
  type RedisConnection,
} from './connection.js'
import { endDestroyedClients } from './destroyed.js'

export { ErrorReply }

/** Connections to the primary with Sentinels. Each carries one command at a time. */
const TO_PRIMARY = 8
const SENTINEL_PORT = 26_379

endDestroyedClients()

/** A client for commands and one for subscriptions, not connected yet. */
export function clientsOf(address: RedisAddress): { asking: RedisConnection; listening: RedisChannels } {
  if (address.cluster?.length) return clusterClients(address.cluster, address.tls)
  return { asking: clientOf(address), listening: clientOf(address) }
}

function clientOf({ url = '', sentinels = [], tls }: RedisAddress): RedisConnection {
  const client = (sentinels.length > 0
    ? primaryOf(url, sentinels, tls)
    : createClient({ ...accessOf(url, tls), url, ...COMMANDS })) as unknown as RedisChannels & Keys
  return Object.assign(client, { withKeys: <T>(run: (keys: Keys) => Promise<T>) => run(client) })
}

function primaryOf(url: string, sentinels: readonly string[], tls: RedisAddress['tls']) {
  return createSentinel({
    name: placeOf(url, 0).host,
    sentinelRootNodes: sentinels.map((one) => placeOf(one, SENTINEL_PORT)),
    nodeClientOptions: accessOf(url, tls),
    sentinelClientOptions: accessOf(sentinels[0] as string, tls),
    masterPoolSize: TO_PRIMARY,
    // Retries until the client is destroyed.
    maxCommandRediscovers: Number.MAX_SAFE_INTEGER,
    passthroughClientErrorEvents: true,
    ...COMMANDS,
  })
}
