/**
 * Connections to a Redis Cluster. The Cluster client of @redis/client 6.3 does not move a subscription away from a lost
 * primary. Messages need no primary: a Cluster delivers a message from any node to the subscribers at all nodes. So channels
 * use a plain connection to any node, and only keys use the Cluster client.
 */
import { createClient, createCluster, ErrorReply } from '@redis/client'
import { backoff, pause } from '../time/pause.js'
import {
  accessOf,
  COMMANDS,
  type Keys,
  placeOf,
  RECONNECT,
  type RedisAddress,
  type RedisChannels,
  type RedisConnection,
} from './connection.js'

const PORT = 6_379

type Place = ReturnType<typeof placeOf>
type Access = ReturnType<typeof accessFor>
type NodeClient = ReturnType<typeof clientAt>
type ClusterKeys = ReturnType<typeof keysOf>

/** A client for commands and one for subscriptions, not connected yet. */
export function clusterClients(
  cluster: readonly string[],
  tls: RedisAddress['tls'],
): { asking: RedisConnection; listening: RedisChannels } {
  const access = accessFor(cluster[0] as string, tls)
  const configured = cluster.map((url) => placeOf(url, PORT))
  const keys = new Replaced(() => keysOf(configured, access), 'node-error')
  let next = Math.floor(Math.random() * configured.length)
  const anyNode = () => {
    // Nodes may have been replaced since the configuration was written.
    const known = [...configured, ...(keys.client?.masters ?? [])]
    return clientAt(known[next++ % known.length] as Place, access)
  }
  return { asking: new ClusterClient(anyNode, keys), listening: new AnyNode(anyNode) }
}

/** Without reconnection, because a failed client is replaced. */
function accessFor(url: string, tls: RedisAddress['tls']) {
  const access = accessOf(url, tls)
  return { ...access, socket: { ...access.socket, reconnectStrategy: false as const } }
}

function clientAt({ host, port }: Place, access: Access) {
  return createClient({ ...access, socket: { ...access.socket, host, port }, ...COMMANDS })
}

function keysOf(nodes: readonly Place[], defaults: Access) {
  const rootNodes = nodes.map((socket) => ({ socket }))
  // Does not wait for connections to all primaries, because one of them may be lost.
  return createCluster({ rootNodes, defaults, minimizeConnections: true, ...COMMANDS })
}

/** The methods that all clients of the library have. */
interface LibraryClient {
  connect(): Promise<unknown>
  destroy(): unknown
  on(event: string, listener: (error: Error) => void): unknown
}

/** Replaces a client when it fails. */
class Replaced<C extends LibraryClient> {
  readonly #onError: ((error: Error) => void)[] = []
  readonly #onReady: (() => void)[] = []
  readonly #make: () => C
  /** The event of the library for a failed connection. */
  readonly #failure: string
  readonly #prepare: (client: C) => Promise<unknown>
  readonly #destroyed = new AbortController()
  #failures = 0
  /** Undefined while there is no connection. */
  client: C | undefined

  constructor(make: () => C, failure: string, prepare: (client: C) => Promise<unknown> = async () => {}) {
    this.#make = make
    this.#failure = failure
    this.#prepare = prepare
  }

  /** Resolves when connected, or destroyed. */
  async connect(): Promise<void> {
    const { signal } = this.#destroyed
    while (!signal.aborted) {
      const client = this.#make()
      client.on('error', () => {})
      client.on(this.#failure, (error) => this.#replace(client, error))
      try {
        await client.connect()
        await this.#prepare(client)
        if (signal.aborted) return void client.destroy()
        this.client = client
        this.#failures = 0
        for (const listener of this.#onReady) listener()
        return
      } catch (error) {
        client.destroy()
        if (!signal.aborted) this.#tell(error as Error)
      }
      await pause(backoff(this.#failures++, RECONNECT), signal)
    }
  }

  /** Runs commands. Rejects without a connection, or when they fail. */
  async use<T>(run: (client: C) => Promise<T>): Promise<T> {
    const { client } = this
    if (!client) throw new Error('There is no connection to the Redis Cluster')
    try {
      return await run(client)
    } catch (error) {
      if (!(error instanceof ErrorReply)) this.#replace(client, error as Error)
      throw error
    }
  }

  on(event: 'error' | 'ready', listener: (error: Error) => void): void {
    if (event === 'error') this.#onError.push(listener)
    else this.#onReady.push(listener as () => void)
  }

  destroy(): void {
    this.#destroyed.abort()
    this.client?.destroy()
    this.client = undefined
  }

  #tell(error: Error): void {
    for (const listener of this.#onError) listener(error)
  }

  #replace(client: C, error: Error): void {
    if (client !== this.client) return
    this.client = undefined
    client.destroy()
    this.#tell(error)
    pause(RECONNECT.first, this.#destroyed.signal).then(
      () => this.connect(),
      () => {},
    )
  }
}

/** Uses any node for channels. */
class AnyNode implements RedisChannels {
  readonly #node: Replaced<NodeClient>
  readonly #listeners = new Map<string, (message: Buffer) => void>()

  constructor(anyNode: () => NodeClient) {
    this.#node = new Replaced(anyNode, 'error', async (client) => {
      for (const [channel, listener] of this.#listeners) await client.subscribe(channel, listener, true)
    })
  }

  get isReady(): boolean {
    return this.#node.client?.isReady === true
  }

  connect(): Promise<unknown> {
    return this.#node.connect()
  }

  destroy(): void {
    this.#node.destroy()
  }

  on(event: 'error' | 'ready', listener: (error: Error) => void): void {
    this.#node.on(event, listener)
  }

  publish(channel: string, message: Buffer): Promise<number> {
    return this.#node.use((client) => client.publish(channel, message))
  }

  async subscribe(channel: string, listener: (message: Buffer) => void): Promise<void> {
    this.#listeners.set(channel, listener)
    await this.#node.use((client) => client.subscribe(channel, listener, true))
  }

  configGet(name: string): Promise<Record<string, string | undefined>> {
    return this.#node.use((client) => client.configGet(name) as Promise<Record<string, string | undefined>>)
  }
}

/** Uses any node for channels, and the primaries of their slots for keys. */
class ClusterClient extends AnyNode implements RedisConnection {
  readonly #keys: Replaced<ClusterKeys>

  constructor(anyNode: () => NodeClient, keys: Replaced<ClusterKeys>) {
    super(anyNode)
    this.#keys = keys
  }

  override connect(): Promise<unknown> {
    return Promise.all([super.connect(), this.#keys.connect()])
  }

  override destroy(): void {
    super.destroy()
    this.#keys.destroy()
  }

  override on(event: 'error' | 'ready', listener: (error: Error) => void): void {
    super.on(event, listener)
    this.#keys.on(event, listener)
  }

  withKeys<T>(run: (keys: Keys) => Promise<T>): Promise<T> {
    return this.#keys.use((client) => run(client as unknown as Keys))
  }
}
