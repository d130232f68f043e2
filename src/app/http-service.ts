/**
 * What the bridge serves over HTTP: all mounts at the address for clients; health, metrics and the inspector at the one
 * for operators. What it needs for that is loaded when it listens.
 */
import type { FastifyInstance } from 'fastify'
import type { PemFiles } from '../base/net/pem-files.js'
import type { Refusals } from '../clients/http/refusals.js'
import { CountedWindows } from '../clients/plugins/counted-windows.js'
import type { HealthOptions } from '../clients/plugins/health.js'
import { TokenLives } from '../clients/plugins/token-lives.js'
import { INSPECT_ADDRESS } from '../config/schema/inspect.js'
import {
  directIssuers,
  groupPaths,
  groupsOf,
  isLoopback,
  isOnBehalf,
  isStdio,
  type Listen,
  parseListen,
  requestedScopes,
  type Settings,
  secretOf,
  servedPaths,
} from '../config/settings.js'
import type { Certificate, IssuerState } from '../mcp/ports/events.js'
import type { InspectedBridge } from '../mcp/ports/inspected-bridge.js'
import { prefixed } from '../middle/group/names.js'
import { decisions } from '../middle/policy/approval/decisions.js'
import type { PageQuestions } from '../middle/policy/approval/page-questions.js'
import type { AuditLog } from '../middle/policy/audit.js'
import type { Desk } from '../services/oauth/page/desk.js'
import type { Verifier } from '../services/oauth/server/verifier.js'
import { filesAt } from './certificates.js'
import { type BridgeContext, observerOf } from './context.js'
import { givenSockets } from './given-sockets.js'
import type { GroupMount } from './group-mount.js'
import type { FrontOptions, MountEndpoint } from './http-app.js'
import { issuerReport } from './issuer-report.js'
import { throwOf } from './listen-error.js'
import type { Front, Listener, ListenerOptions } from './listener.js'
import type { Mount } from './mount.js'

export interface HttpServiceOptions {
  context: BridgeContext
  refusals: Refusals
  /** Where the audit log goes, if there is one. */
  audit?: AuditLog | undefined
  /** Where people sign in to servers over the network. */
  desk: () => Desk | undefined
  questions: PageQuestions
  /** What health checks report, and `/status`. */
  state: HealthOptions['state']
  status: HealthOptions['now']
  metrics: HealthOptions['metrics']
  /** What the inspector shows and calls. */
  inspected: InspectedBridge
}

/** What is served: servers and groups, each by name. */
export interface Mounts {
  servers: ReadonlyMap<string, Mount>
  groups: ReadonlyMap<string, GroupMount>
}

/** The current server or group of each path, and the server that had the path before a group took it over. */
interface Places {
  now: ReadonlyMap<string, Mount | GroupMount>
  before: ReadonlyMap<string, Mount>
}

type HttpListen = Listen & { kind: 'http' }
type Bound = Pick<ListenerOptions, 'maxConnections' | 'maxConnectionsOption' | 'entrance'>

/** Most connections to the `admin` address. */
const ADMIN_CONNECTIONS = 100

export class HttpService {
  /** The requests of clients. */
  readonly requests = { open: 0, draining: false }
  readonly #options: HttpServiceOptions
  /** The counts for limits of requests. A reload keeps them. */
  readonly windows: CountedWindows
  #listen: HttpListen | undefined
  /** Checks tokens of identity providers. It stays, with keys and checked tokens, until their configuration changes. */
  #verifier: { plan: string; verifier: Verifier } | undefined
  /** Configured tokens that are accepted. */
  readonly #lives = new TokenLives()
  /** Whether another server of this process receives the requests. */
  #isAttached = false
  /** The certificate for all addresses. */
  #pem: PemFiles | undefined
  #listener: Listener | undefined
  #front: FastifyInstance | undefined
  #places: Places = { now: new Map(), before: new Map() }
  #admin: Listener | undefined
  #adminUrl: string | undefined
  #inspectUrl: string | undefined

  constructor(options: HttpServiceOptions) {
    this.#options = options
    const { replicas } = options.context
    this.windows = new CountedWindows(replicas && ((name, ms) => replicas.records.count('rate', name, ms)))
  }

  /** The address of the inspector, without its token; undefined without an inspector on HTTP. */
  get inspectUrl(): string | undefined {
    return this.#inspectUrl
  }

  /** The `admin` address, if there is one. */
  get adminUrl(): string | undefined {
    return this.#adminUrl
  }

  /** Its own certificate; undefined without TLS. */
  get certificate(): Certificate | undefined {
    const expiresAt = this.#pem?.expiresAt
    return expiresAt === undefined ? undefined : { use: 'listen', expiresAt }
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
    const { replicas, inspector, workers } = this.#options.context
    this.#listen = listen
    this.#pem = settings.tls && filesAt('tls', settings.tls, this.#options.context.log)
    this.#front = await this.#build(settings, mounts)
    const bound = { maxConnections: settings.limits.connections, maxConnectionsOption: 'limits.connections' }
    this.#listener = await this.#listenerOf(this.#front, settings, {
      ...bound,
      entrance: workers?.entranceOf('listen'),
    })
    replicas?.serve((request, response) => this.#listener?.front.routing(request, response))
    await replicas?.connect().catch(throwOf('replicas.address'))
    const given = givenSockets(this.#options.context.env, process.pid, settings.admin !== undefined)
    const origin = await this.#listener.listen(listen, given.listen)
    if (settings.admin !== undefined) await this.#serveAdmin(settings, httpListen(settings.admin), given.admin)
    else if (inspector) await this.#serveInspector(settings, inspector.path)
    return origin
  }

  /** Does not listen. Resolves to the handler for requests that another server of this process receives. */
  async attach(listen: HttpListen, settings: Settings, mounts: Mounts): Promise<Front['routing']> {
    this.#listen = listen
    this.#isAttached = true
    const front = await this.#build(settings, mounts)
    this.#front = front
    return (request, response) => front.routing(request, response)
  }

  /** Serves other mounts with other settings from now on, if it listens. Requests in progress are finished as they began. */
  async replace(settings: Settings, mounts: Mounts): Promise<void> {
    if (!this.#listener) return
    const known = this.#places.before
    this.#front = await this.#build(settings, mounts)
    this.#listener.front = this.#front
    for (const [path, mount] of this.#places.before)
      if (known.get(path) !== mount) await this.#handOver(path, mount, settings)
    this.#listener.maxConnections = settings.limits.connections
    this.#listener.write = settings.timeouts.write
  }

  /** From now on, each answer to a client ends its connection. */
  leave(): void {
    this.#listener?.leave()
  }

  /** Accepts no more connections of clients; open ones stay. */
  async stopAccepting(): Promise<void> {
    await this.#listener?.stopAccepting()
  }

  /** Ends all connections. */
  stopListening(): void {
    this.#listener?.close()
    this.#admin?.close()
  }

  async close(): Promise<void> {
    this.#verifier?.verifier.stop()
    await this.#front?.close()
  }

  /** A group takes over the path of a server: logs that, and ends the subscriptions there. */
  async #handOver(path: string, mount: Mount, settings: Settings): Promise<void> {
    const { name: server } = mount
    const group = this.#places.now.get(path)?.name
    const alone = servedPaths(settings, this.#listen as HttpListen)
      .get(server)
      ?.at(-1)
    const { bareNames, members = [] } = groupsOf(settings).get(group ?? '') ?? {}
    const member = bareNames ? undefined : members.find((one) => one.server === server)
    const prefix = member && prefixed(member, '')
    this.#options.context.log.warn(
      { event: 'path_grouped', path, group, server, prefix, alone },
      'a group has the path of a server now: names begin with the prefix there, and are as before at the path of the server alone',
    )
    const http = await mount.http()
    http.endSubscriptions()
  }

  async #build(settings: Settings, mounts: Mounts): Promise<FastifyInstance> {
    const { refusals, state, status, metrics, context, desk, questions } = this.#options
    const listen = this.#listen as HttpListen
    const places = placesOf(settings, listen, mounts, this.#places)
    // Metrics and status reveal the servers and their use, so they are served only on the loopback or with `auth.tokens`.
    const known = isLoopback(listen.host) || settings.auth?.tokens !== undefined
    const health = {
      state,
      detailed: false,
      now: known ? status : undefined,
      metrics: known ? metrics : undefined,
    }
    const verifier = await this.#verifierFor(settings)
    const tokens = Object.entries(settings.auth?.tokens ?? {})
    this.#lives.keepOnly(tokens.map(([name, token]) => [name, secretOf(token)]))
    const { front } = await import('./http-app.js')
    const app = await front({
      settings,
      listen,
      endpoints: await endpointsOf(settings, listen, mounts, places),
      refusals,
      audit: this.#options.audit,
      // An application around the bridge has its own paths for these.
      health: settings.admin === undefined && !this.#isAttached ? health : undefined,
      publisher:
        settings.publish && !this.#isAttached
          ? await (await import('../services/discovery/publisher.js')).publisher(settings, listen, mounts)
          : undefined,
      requests: this.requests,
      verify: verifier?.verify,
      lives: this.#lives,
      facade: facadeOf(verifier, settings),
      issuerDocument: verifier?.issuerDocument,
      // An application around the bridge has its own paths.
      page: this.#isAttached
        ? undefined
        : (await import('./sign-in-page.js')).signInPageOf({
            settings,
            listen,
            paths: pathsOf(settings, listen, mounts).flatMap(([, paths]) => paths),
            accounts: new Map([...mounts.servers].map(([name, { accounts }]) => [name, accounts])),
            desk: desk(),
            questions,
            decided: decisions(this.#options.audit, observerOf(context)),
            log: context.log,
            network: context.signIn?.network,
          }),
      windows: this.windows,
      replicas: context.replicas,
      attached: this.#isAttached ? { principalOf: context.principalOf } : undefined,
    })
    this.#places = places
    return app
  }

  /** Whether the keys of identity providers can be had. */
  get issuers(): readonly IssuerState[] {
    return this.#verifier?.verifier.states ?? []
  }

  /** Loads the code that checks tokens of identity providers, if any are configured. */
  async #verifierFor({ auth, oauth: { allow }, mcpServers }: Settings): Promise<Verifier | undefined> {
    const issuers = auth?.issuers
    if (!issuers) {
      this.#verifier?.verifier.close()
      this.#verifier = undefined
      return undefined
    }
    const shows = Object.values(mcpServers).some((own) => !isStdio(own) && own.oauth && isOnBehalf(own.oauth))
    const plan = JSON.stringify([issuers, allow, shows])
    if (this.#verifier?.plan !== plan) {
      const { Verifier } = await import('../services/oauth/server/verifier.js')
      const { signIn, replicas, log } = this.#options.context
      const { network } = signIn ?? {}
      const report = issuerReport(log)
      const verifier = new Verifier({ issuers, allow, network, shows, shared: replicas?.records, report })
      this.#verifier?.verifier.close()
      this.#verifier = { plan, verifier }
      // Nobody waits: without keys, requests are answered with 503 until they are there.
      verifier.prepare().catch(() => {})
    }
    return this.#verifier.verifier
  }

  async #serveAdmin(settings: Settings, listen: HttpListen, given: number | undefined): Promise<void> {
    const { state, status, metrics, context } = this.#options
    const health = { state, detailed: true, now: status, metrics }
    this.#admin = await this.#adminListener(settings, listen, health)
    this.#adminUrl = await this.#admin.listen(listen, given).catch(throwOf('admin'))
    if (context.inspector) this.#inspectUrl = this.#adminUrl + context.inspector.path
  }

  /** Serves the inspector at its own address; if another process has its port, at any other port. */
  async #serveInspector(settings: Settings, path: string): Promise<void> {
    const listen = httpListen(INSPECT_ADDRESS)
    const listener = await this.#adminListener(settings, listen)
    this.#admin = listener
    const url = await listener.listen(listen).catch(() => listener.listen({ ...listen, port: 0 }))
    this.#inspectUrl = url + path
  }

  async #adminListener(settings: Settings, listen: HttpListen, health?: HealthOptions): Promise<Listener> {
    const { refusals, inspected, context } = this.#options
    const { inspector } = context
    const { adminFront } = await import('./http-app.js')
    const front = await adminFront({
      settings,
      listen,
      refusals,
      ...(health && { health, managed: context.managed }),
      ...(inspector && {
        inspector: { path: inspector.path, register: (app: FastifyInstance) => inspector.register(app, inspected) },
      }),
    })
    const entrance = context.workers?.entranceOf('admin')
    return this.#listenerOf(front, settings, { maxConnections: ADMIN_CONNECTIONS, entrance })
  }

  async #listenerOf(front: FastifyInstance, settings: Settings, bound: Bound): Promise<Listener> {
    const { refusals } = this.#options
    const { timeouts, socketMode } = settings
    const { Listener } = await import('./listener.js')
    return new Listener(front, {
      ...bound,
      write: timeouts.write,
      pem: this.#pem,
      socketMode: Number.parseInt(socketMode, 8),
      refused: (fault, request) => refusals.note(fault, request),
    })
  }
}

/** The facade in front of an identity provider, if there is one. */
function facadeOf(verifier: Verifier | undefined, { auth }: Settings): FrontOptions['facade'] {
  const facade = verifier?.facade
  return (
    facade && {
      scopes: requestedScopes(auth),
      alone: directIssuers(auth).length === 1,
      register: (asked) => facade.register(asked),
      authorize: (query) => facade.authorize(query),
      token: (form, from) => facade.token(form, from),
    }
  )
}

/** The endpoints with their paths. Groups come first, because people look for the address with all of their servers. */
function pathsOf(settings: Settings, listen: HttpListen, { servers, groups }: Mounts) {
  const paths = { groups: groupPaths(settings, listen), servers: servedPaths(settings, listen) }
  return [
    ...[...groups].map(([name, mount]) => [mount, paths.groups.get(name) ?? []] as const),
    ...[...servers].map(([name, mount]) => [mount, paths.servers.get(name) ?? []] as const),
  ]
}

/** The owner of each path. While a group has the path of a server that is still served, that server is remembered. */
function placesOf(settings: Settings, listen: HttpListen, mounts: Mounts, last: Places): Places {
  const now = new Map(pathsOf(settings, listen, mounts).flatMap(([mount, paths]) => paths.map((path) => [path, mount])))
  const before = new Map<string, Mount>()
  for (const path of [...groupPaths(settings, listen).values()].flat()) {
    const had = last.now.get(path)
    const former = had && mounts.servers.get(had.name) === had ? had : last.before.get(path)
    if (former && mounts.servers.get(former.name) === former) before.set(path, former as Mount)
  }
  return { now, before }
}

async function endpointsOf(
  settings: Settings,
  listen: HttpListen,
  mounts: Mounts,
  { before }: Places,
): Promise<MountEndpoint[]> {
  const former = new Map(
    await Promise.all([...before].map(async ([path, mount]) => [path, await mount.http()] as const)),
  )
  return Promise.all(
    pathsOf(settings, listen, mounts).map(async ([mount, paths]) => ({
      mount: await mount.http(),
      paths,
      overHttp: aloneAt(mount, settings, mounts)?.overHttp,
      before: former,
    })),
  )
}

/** The only server of a mount; undefined if there are several. */
function aloneAt(mount: Mount | GroupMount, settings: Settings, { servers }: Mounts): Mount | undefined {
  const server = servers.get(mount.name)
  if (server === mount) return server
  const [only, ...others] = groupsOf(settings).get(mount.name)?.members ?? []
  return only && others.length === 0 ? servers.get(only.server) : undefined
}

/** The HTTP address in a setting. Throws a TypeError for stdio. */
export function httpListen(text: string): HttpListen {
  const listen = parseListen(text)
  if (listen.kind !== 'http') throw new TypeError('listen is stdio, not an HTTP address')
  return listen
}
