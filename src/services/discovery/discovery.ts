/** Discovery in this program: supplies the functions of its steps, and decides which addresses they may reach. */

import { platform } from 'node:os'
import { resolve } from 'node:path'
import type { TLSSocket } from 'node:tls'
import { Fault } from '../../base/fault/fault.js'
import { Memory } from '../../base/limits/memory.js'
import { type ConnectOptions, guardedConnector } from '../../base/net/connect.js'
import type { Failure } from '../../base/net/failure.js'
import { Guard } from '../../base/net/guard.js'
import { homeFolder } from '../../base/net/home-folder.js'
import { proxiesOf } from '../../base/net/proxy.js'
import { within } from '../../base/time/time.js'
import { canonical } from '../../config/endpoint.js'
import {
  ConfigError,
  type ConfigSources,
  foundServer,
  type ServerSettings,
  type Settings,
} from '../../config/settings.js'
import type { Server } from '../../servers/server.js'
import type { Accounts } from '../oauth/client/accounts.js'
import type { SignInParts } from '../oauth/sign-in-parts.js'
import { type Attestation, forgetManifest } from './attestation.js'
import { type Candidate, Findings } from './candidate.js'
import { Cycles, type CyclesOptions, type FailedCycle } from './cycle.js'
import { documents } from './documents.js'
import { failure } from './failure.js'
import type { DiscoveryHost } from './host.js'
import { accountsOf, claimedEra, introspect, pinFailure } from './introspect.js'
import { readManifest } from './manifest.js'
import { meaningOf } from './sources/address.js'
import { findInFiles, finding } from './sources/files.js'
import { findInRegistry } from './sources/registry.js'
import { usualFiles } from './sources/usual-files.js'
import { findAtHost } from './sources/well-known.js'
import {
  type DiscoveryParts,
  handshakeFailure,
  type IntrospectedServer,
  isConfigured,
  type SignInNeeded,
} from './steps.js'
import { judge } from './trust/judge.js'
import { assertPinned, type CertificateSummary, lookAt, PinError, pinnedConnector } from './trust/pin.js'
import { defaultStorePath, TrustStore } from './trust/store.js'

/** Options of discovery. */
export interface DiscoveryOptions {
  settings: Settings
  host: DiscoveryHost
  sources: ConfigSources
  /** For a command of a person: servers are asked with the tokens of `mcp-bridge login`. Otherwise without any. */
  signIn?: SignInParts | undefined
  /** Replacements for the network and the clock, for tests. */
  network?: Pick<ConnectOptions, 'ca' | 'resolve' | 'proxyOf'> | undefined
  timing?: Pick<CyclesOptions, 'now' | 'sleep' | 'random'> | undefined
  /** Called for each failed cycle. */
  onFailed?: (failed: FailedCycle) => void
  signal?: AbortSignal | undefined
}

/** The target that stands for the usual configuration files of other programs. */
const USUAL_FILES = 'files:'
/** Bytes of the memory ledger for all servers that are being examined. */
const MEMORY = 64 * 1024 * 1024
/** Milliseconds to meet a server: over the network; or a program, which may have to be downloaded first. */
const MEETING = { http: 20_000, stdio: 60_000 }
const TIMES = { probe: 8_000, initialize: 10_000 }
/** Milliseconds for which the result of a meeting is used, unless a mismatch was reported. */
const FRESH = 300_000
/** For entries from the network: their references to variables and files are not resolved. */
const NOWHERE: ConfigSources = {
  env: {},
  read() {
    throw new Error('references are not resolved in discovered entries')
  },
}

/** The parts of discovery, with their state. */
export class Discovery {
  readonly store: TrustStore
  readonly parts: DiscoveryParts
  readonly #options: DiscoveryOptions
  readonly #guard: { allowed: readonly string[]; allowLoopback: boolean }
  readonly #meetings: Cycles<IntrospectedServer>
  readonly #memory = new Memory({ max: MEMORY })
  /** Entries of the configuration, with references resolved, by endpoint. */
  readonly #configured = new Map<string, ServerSettings>()
  /** Why endpoints are paused. */
  readonly #reasons = new Map<string, string>()
  /** The accounts of servers that require a sign-in, by the failure that said so. */
  readonly #signIns = new WeakMap<Failure, Accounts>()
  /** The pins with which endpoints were met, as text. */
  readonly #metUnder = new Map<string, string>()

  /** Throws a ConfigError if `discoverAllow` is invalid. */
  constructor(options: DiscoveryOptions) {
    const { settings, host, timing, onFailed = () => {}, signal } = options
    const network = { proxyOf: proxiesOf(host.env), ...options.network }
    this.#options = { ...options, network }
    const path = storePath(settings.trustStore, host.env)
    this.store = new TrustStore({
      path,
      ...(timing?.now && { now: timing.now }),
      changed: (err) => {
        if (err === undefined)
          host.log.info({ event: 'trust_store_resumed', path }, 'the trust store can be written again')
        else host.log.warn({ event: 'trust_store_failed', path, err }, 'the trust store cannot be written')
      },
    })
    this.#guard = { allowed: settings.discoverAllow, allowLoopback: settings.discoverLoopback }
    try {
      new Guard(this.#guard)
    } catch (cause) {
      throw new ConfigError([
        { path: 'discoverAllow', message: cause instanceof Error ? cause.message : String(cause) },
      ])
    }
    const { fetch, forget } = documents({ ...this.#guard, ...network, ...timing, onFailed, signal })
    this.#meetings = new Cycles({
      ...timing,
      signal,
      onFailed: (failed) => {
        this.#reasons.set(failed.endpoint, failed.error.message)
        onFailed({ ...failed, endpoint: failed.endpoint.replace(/[?#].*$/s, '') })
      },
    })
    this.parts = {
      fetch,
      forget,
      locate: (target) => this.#locate(target),
      verify: (fetched) => this.store.verify(fetched),
      pinsOf: (origin) => this.store.pinsOf(origin),
      meet: (candidate, pins) => this.#meetInCycles(candidate, pins),
      explainSignIn: (failed) => this.#explainSignIn(failed),
      judge: (facts) => judge(facts, this.store, (timing?.now ?? Date.now)()),
    }
  }

  /** The configuration file of the program, for commands that it advises. */
  get config(): string | undefined {
    return this.#options.host.config
  }

  /** The servers of the configuration, as findings. */
  async own(): Promise<Findings> {
    const found = new Findings()
    for (const [name, entry] of Object.entries(this.#options.settings.mcpServers)) {
      // A server on a unix socket has no address of its own, by which it could be recognised.
      if ('socket' in entry && entry.socket !== undefined) continue
      await found.attempt(name, () => {
        const one = finding(name, { ...entry }, 'the configuration')
        this.#configured.set(canonical(one.endpoint), entry)
        found.findings.push(one)
      })
    }
    return found
  }

  /** Whether the endpoint is in the configuration. */
  isOwn({ endpoint }: Candidate): boolean {
    return this.#configured.has(canonical(endpoint))
  }

  /** The entry of a candidate, as the configuration would have it. Throws a ConfigError. */
  entryOf(candidate: Candidate): ServerSettings {
    const { name, entry, endpoint } = candidate
    const configured = this.#configured.get(canonical(endpoint))
    if (configured) return configured
    return foundServer(name, entry, isConfigured(candidate) ? this.#options.sources : NOWHERE)
  }

  /** Until when an endpoint is paused, by the clock of `timing`, and why; undefined if it is not paused. */
  cooling(endpoint: string): { until: number; reason: string } | undefined {
    const until = this.#meetings.coolsUntil(endpoint)
    return until === undefined ? undefined : { until, reason: this.#reasons.get(endpoint) ?? 'it failed too often' }
  }

  /** Drops the result of the last meeting, because it may be wrong. The next round meets the endpoint again. */
  forgetMeeting(endpoint: string): void {
    this.#meetings.forget(endpoint)
  }

  /** Drops a fetched manifest, so that it is fetched again. */
  forgetManifest({ url }: Attestation): void {
    forgetManifest(url, this.parts)
  }

  /**
   * The connector for a candidate. For addresses from the network it connects only where the guard allows; with pins,
   * only to servers with a pinned key. `mismatched` is called if the key is not pinned; not for configured candidates.
   * Undefined if the default connector is enough.
   */
  connectorTo(candidate: Candidate, pins: readonly string[] | undefined, mismatched: () => void = () => {}) {
    const { endpoint } = candidate
    const { host } = this.#options
    if (endpoint.kind !== 'http') return undefined
    const { origin } = new URL(endpoint.url)
    // The guard does not apply, because a person may configure addresses of their own network.
    if (isConfigured(candidate)) {
      if (!pins) return undefined
      const pem = host.pemOf(candidate.name, this.entryOf(candidate))
      return pinnedConnector(origin, pins, { proxyOf: proxiesOf(host.env), pem: pem && (() => pem.current) })
    }
    const secured = (socket: TLSSocket, hostname: string) => {
      try {
        if (pins) assertPinned(socket, hostname, pins)
      } catch (error) {
        if (error instanceof PinError) mismatched()
        throw error
      }
    }
    return guardedConnector({ ...this.#options.network, guard: new Guard(this.#guard), secured })
  }

  /** The certificate of an origin, without checking pins. Rejects with a Failure. */
  lookAt(origin: string): Promise<CertificateSummary> {
    return lookAt(origin, guardedConnector({ ...this.#options.network, guard: new Guard(this.#guard) }))
  }

  async #locate(target: string): Promise<Findings> {
    const { settings, host } = this.#options
    const { fetch } = this.parts
    if (target === USUAL_FILES) {
      const home = homeFolder() ?? ''
      const files = usualFiles({ platform: platform(), home, cwd: resolve('.'), env: host.env })
      return findInFiles(
        files.map(({ path }) => path),
        { home },
      )
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

  #meetInCycles(candidate: Candidate, pins: readonly string[] | undefined): Promise<IntrospectedServer> {
    const endpoint = canonical(candidate.endpoint)
    const under = JSON.stringify(pins ?? null)
    // A meeting with other pins does not count for these.
    if (this.#metUnder.get(endpoint) !== under) this.forgetMeeting(endpoint)
    this.#metUnder.set(endpoint, under)
    return this.#meetings.run(endpoint, async () => ({ value: await this.#meet(candidate, pins), freshFor: FRESH }))
  }

  /** Meets a server: makes a handshake and lists its tools. Rejects with a Failure. */
  async #meet(candidate: Candidate, pins: readonly string[] | undefined): Promise<IntrospectedServer> {
    const { settings, host, signIn, network } = this.#options
    const isProgram = candidate.endpoint.kind === 'stdio'
    let server: Server | undefined
    let accounts: Accounts | undefined
    try {
      const all: Settings = {
        ...settings,
        auth: undefined,
        stateKeys: [],
        timeouts: { ...settings.timeouts, ...(!isProgram && TIMES) },
      }
      const connect = this.connectorTo(candidate, pins)
      const entry = this.entryOf(candidate)
      accounts = accountsOf(
        candidate,
        entry,
        all,
        { host, signIn, network, guard: this.#guard, isOwn: this.isOwn(candidate) },
        () => server?.verdict?.era === 'modern',
      )
      const claimed = claimedEra(candidate.card)
      const reach = { connect, accounts, pem: host.pemOf(candidate.name, entry), claimed: () => claimed }
      server = host.serverOf(candidate.name, entry, all, this.#memory, reach)
      const limit = MEETING[isProgram ? 'stdio' : 'http']
      return await within(introspect(server), limit, () => {
        throw failure('handshake', 'timeout', `It did not answer within ${limit / 1_000} s`)
      })
    } catch (error) {
      if (error instanceof ConfigError) throw failure('document', 'unsupported', error.message, { cause: error })
      const failed = pinFailure(error) ?? handshakeFailure(error, isProgram)
      if (accounts) this.#signIns.set(failed, accounts)
      throw failed
    } finally {
      accounts?.close()
      await server?.close(true)
    }
  }

  async #explainSignIn(failed: Failure): Promise<SignInNeeded> {
    const accounts = this.#signIns.get(failed)
    if (!accounts) throw failed
    const { explainSignIn } = await import('../oauth/client/explain.js')
    const { cause } = failed
    const refusal = cause instanceof Fault ? cause.signInFor : undefined
    try {
      return { explanation: await explainSignIn(accounts, refusal), loginName: accounts.loginName }
    } catch (error) {
      if (!(error instanceof Fault)) throw error
      throw failure('handshake', 'refused', error.message, { cause: error })
    }
  }
}

/** The path of the trust store. Throws a ConfigError if it is unknown. */
export function storePath(configured: string | undefined, env: Readonly<Record<string, string | undefined>>): string {
  const path = configured ?? defaultStorePath(env)
  if (path !== undefined) return path
  const message =
    'is required: HOME is empty, and the system has no home directory for this user (set --trust-store <file>)'
  throw new ConfigError([{ path: 'trustStore', message }])
}
