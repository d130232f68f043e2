/** The HTTP side of a mount: its endpoints, and the sessions of its legacy clients. */

import type { FastifyInstance, FastifyRequest, onRequestHookHandler } from 'fastify'
import { PROTECTED_RESOURCE } from '../base/texts/well-known.js'
import { endpoint } from '../clients/http/endpoint.js'
import { extraPaths } from '../clients/http/extra-paths.js'
import { forwardedHeadersIn } from '../clients/http/forwarded-headers.js'
import { ForwardedStreams } from '../clients/http/forwarded-streams.js'
import { HandedSessions } from '../clients/http/handed-sessions.js'
import type { HttpSession } from '../clients/http/session.js'
import { Sessions } from '../clients/http/sessions.js'
import { type SseSession, sse } from '../clients/http/sse.js'
import type { SessionSettings } from '../clients/legacy/session.js'
import { SharedListening } from '../clients/legacy/shared-listening.js'
import type { Logger } from '../clients/logger.js'
import type { PublicAddresses } from '../clients/plugins/reached.js'
import { shareOf, ssePaths } from '../config/settings.js'
import type { Gauge } from '../mcp/ports/events.js'
import type { Handler } from '../mcp/protocol/call.js'
import { isCarried } from '../mcp/protocol/headers.js'
import type { OverHttp, Upstream } from '../mcp/protocol/upstream.js'
import { Admission } from '../middle/policy/admission.js'
import { chosenFrom, type ForwardedHeader, headersIn, principalWith } from '../middle/policy/forwarding.js'
import type { CommonSettings } from './mount-settings.js'
import { auditedBy } from './refusing.js'
import type { Shared } from './shared.js'

export interface HttpMountOptions {
  /** The name of the server or group. */
  name: string
  isGroup: boolean
  upstream: Upstream
  log: Logger
  settings: CommonSettings
  /** Further paths whose requests are passed to the server. */
  further: readonly string[]
  sessionSettings: SessionSettings
  /** The headers of callers that servers get; undefined if no server gets any. */
  forwarded: (() => Forwarded) | undefined
  shared: Pick<Shared, 'replicas' | 'memory' | 'events' | 'refusals' | 'audit'>
}

/** Headers of callers that servers get, by the names that clients send. */
interface Forwarded {
  names: ReadonlySet<string>
  /** Those of the only server; undefined if several servers choose theirs. */
  list?: readonly ForwardedHeader[] | undefined
}

/** The paths of a server, and its addresses. */
export interface ServedAt {
  paths: readonly string[]
  /** The only server at these paths. Undefined if there are several, or if it is not reached over Streamable HTTP. */
  overHttp: OverHttp | undefined
  /** The addresses of endpoints, as clients know them. */
  addresses: PublicAddresses
  /** The server that had a path before a group took it over: its sessions continue there. */
  before?: ReadonlyMap<string, HttpMount> | undefined
}

/** The HTTP side of a server or group. */
export class HttpMount {
  readonly #options: HttpMountOptions
  /** Sessions of legacy clients, by transport. */
  readonly #sessions: { http: Sessions<HttpSession>; sse: Sessions<SseSession> }
  /** Sessions that a replica hands over when it shuts down. */
  readonly #handed: HandedSessions | undefined
  readonly #listening: SharedListening
  /** Ends the subscriptions of modern clients. */
  #endings = new Admission()
  /** Forwarded streams of other replicas. */
  readonly #forwarded = new ForwardedStreams()
  /** Its sessions go on elsewhere, where they can. */
  #leaves = false

  constructor(options: HttpMountOptions) {
    this.#options = options
    const { name, settings } = options
    const { replicas } = options.shared
    const bounds = boundsIn(settings)
    const handed = replicas && new HandedSessions(replicas, name)
    this.#handed = handed
    const ended = (session: HttpSession) => handed?.ended(session)
    const keeping = { ...bounds, replicas }
    this.#sessions = { http: new Sessions({ ...keeping, ended }), sse: new Sessions(keeping) }
    this.#listening = new SharedListening(options.upstream.handle)
  }

  /** Applies the settings, which have changed: bounds and times. Sessions go on. */
  adapt(): void {
    const { max, share, idle, gone, keepAlive } = boundsIn(this.#options.settings)
    this.#sessions.http.change({ max, share, idle, gone, keepAlive })
    this.#sessions.sse.change({ max, share, idle, gone, keepAlive })
  }

  /** The number of sessions of all kinds. */
  get sessionCount(): number {
    const { http, sse } = this.#sessions
    return http.size + sse.size
  }

  /** The usage of the bounds of sessions. */
  get gauges(): Gauge[] {
    const { name, isGroup, settings } = this.#options
    const whose = isGroup ? { group: name } : { server: name }
    const { clientSessions: limit } = settings.limits
    return [
      { bound: 'client_sessions', ...whose, used: this.#sessions.http.size, limit },
      { bound: 'client_sessions_sse', ...whose, used: this.#sessions.sse.size, limit },
    ]
  }

  /** Registers the paths of this server at a Fastify instance. */
  async register(app: FastifyInstance, { paths, overHttp, addresses, before }: ServedAt): Promise<void> {
    const { upstream, log, settings, sessionSettings, shared } = this.#options
    const { compat, timeouts, auth } = settings
    const { replicas, memory, refusals, events } = shared
    const passthrough = auth?.passthrough ?? false
    const { prefix: publicPrefix } = addresses
    const { listen } = this.#listening
    const arrived = this.#options.forwarded && takingHeaders(this.#options.forwarded)
    const forwarded = this.#forwarded
    const audit = auditedBy(shared.audit)
    const common = { upstream, log, settings: { ...sessionSettings, listen }, replicas, forwarded, memory, refusals }
    const { http, sse: streams } = this.#sessions
    const subscribe: Handler = (call) => this.#endings.policy(upstream.handle)(call)
    for (const path of paths) {
      const former = before?.get(path)
      const metadata = (request: FastifyRequest) => addresses.metadata(request, path)
      const refusing = { draftErrorCodes: compat.draftErrorCodes, ...(passthrough && { passthrough: { metadata } }) }
      if (overHttp && passthrough) {
        const resource = (request: FastifyRequest) => addresses.endpoint(request, path)
        const documents = metadataPaths(overHttp.url, addresses.metadataPaths(path))
        await app.register(extraPaths, { overHttp, paths: documents, resource, publicPrefix, passthrough, log })
      }
      await app.register(endpoint, {
        ...common,
        arrived,
        path,
        audit,
        subscribe,
        sessions: former ? http.beside(former.#sessions.http) : http,
        handed: this.#handed,
        events,
        speaks: overHttp && !upstream.asks ? () => overHttp.speaks() : undefined,
        refusing,
        compat,
        keepAlive: timeouts.keepAlive,
        commitAfter: timeouts.commitAfter,
      })
      await app.register(sse, {
        ...common,
        arrived,
        paths: ssePaths(path),
        publicPrefix,
        sessions: former ? streams.beside(former.#sessions.sse) : streams,
      })
    }
    const further = new Map(this.#options.further.map((path) => [path, path]))
    const [first = ''] = paths
    const resource = (request: FastifyRequest) => addresses.endpoint(request, first)
    if (overHttp && further.size > 0)
      await app.register(extraPaths, { overHttp, paths: further, resource, publicPrefix, passthrough, log })
  }

  /** Paths of the server's metadata, which say how to authenticate. Pages of all origins may read them. */
  metadata({ paths, overHttp, addresses }: Pick<ServedAt, 'paths' | 'overHttp' | 'addresses'>): readonly string[] {
    const { settings, further } = this.#options
    if (!overHttp) return []
    const own = settings.auth?.passthrough ? paths.flatMap((path) => addresses.metadataPaths(path)) : []
    return [...own, ...further.filter((path) => path.startsWith(PROTECTED_RESOURCE))]
  }

  /** Further paths without authentication. */
  open({ overHttp }: Pick<ServedAt, 'overHttp'>): readonly string[] {
    return overHttp ? this.#options.further : []
  }

  /** Ends the subscriptions of modern clients gracefully. Clients open them again at the new owner of the path. */
  endSubscriptions(): void {
    const endings = this.#endings
    this.#endings = new Admission()
    endings.end()
  }

  /** After `drain`: hands the sessions of legacy clients over to other replicas. Resolves when those can continue them. */
  async leave(): Promise<void> {
    this.#leaves = true
    this.#handed?.leave(this.#sessions.http)
    await this.#handed?.left
  }

  /** Leaves the sessions that the server itself has named: they go on at another mount, or when the bridge is started again. */
  leaveNamed(): void {
    if (this.#handed) return
    for (const { client, outlives } of this.#sessions.http) if (outlives) client.direct?.leave?.()
  }

  /** Admits only requests that continue those in progress. */
  drain(): void {
    this.#forwarded.end()
    this.#sessions.http.drain()
    this.#sessions.sse.drain()
  }

  /** Takes nothing new. */
  cut(): void {
    this.#sessions.http.cut = true
  }

  get unanswered(): number {
    return this.#sessions.http.unanswered + this.#sessions.sse.unanswered
  }

  /** Ends all sessions. */
  close(): void {
    // Only now, because a client may still have ended its session.
    if (this.#leaves) this.leaveNamed()
    this.#sessions.http.close()
    this.#sessions.sse.close()
  }
}

/** The bounds of sessions in settings. */
function boundsIn(settings: CommonSettings) {
  const { clientIdle: idle, clientGone: gone, keepAlive } = settings.timeouts
  return { max: settings.limits.clientSessions, share: shareOf(settings), idle, gone, keepAlive }
}

/** Headers of clients that a session of the server itself gets, whatever else it gets. */
const ALWAYS = /^(?:accept|content|mcp)-|^(?:accept|user-agent)$/

/** Takes the headers that servers get out of a request: from now on, they are a part of who calls. No others go on. */
function takingHeaders(forwarded: () => Forwarded): onRequestHookHandler {
  return (request, _reply, done) => {
    const { names, list } = forwarded()
    if (names.size === 0) return done()
    try {
      const found = headersIn(request.raw.rawHeaders, names)
      for (const name of Object.keys(forwardedHeadersIn(request.headers)))
        if (!ALWAYS.test(name) && !isCarried(name)) delete request.raw.headers[name]
      if (found) {
        const all = { ...request.credential, ...found }
        request.credential = list ? chosenFrom(all, list) : all
        request.principal = principalWith(request.principal, request.credential)
      }
      done()
    } catch (error) {
      done(error as Error)
    }
  }
}

/** The path of the metadata at the server, by those at the bridge. */
function metadataPaths({ pathname }: URL, here: readonly string[]): Map<string, string> {
  return new Map(here.map((path) => [path, PROTECTED_RESOURCE + pathname.replace(/\/$/, '')]))
}
