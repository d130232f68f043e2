/**
 * What the bridge serves over HTTP: all mounts at the address for clients; health, metrics and the inspector at the one
 * for operators. What it needs for that is loaded when it listens.
 */
import type { FastifyInstance } from 'fastify'
import type { PemFiles } from '../base/net/pem-files.js'
import { CountedWindows } from '../clients/plugins/counted-windows.js'
import { TokenLives } from '../clients/plugins/token-lives.js'
import { groupsOf, type HttpListen, isLoopback, type Settings, secretOf, servedPaths } from '../config/settings.js'
import type { Certificate } from '../mcp/ports/events.js'
import { prefixed } from '../middle/group/names.js'
import { decisions } from '../middle/policy/approval/decisions.js'
import { filesAt } from './certificates.js'
import { observerOf } from './context.js'
import { givenSockets } from './given-sockets.js'
import { throwOf } from './listen-error.js'
import type { Front, Listener } from './listener.js'
import type { Mount } from './mount.js'
import { type HttpServiceOptions, type ListenerFor, Operators } from './operators.js'
import { endpointsOf, type Mounts, type Places, pathsOf, placesOf } from './places.js'
import { facadeOf, TokenIssuers } from './token-issuers.js'

export class HttpService {
  /** The requests of clients. */
  readonly requests = { open: 0, draining: false }
  readonly #options: HttpServiceOptions
  /** The counts for limits of requests. A reload keeps them. */
  readonly windows: CountedWindows
  #listen: HttpListen | undefined
  readonly issuers: TokenIssuers
  readonly operators: Operators
  /** Configured tokens that are accepted. */
  readonly #lives = new TokenLives()
  /** Whether another server of this process receives the requests. */
  #isAttached = false
  /** The certificate for all addresses. */
  #pem: PemFiles | undefined
  #listener: Listener | undefined
  #front: FastifyInstance | undefined
  #places: Places = { now: new Map(), before: new Map() }

  constructor(options: HttpServiceOptions) {
    this.#options = options
    const { replicas } = options.context
    this.issuers = new TokenIssuers(options.context)
    this.operators = new Operators(options, this.#listenerFor)
    this.windows = new CountedWindows(replicas && ((name, ms) => replicas.records.count('rate', name, ms)))
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
    const { replicas, workers } = this.#options.context
    this.#listen = listen
    this.#pem = settings.tls && filesAt('tls', settings.tls, this.#options.context.log)
    this.#front = await this.#build(settings, mounts)
    const bound = { maxConnections: settings.limits.connections, maxConnectionsOption: 'limits.connections' }
    this.#listener = await this.#listenerFor(this.#front, settings, {
      ...bound,
      entrance: workers?.entranceOf('listen'),
    })
    replicas?.serve((request, response) => this.#listener?.front.routing(request, response))
    await replicas?.connect().catch(throwOf('replicas.address'))
    const given = givenSockets(this.#options.context.env, process.pid, settings.admin !== undefined)
    const origin = await this.#listener.listen(listen, given.listen)
    await this.operators.serve(settings, given.admin)
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
    this.operators.close()
  }

  async close(): Promise<void> {
    this.issuers.stop()
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
    const http = await mount.clients.http()
    http.endSubscriptions()
  }

  async #build(settings: Settings, mounts: Mounts): Promise<FastifyInstance> {
    const { state, status, metrics, context, shared } = this.#options
    const { refusals, audit, desk, pageQuestions: questions } = shared
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
    const verifier = await this.issuers.verifierFor(settings)
    const tokens = Object.entries(settings.auth?.tokens ?? {})
    this.#lives.keepOnly(tokens.map(([name, token]) => [name, secretOf(token)]))
    const { front } = await import('./http-app.js')
    const app = await front({
      settings,
      listen,
      endpoints: await endpointsOf(settings, listen, mounts, places),
      refusals,
      audit,
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
            desk,
            questions,
            decided: decisions(audit, observerOf(context)),
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

  readonly #listenerFor: ListenerFor = async (front, { timeouts, socketMode }, bound) => {
    const { Listener } = await import('./listener.js')
    return new Listener(front, {
      ...bound,
      write: timeouts.write,
      pem: this.#pem,
      socketMode: Number.parseInt(socketMode, 8),
      refused: (fault, request) => this.#options.shared.refusals.note(fault, request),
    })
  }
}
