/**
 * Connections to a Redis Cluster. The Cluster client of @redis/client 6.3 does not move a subscription away from a lost
 * primary. Messages need no primary: a Cluster delivers a message from any node to the subscribers at all nodes. So channels
 * use a plain connection to any node, and only keys use the Cluster client.
 */
import { createClient, createCluster } from '@redis/client'
import {
  accessOf,
  type Channels,
  COMMANDS,
  type Keys,
  placeOf,
  REDIS_PORT,
  type RedisAddress,
  type RedisConnection,
} from './connection.js'
import { Replaced } from './replaced.js'
import { Single, type SingleClient, type SingleOptions } from './single.js'

type Place = ReturnType<typeof placeOf>
type Access = ReturnType<typeof accessOf>
type ClusterKeys = ReturnType<typeof keysOf>

/** A connection for commands, and one that hears these channels. They are not connected yet. */
export function clusterClients(
  cluster: readonly string[],
  tls: RedisAddress['tls'],
  channels: Channels,
): { asking: RedisConnection; listening: RedisConnection } {
  const access = accessOf(cluster[0] as string, tls)
  const configured = cluster.map((url) => placeOf(url, REDIS_PORT))
  const keys = new Replaced({ make: () => keysOf(configured, access), failure: 'node-error' })
  let next = Math.floor(Math.random() * configured.length)
  const make = () => {
    // Nodes may have been replaced since the configuration was written.
    const known = [...configured, ...(keys.client?.masters ?? [])]
    return clientAt(known[next++ % known.length] as Place, access)
  }
  const anyNode = { make, failure: 'error' as const }
  return { asking: new ClusterClient(anyNode, keys), listening: new Single({ ...anyNode, channels }) }
}

/** A client of one node. */
export function clientAt({ host, port }: Place, access: Access): SingleClient {
  const socket = { ...access.socket, host, port }
  return createClient({ ...access, socket, ...COMMANDS }) as unknown as SingleClient
}

function keysOf(nodes: readonly Place[], defaults: Access) {
  const rootNodes = nodes.map((socket) => ({ socket }))
  // Does not wait for connections to all primaries, because one of them may be lost.
  return createCluster({ rootNodes, defaults, minimizeConnections: true, ...COMMANDS })
}

/** Uses any node for channels, and the primaries of their slots for keys. */
class ClusterClient extends Single {
  readonly #keys: Replaced<ClusterKeys>

  constructor(anyNode: SingleOptions, keys: Replaced<ClusterKeys>) {
    super(anyNode)
    this.#keys = keys
  }

  override connect(): Promise<unknown> {
    return Promise.all([super.connect(), this.#keys.connect()])
  }

  override anew(): void {
    super.anew()
    this.#keys.anew()
  }

  override destroy(): void {
    super.destroy()
    this.#keys.destroy()
  }

  override on(event: 'error' | 'ready', listener: (error: Error) => void): void {
    super.on(event, listener)
    this.#keys.on(event, listener)
  }

  override withKeys<T>(run: (keys: Keys) => Promise<T>): Promise<T> {
    return this.#keys.use((client) => run(client as unknown as Keys))
  }
}
