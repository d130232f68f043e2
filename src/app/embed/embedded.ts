/** A bridge as a part of an application: it listens nowhere, and its clients come as requests or transports. */
import process from 'node:process'
import type { Log } from '../../base/log/events.js'
import { versionOfBridge } from '../../base/version.js'
import { browserOf, ConfigError, type Settings, signsIn } from '../../config/settings.js'
import type { SdkTransport } from '../../mcp/ports/transport.js'
import type { SignInParts } from '../../services/oauth/sign-in-parts.js'
import { Bridge } from '../bridge.js'
import type { Front } from '../listener.js'
import type { Served } from '../served.js'
import { type Services, servicesFor } from '../services.js'
import { principalNamed } from './caller.js'
import { linesOf } from './client-transport.js'
import type { CommonOptions, ConnectOptions } from './options.js'
import { type EmbeddedPlace, settingsOf } from './settings.js'

export class EmbeddedBridge {
  readonly settings: Settings
  /** What the application says who sends a request, by the request of Node's HTTP server or by its connection. */
  readonly callers = new WeakMap<object, unknown>()
  readonly #bridge: Bridge
  readonly #log: Log
  readonly #transports = new Set<SdkTransport>()
  /** Transports that are being served. */
  readonly #piped = new Set<Promise<void>>()
  #closing: Promise<void> | undefined

  /** Rejects with a ConfigError. */
  static async create(options: CommonOptions, place: EmbeddedPlace, log: Log): Promise<EmbeddedBridge> {
    const given = settingsOf(options, place)
    const { settings, env } = given
    const signIn = signsIn(settings) ? await signInFor(settings, env, log) : undefined
    return new EmbeddedBridge(given, place, log, { services: await servicesFor(settings), signIn })
  }

  private constructor(
    { settings, inProcess, env }: ReturnType<typeof settingsOf>,
    place: EmbeddedPlace,
    log: Log,
    loaded: { services: Services; signIn: SignInParts | undefined },
  ) {
    this.settings = settings
    this.#log = log
    this.#bridge = new Bridge(settings, {
      ...loaded,
      log,
      version: versionOfBridge(),
      env,
      inProcess: (name) => inProcess.get(name),
      ...(place.hasPrincipals && {
        principalOf: (raw) => principalNamed(this.callers.get(raw) ?? this.callers.get(raw.socket)),
      }),
    })
  }

  /** Resolves to the handler for requests of Node's HTTP server. */
  attach(): Promise<Front['routing']> {
    return this.#bridge.attach()
  }

  /** Connects to the servers, so that the first calls do not wait for that. A failed connection is tried again with the first call. */
  warmUp(): void {
    this.#bridge.warmUp(() => {}).catch(() => {})
  }

  /** Serves a client at the other end of a transport. */
  async connect(transport: SdkTransport, { to, principal: name }: ConnectOptions = {}): Promise<void> {
    if (this.isClosed) throw new Error('The bridge is closed')
    const principal = principalNamed(name)
    if (principal === undefined && name !== undefined)
      throw new ConfigError([{ path: 'principal', message: 'is empty: name the user of the client, or leave it out' }])
    const lines = linesOf(transport)
    const served = this.#named(to)
    await transport.start()
    this.#transports.add(transport)
    const piped = served.clients
      .pipe({ ...lines, patience: 0, principal })
      .catch((error: unknown) => this.#log.error({ event: 'answer_failed', err: error }, 'serving a transport failed'))
      .then(async () => {
        this.#transports.delete(transport)
        await transport.close().catch(() => {})
      })
    this.#piped.add(piped)
    piped.finally(() => this.#piped.delete(piped)).catch(() => {})
  }

  /** Whether it has begun to close. */
  get isClosed(): boolean {
    return this.#closing !== undefined
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    await this.#bridge.close()
    await Promise.all([...this.#transports].map((transport) => transport.close().catch(() => {})))
    await Promise.all(this.#piped)
  }

  /** A server or group by its name; without one the only group, or else the only server, as on stdio. */
  #named(name: string | undefined): Pick<Served, 'clients'> {
    const { groups, mounts } = this.#bridge
    const all = [...groups.keys(), ...mounts.keys()]
    if (name !== undefined) {
      const named = groups.get(name) ?? mounts.get(name)
      if (named) return named
      throw new ConfigError([{ path: 'to', message: `names "${name}", and there is ${all.join(', ')}` }])
    }
    const [only, ...others] = groups.size > 0 ? groups.values() : mounts.values()
    if (only && others.length === 0) return only
    throw new ConfigError([{ path: 'to', message: `is required, to choose one of ${all.join(', ')}` }])
  }
}

/** Signs in to servers with what is stored or configured. An application has nobody who could be asked. */
async function signInFor(settings: Settings, env: CommonOptions['env'] & object, log: Log) {
  const { signInParts } = await import('../../services/oauth/sign-in-parts.js')
  return signInParts({
    folder: settings.oauth.store,
    browser: browserOf(settings) ?? 'none',
    env,
    platform: process.platform,
    uid: process.geteuid?.(),
    show: () => false,
    onDegraded: (why) =>
      log.warn({ event: 'tokens_not_stored', why }, 'cannot store tokens; they are lost when the process ends'),
  })
}
