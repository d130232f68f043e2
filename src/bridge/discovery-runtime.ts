/** Discovery as it is done: what the parts of it are here, and what may be reached by whom. */

import { platform } from 'node:os'
import { resolve } from 'node:path'
import type { TLSSocket } from 'node:tls'
import { ConfigError, type Elsewhere, foundServer, type ServerSettings, type Settings } from '../config/settings.js'
import { type Candidate, Findings } from '../discovery/candidate.js'
import { Cycles, type CyclesOptions, type FailedCycle } from '../discovery/cycle.js'
import {
  forgetManifest,
  handshakeFailure,
  isConfigured,
  type Meeting,
  type Parts,
  type Vouched,
} from '../discovery/discover.js'
import { documents } from '../discovery/documents.js'
import { canonical } from '../discovery/endpoint.js'
import { failure } from '../discovery/failure.js'
import { homeFolder } from '../discovery/home.js'
import { readManifest } from '../discovery/manifest.js'
import { meaningOf } from '../discovery/sources/address.js'
import { findInFiles, finding, usualFiles } from '../discovery/sources/files.js'
import { findInRegistry } from '../discovery/sources/registry.js'
import { findAtHost } from '../discovery/sources/well-known.js'
import { judge } from '../discovery/trust/judge.js'
import { assertPinned, type Certificate, lookAt, PinError, pinnedConnector } from '../discovery/trust/pin.js'
import { defaultStorePath, TrustStore } from '../discovery/trust/store.js'
import { type ConnectOptions, guardedConnector } from '../net/connect.js'
import type { Failure } from '../net/failure.js'
import { Guard } from '../net/guard.js'
import { toolList } from '../policy/tool-list.js'
import { Memory } from '../protocol/memory.js'
import type { Payload } from '../rpc/splice.js'
import { within } from '../time.js'
import { Server } from '../upstream/server.js'
import type { BridgeContext } from './context.js'
import { inspect } from './inspect.js'
import { serverOptions } from './server-options.js'

export interface DiscoveryOptions {
  settings: Settings
  surroundings: BridgeContext
  elsewhere: Elsewhere
  /** How the network is reached, and time passes, where that is not as usual. */
  network?: Pick<ConnectOptions, 'ca' | 'resolve'> | undefined
  timing?: Pick<CyclesOptions, 'now' | 'sleep' | 'random'> | undefined
  /** Is told of each failed cycle. */
  told?: (failed: FailedCycle) => void
  signal?: AbortSignal | undefined
}

/** The files that people have for other programs, as something to look for servers in. */
export const USUAL_FILES = 'files:'
/** Bytes that all servers together may have us keep while they are met. */
const MEMORY = 64 * 1024 * 1024
/** Milliseconds for a handshake: over the network, and with a program that may first have to be fetched. */
const MEETING = { http: 20_000, stdio: 60_000 }
const TIMES = { probe: 8_000, initialize: 10_000 }
/** Milliseconds for which nobody is asked again who they are, unless something has happened. */
const FRESH = 300_000
/** Of the network, nothing is filled in. */
const NOWHERE: Elsewhere = {
  env: {},
  read() {
    throw new Error('it is not from here')
  },
}

export class Discovery {
  readonly store: TrustStore
  readonly parts: Parts
  readonly #options: DiscoveryOptions
  readonly #guard: { allowed: readonly string[]; allowLoopback: boolean }
  readonly #meetings: Cycles<Meeting>
  readonly #memory = new Memory({ max: MEMORY })
  /** Entries of the configuration itself, in which all is filled in, by their endpoints. */
  readonly #configured = new Map<string, ServerSettings>()
  /** Why endpoints are left alone that are. */
  readonly #reasons = new Map<string, string>()
  /** Under which pins endpoints have been met. */
  readonly #metUnder = new Map<string, string>()

  /** Throws a ConfigError where what may be reached is said in a way that cannot be understood. */
  constructor(options: DiscoveryOptions) {
    const { settings, surroundings, network, timing, told = () => {}, signal } = options
    this.#options = options
    this.store = new TrustStore({
      path: storePath(settings.trustStore, surroundings.env),
      ...(timing?.now && { now: timing.now }),
    })
    this.#guard = { allowed: settings.discoverAllow, allowLoopback: settings.discoverLoopback }
    try {
      new Guard(this.#guard)
    } catch (cause) {
      throw new ConfigError([
        { path: 'discoverAllow', message: cause instanceof Error ? cause.message : String(cause) },
      ])
    }
    const { fetch, forget } = documents({ ...this.#guard, ...network, ...timing, onFailed: told, signal })
    this.#meetings = new Cycles({
      ...timing,
      signal,
      onFailed: (failed) => {
        this.#reasons.set(failed.endpoint, failed.error.message)
        told({ ...failed, endpoint: failed.endpoint.replace(/[?#].*$/s, '') })
      },
    })
    this.parts = {
      fetch,
      forget,
      locate: (target) => this.#locate(target),
      verify: (fetched) => this.store.verify(fetched),
      pinsOf: (origin) => this.store.pinsOf(origin),
      meet: (candidate, pins) => this.#meetInCycles(candidate, pins),
      judge: (facts) => judge(facts, this.store, (timing?.now ?? Date.now)()),
    }
  }

  /** What the configuration names by itself. */
  async own(): Promise<Findings> {
    const found = new Findings()
    for (const [name, entry] of Object.entries(this.#options.settings.mcpServers)) {
      await found.attempt(name, () => {
        const one = finding(name, { ...entry }, 'the configuration')
        this.#configured.set(canonical(one.endpoint), entry)
        found.findings.push(one)
      })
    }
    return found
  }

  /** Whether the configuration names the endpoint by itself. */
  isOwn({ endpoint }: Candidate): boolean {
    return this.#configured.has(canonical(endpoint))
  }

  /** What would stand in the configuration. Throws a ConfigError. */
  entryOf(candidate: Candidate): ServerSettings {
    const { name, entry, endpoint } = candidate
    const configured = this.#configured.get(canonical(endpoint))
    if (configured) return configured
    return foundServer(name, entry, isConfigured(candidate) ? this.#options.elsewhere : NOWHERE)
  }

  /** Until when an endpoint is left alone, and why; undefined where it is not. */
  cooling(endpoint: string): { until: number; reason: string } | undefined {
    const until = this.#meetings.coolsUntil(endpoint)
    return until === undefined ? undefined : { until, reason: this.#reasons.get(endpoint) ?? 'it failed too often' }
  }

  /** Has an endpoint met again the next time. */
  doubt(endpoint: string): void {
    this.#meetings.forget(endpoint)
  }

  forgetManifest({ url }: Vouched): void {
    forgetManifest(url, this.parts)
  }

  /**
   * Makes connections to a candidate: of what the network has named, only to where the guard lets them; under pins, only to
   * who has a pinned key. Undefined where any connection will do.
   */
  connectorTo(candidate: Candidate, pins: readonly string[] | undefined, mismatched: () => void = () => {}) {
    const { endpoint } = candidate
    if (endpoint.kind !== 'http') return undefined
    const { origin } = new URL(endpoint.url)
    // A person may name what is in their own network.
    if (isConfigured(candidate)) return pins && pinnedConnector(origin, pins)
    const secured = (socket: TLSSocket, host: string) => {
      try {
        if (pins) assertPinned(socket, host, pins)
      } catch (error) {
        if (error instanceof PinError) mismatched()
        throw error
      }
    }
    return guardedConnector({ ...this.#options.network, guard: new Guard(this.#guard), secured })
  }

  /** What the certificate of an origin says, whoever it is. Rejects with a Failure. */
  lookAt(origin: string): Promise<Certificate> {
    return lookAt(origin, guardedConnector({ ...this.#options.network, guard: new Guard(this.#guard) }))
  }

  async #locate(target: string): Promise<Findings> {
    const { settings, surroundings } = this.#options
    const { fetch } = this.parts
    if (target === USUAL_FILES) {
      const home = homeFolder() ?? ''
      const around = { platform: platform(), home, cwd: resolve('.'), appData: surroundings.env['APPDATA'] }
      return findInFiles(usualFiles(around), { home })
    }
    const meaning = meaningOf(target)
    switch (meaning.kind) {
      case 'registry':
        return findInRegistry(meaning.query, fetch, settings.registry)
      case 'host':
        return findAtHost(meaning.origin, fetch, readManifest)
      case 'file':
        return findInFiles([meaning.path], { home: homeFolder() ?? '', wanted: true })
      case 'server': {
        const found = new Findings()
        found.findings.push(meaning.finding)
        return found
      }
    }
  }

  #meetInCycles(candidate: Candidate, pins: readonly string[] | undefined): Promise<Meeting> {
    const endpoint = canonical(candidate.endpoint)
    const under = JSON.stringify(pins ?? null)
    // Whom somebody has met under other pins is not known under these.
    if (this.#metUnder.get(endpoint) !== under) this.doubt(endpoint)
    this.#metUnder.set(endpoint, under)
    return this.#meetings.run(endpoint, async () => ({ value: await this.#meet(candidate, pins), freshFor: FRESH }))
  }

  /** Shakes hands with a server and asks for its tools, as nobody in particular. Rejects with a Failure. */
  async #meet(candidate: Candidate, pins: readonly string[] | undefined): Promise<Meeting> {
    const { settings, surroundings } = this.#options
    const isProgram = candidate.endpoint.kind === 'stdio'
    let server: Server | undefined
    try {
      const all: Settings = {
        ...settings,
        auth: undefined,
        stateKeys: [],
        timeouts: { ...settings.timeouts, ...(!isProgram && TIMES) },
      }
      const quiet = { ...surroundings, metrics: undefined, tracer: undefined }
      const connect = this.connectorTo(candidate, pins)
      server = new Server(
        serverOptions(candidate.name, this.entryOf(candidate), all, quiet, this.#memory, undefined, { connect }),
      )
      return await within(meeting(server), MEETING[isProgram ? 'stdio' : 'http'], () => {
        throw failure('handshake', 'timeout', 'It took too long to answer')
      })
    } catch (error) {
      if (error instanceof ConfigError) throw failure('document', 'unsupported', error.message, { cause: error })
      throw pinFailure(error) ?? handshakeFailure(error, isProgram)
    } finally {
      await server?.close(true)
    }
  }
}

/** Where the trust store is. Throws a ConfigError where nothing says so. */
export function storePath(configured: string | undefined, env: Readonly<Record<string, string | undefined>>): string {
  const path = configured ?? defaultStorePath(env)
  if (path !== undefined) return path
  const message = 'is needed: HOME is empty, and the system knows no folder of this user (--trust-store <file>)'
  throw new ConfigError([{ path: 'trustStore', message }])
}

async function meeting(server: Server): Promise<Meeting> {
  const pages: Payload[] = []
  const {
    era,
    revision,
    transport,
    why,
    server: named,
    capabilities,
    tools,
  } = await inspect(server, { seen: (page) => pages.push(page) })
  const { name = '', version = '' } = named ?? {}
  const handshake = { name, version, revision, capabilities: Object.keys(capabilities) }
  return { era, transport, why, handshake, tools: toolList(pages), listing: tools }
}

/** Where a connector that knows nothing of discovery has refused a key. */
function pinFailure(error: unknown): Failure | undefined {
  for (let cause = error; cause instanceof Error; cause = cause.cause)
    if (cause instanceof PinError) return failure('tls', 'pin', cause.message, { cause: error })
  return undefined
}
