/**
 * What the bridge serves over HTTP: all mounts at the address for clients; health, metrics and the inspector at the one
 * for operators. What it needs for that is loaded when it listens.
 */
import type { FastifyInstance } from 'fastify'
import { INSPECT_ADDRESS } from '../config/schema/inspect.js'
import { isLoopback, type Listen, parseListen, type Settings } from '../config/settings.js'
import type { Refusals } from '../downstream/http/refusals.js'
import { INSPECT } from '../inspect/address.js'
import type { ServerNow } from '../inspect/views.js'
import { CountedWindows } from '../plugins/counted-windows.js'
import type { HealthOptions } from '../plugins/health.js'
import { filesAt } from './certificates.js'
import type { BridgeContext } from './context.js'
import { throwOf } from './listen-error.js'
import type { Listener } from './listener.js'
import type { Mount } from './mount.js'
import { publisher } from './publisher.js'

export interface HttpServiceOptions {
  context: BridgeContext
  refusals: Refusals
  /** What health checks report. */
  state: HealthOptions['state']
  metrics: HealthOptions['metrics']
  /** What the inspector shows of the servers now. */
  now: () => ServerNow[]
}

type Mounts = ReadonlyMap<string, Mount>
type HttpListen = Listen & { kind: 'http' }

/** Most connections to the `admin` address. */
const ADMIN_CONNECTIONS = 100

export class HttpService {
  /** The requests of clients. */
  readonly requests = { open: 0, draining: false }
  readonly #options: HttpServiceOptions
  /** The counts for limits of requests. A reload does not begin them anew. */
  readonly #windows: CountedWindows
  #listen: HttpListen | undefined
  #listener: Listener | undefined
  #front: FastifyInstance | undefined
  #admin: Listener | undefined
  #adminUrl: string | undefined
  #inspectUrl: string | undefined

  constructor(options: HttpServiceOptions) {
    this.#options = options
    const { replicas } = options.context
    this.#windows = new CountedWindows(replicas && ((name, ms) => replicas.records.count('rate', name, ms)))
  }

  /** The address of the inspector, without its token; undefined without an inspector on HTTP. */
  get inspectUrl(): string | undefined {
    return this.#inspectUrl
  }

  /** The `admin` address, if there is one. */
  get adminUrl(): string | undefined {
    return this.#adminUrl
  }

  get listening(): boolean {
    return this.#listener !== undefined
  }

  /** The number of connections of clients. */
  get connections(): number {
    return this.#listener?.connections ?? 0
  }

  /** Begins to listen. Resolves to the origin of the address for clients. */
  async listen(listen: HttpListen, settings: Settings, mounts: Mounts): Promise<string> {
    const { replicas, inspector } = this.#options.context
    this.#listen = listen
    this.#front = await this.#build(settings, mounts)
    this.#listener = await this.#listenerOf(this.#front, settings, settings.limits.connections)
    replicas?.serve((request, response) => this.#listener?.front.routing(request, response))
    await replicas?.connect()
    const origin = await this.#listener.listen(listen)
    if (settings.admin !== undefined) await this.#serveAdmin(settings, httpListen(settings.admin))
    else if (inspector) await this.#serveInspector(settings)
    return origin
  }

  /** Serves other mounts with other settings from now on, if it listens. Requests in progress are finished as they began. */
  async replace(settings: Settings, mounts: Mounts): Promise<void> {
    if (!this.#listener) return
    this.#front = await this.#build(settings, mounts)
    this.#listener.front = this.#front
    this.#listener.maxConnections = settings.limits.connections
    this.#listener.write = settings.timeouts.write
  }

  stopListening(): void {
    this.#listener?.close()
    this.#admin?.close()
  }

  async close(): Promise<void> {
    await this.#front?.close()
  }

  async #build(settings: Settings, mounts: Mounts): Promise<FastifyInstance> {
    const { refusals, state, metrics, context } = this.#options
    const listen = this.#listen as HttpListen
    // Metrics reveal the servers and their use, so they are served only on the loopback or with `auth.tokens`.
    const known = isLoopback(listen.host) || settings.auth?.tokens !== undefined
    const health = { state, detailed: false, metrics: known ? metrics : undefined }
    const { front } = await import('./http-app.js')
    const served = [...mounts].map(async ([name, mount]) => [name, await mount.http()] as const)
    return front({
      settings,
      listen,
      mounts: new Map(await Promise.all(served)),
      refusals,
      health: settings.admin === undefined ? health : undefined,
      published: await publisher(settings, listen, mounts),
      requests: this.requests,
      windows: this.#windows,
      isCarried: (connection) => context.replicas?.isCarried(connection) ?? false,
    })
  }

  async #serveAdmin(settings: Settings, listen: HttpListen): Promise<void> {
    const { state, metrics, context } = this.#options
    this.#admin = await this.#adminListener(settings, listen, { state, detailed: true, metrics })
    this.#adminUrl = await this.#admin.listen(listen).catch(throwOf('admin'))
    if (context.inspector) this.#inspectUrl = this.#adminUrl + INSPECT
  }

  /** Serves the inspector at its own address; if another process has its port, at any other port. */
  async #serveInspector(settings: Settings): Promise<void> {
    const listen = httpListen(INSPECT_ADDRESS)
    const listener = await this.#adminListener(settings, listen)
    this.#admin = listener
    const url = await listener.listen(listen).catch(() => listener.listen({ ...listen, port: 0 }))
    this.#inspectUrl = url + INSPECT
  }

  async #adminListener(settings: Settings, listen: HttpListen, health?: HealthOptions): Promise<Listener> {
    const { refusals, now, context } = this.#options
    const { inspector } = context
    const { adminFront } = await import('./http-app.js')
    const front = await adminFront({
      settings,
      listen,
      refusals,
      ...(health && { health }),
      ...(inspector && { inspect: (app: FastifyInstance) => inspector.register(app, now) }),
    })
    return this.#listenerOf(front, settings, ADMIN_CONNECTIONS)
  }

  async #listenerOf(front: FastifyInstance, settings: Settings, maxConnections: number): Promise<Listener> {
    const { refusals, context } = this.#options
    const { tls, timeouts, socketMode } = settings
    const { Listener } = await import('./listener.js')
    return new Listener(front, {
      maxConnections,
      write: timeouts.write,
      pem: tls && filesAt('tls', tls, context.log),
      socketMode: Number.parseInt(socketMode, 8),
      refused: (fault, request) => refusals.note(fault, request),
    })
  }
}

/** The HTTP address in a setting. Throws a TypeError for stdio. */
export function httpListen(text: string): HttpListen {
  const listen = parseListen(text)
  if (listen.kind !== 'http') throw new TypeError('listen is stdio, not an HTTP address')
  return listen
}
