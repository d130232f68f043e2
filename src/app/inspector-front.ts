/**
 * The application for calls from the inspector: every server and group at a path of its own, with all policies, and one
 * principal. Nobody can connect to it.
 */

import { Fault } from '../base/fault/fault.js'
import type { Settings } from '../config/settings.js'
import type { HiddenItems, InspectedBridge, InspectedTarget, TargetRequest } from '../mcp/ports/inspected-bridge.js'
import { hiddenOf, hiddenOfGroup } from './hidden.js'
import type { FrontOptions, MountEndpoint } from './http-app.js'
import type { InMemoryHandler } from './in-memory-http.js'
import type { Mounts } from './places.js'
import type { Served } from './served.js'

/** The principal of calls from the inspector. Names in the configuration cannot be this one. */
const INSPECTOR = 'inspector'

/** What is served now. */
export interface Current {
  settings: Settings
  mounts: Mounts
}

type Parts = Pick<FrontOptions, 'refusals' | 'audit' | 'requests' | 'windows'>

const LISTEN = { kind: 'http', host: 'localhost', port: 0, path: '/' } as const

/** Calls what a bridge serves. The application is built for the first call, and again after a reload. */
export class InspectorFront implements Pick<InspectedBridge, 'targets' | 'hidden' | 'call'> {
  readonly #current: () => Current
  readonly #parts: Parts
  #built:
    | { of: Mounts['servers']; groups: Mounts['groups']; settings: Settings; fetch: Promise<InMemoryHandler> }
    | undefined

  constructor(current: () => Current, parts: Parts) {
    this.#current = current
    this.#parts = parts
  }

  /** Of a group and a server with the same name, the group. */
  targets(): InspectedTarget[] {
    const { groups, servers } = this.#current().mounts
    return [
      ...[...groups.keys()].map((name): InspectedTarget => ({ name, kind: 'group' })),
      ...[...servers.keys()]
        .filter((name) => !groups.has(name))
        .map((name): InspectedTarget => ({ name, kind: 'server' })),
    ]
  }

  async hidden(name: string): Promise<HiddenItems | undefined> {
    const { groups, servers } = this.#current().mounts
    const group = groups.get(name)
    if (group) return hiddenOfGroup(group, INSPECTOR)
    const server = servers.get(name)
    return server && hiddenOf(server.policies.hiding, INSPECTOR)
  }

  async call(name: string, { method, headers, body, signal }: TargetRequest): Promise<Response | undefined> {
    const { groups, servers } = this.#current().mounts
    if (!groups.has(name) && !servers.has(name)) return undefined
    if (this.#parts.requests.draining) throw new Fault('draining', 'The bridge is shutting down', { retryAfter: 1 })
    const fetch = await this.#fetch()
    const url = `http://localhost${pathOf(name)}`
    return fetch(new Request(url, { method, headers, body: body ?? null, signal }), undefined)
  }

  #fetch(): Promise<InMemoryHandler> {
    const { settings, mounts } = this.#current()
    const { servers, groups } = mounts
    const known = this.#built
    if (known?.of === servers && known.groups === groups && known.settings === settings) return known.fetch
    const fetch = this.#build(settings, mounts)
    const built = { of: servers, groups, settings, fetch }
    this.#built = built
    fetch.catch(() => {
      if (this.#built === built) this.#built = undefined
    })
    return fetch
  }

  async #build(settings: Settings, { servers, groups }: Mounts): Promise<InMemoryHandler> {
    const served = new Map<string, Served>([...servers, ...groups])
    const endpoints = [...served].map(async ([name, mount]): Promise<MountEndpoint> => {
      const overHttp = servers.get(name) === mount ? servers.get(name)?.server.overHttp : undefined
      return { mount: await mount.clients.http(), paths: [pathOf(name)], overHttp }
    })
    const [{ front }, { fetcher }] = await Promise.all([import('./http-app.js'), import('./in-memory-http.js')])
    const app = await front({
      ...this.#parts,
      // Who calls is known, and nobody else can connect.
      settings: { ...settings, auth: undefined, publicUrl: undefined, trustedProxies: [] },
      listen: LISTEN,
      endpoints: await Promise.all(endpoints),
      health: undefined,
      publisher: undefined,
      verify: undefined,
      replicas: undefined,
      attached: { principalOf: () => INSPECTOR },
    })
    return fetcher((request, response) => app.routing(request, response), new WeakMap())
  }
}

/** The last part is for the paths of HTTP+SSE, which lie beside it. A name can be "..", which alone would be no part of a path. */
function pathOf(name: string): string {
  return `/of-${name}/mcp`
}
