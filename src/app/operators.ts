/** What operators are served over HTTP: health, metrics and status at the `admin` address, and the inspector there or at its own. */
import type { FastifyInstance } from 'fastify'
import type { HealthOptions } from '../clients/plugins/health.js'
import { INSPECT_ADDRESS } from '../config/schema/inspect.js'
import { type HttpListen, httpListen, type Settings } from '../config/settings.js'
import type { InspectedBridge } from '../mcp/ports/inspected-bridge.js'
import type { BridgeContext } from './context.js'
import { throwOf } from './listen-error.js'
import type { Listener, ListenerOptions } from './listener.js'
import type { Shared } from './shared.js'

/** Most connections to the `admin` address. */
const ADMIN_CONNECTIONS = 100

export interface HttpServiceOptions {
  context: BridgeContext
  shared: Shared
  /** What health checks report, and `/status`. */
  state: HealthOptions['state']
  status: HealthOptions['now']
  metrics: HealthOptions['metrics']
  /** What the inspector shows and calls. */
  inspected: InspectedBridge
}

/** Makes a listener for an application. */
export type ListenerFor = (
  front: FastifyInstance,
  settings: Settings,
  bound: Pick<ListenerOptions, 'maxConnections' | 'maxConnectionsOption' | 'entrance'>,
) => Promise<Listener>

export class Operators {
  /** The `admin` address, if there is one. */
  adminUrl: string | undefined
  /** The address of the inspector, without its token; undefined without an inspector on HTTP. */
  inspectUrl: string | undefined
  readonly #options: HttpServiceOptions
  readonly #listenerFor: ListenerFor
  #listener: Listener | undefined

  constructor(options: HttpServiceOptions, listenerFor: ListenerFor) {
    this.#options = options
    this.#listenerFor = listenerFor
  }

  /** Listens for them, if the settings say so. `given` is an open socket for the `admin` address. */
  async serve(settings: Settings, given: number | undefined): Promise<void> {
    const { state, status, metrics, context } = this.#options
    const { inspector } = context
    if (settings.admin !== undefined) {
      const listen = httpListen(settings.admin)
      this.#listener = await this.#make(settings, listen, { state, detailed: true, now: status, metrics })
      this.adminUrl = await this.#listener.listen(listen, given).catch(throwOf('admin'))
      if (inspector) this.inspectUrl = this.adminUrl + inspector.path
    } else if (inspector) {
      const listen = httpListen(INSPECT_ADDRESS)
      const listener = await this.#make(settings, listen)
      this.#listener = listener
      // If another process has its port, at any other port.
      const url = await listener.listen(listen).catch(() => listener.listen({ ...listen, port: 0 }))
      this.inspectUrl = url + inspector.path
    }
  }

  close(): void {
    this.#listener?.close()
  }

  async #make(settings: Settings, listen: HttpListen, health?: HealthOptions): Promise<Listener> {
    const { shared, inspected, context } = this.#options
    const { inspector, managed, workers } = context
    const { adminFront } = await import('./http-app.js')
    const front = await adminFront({
      settings,
      listen,
      refusals: shared.refusals,
      ...(health && { health, managed }),
      ...(inspector && {
        inspector: { path: inspector.path, register: (app: FastifyInstance) => inspector.register(app, inspected) },
      }),
    })
    return this.#listenerFor(front, settings, {
      maxConnections: ADMIN_CONNECTIONS,
      entrance: workers?.entranceOf('admin'),
    })
  }
}
