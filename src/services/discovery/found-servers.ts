/**
 * The servers that a running bridge has discovered, and how often it searches and examines them again. A served server stays,
 * even if no source names it any more or it is unreachable: then its callers get an error.
 */

import type { Json } from '../../base/rpc/splice.js'
import { canonical } from '../../config/endpoint.js'
import { type ServerSettings, type Settings, withServers } from '../../config/settings.js'
import type { ToolList, TrustStatus } from '../../mcp/ports/trust-status.js'
import type { Attestation } from './attestation.js'
import { CANDIDATES, type Candidate } from './candidate.js'
import type { FailedCycle } from './cycle.js'
import { Discovery, type DiscoveryOptions } from './discovery.js'
import { type Examined, examine, type IntrospectedServer, isConfigured, locate } from './steps.js'
import type { Facts, TrustVerdict } from './trust/judge.js'
import type { MountTrust } from './trust/mount-trust.js'
import { withFlags } from './trust/remedy.js'
import { trustStatusOf } from './trust/trust-status.js'

/** Options of discovery in a running bridge. */
export interface FoundOptions extends Omit<DiscoveryOptions, 'onFailed' | 'signal'> {
  /** Milliseconds between two rounds of discovery. */
  every?: number
}

interface Known {
  name: string
  candidate: Candidate
  entry: ServerSettings
  facts: Omit<Facts, 'tools'>
  manifest: Attestation | undefined
  /** The result of its last handshake. */
  introspected: IntrospectedServer | undefined
  /** The public keys that its connections must have; undefined for any. */
  pins: readonly string[] | undefined
  /** Whether it is served. Never becomes false again. */
  served: boolean
  trust: MountTrust | undefined
  /** The identity that the server sent last. */
  identity: Json | undefined
}

/** Milliseconds between two rounds. Fetched documents are used for longer; failed requests are retried. */
const EVERY = 30_000
const UNMET: TrustStatus = {
  state: 'quarantined',
  dependsOnTools: false,
  reason: 'the bridge has not connected to it yet',
  missing: 'a handshake, which is retried automatically',
  remedy: '',
}
/** Milliseconds before a round that was requested. */
const SOONEST = 2_000

export class FoundServers {
  readonly #options: FoundOptions
  readonly #discovery: Discovery
  readonly #known = new Map<string, Known>()
  /** Names of servers, by endpoint. */
  readonly #names = new Map<string, string>()
  readonly #end = new AbortController()
  readonly #timer: NodeJS.Timeout
  #looking: Promise<void> | undefined
  #wanted: NodeJS.Timeout | undefined
  /** The served servers and their plans, as reported last. */
  #reported = ''
  #changed = () => {}
  /** Names of the discovered servers in the settings. Configured servers with the same name win. */
  #placed: ReadonlySet<string> = new Set()

  /** Throws a ConfigError. */
  constructor(options: FoundOptions) {
    this.#options = options
    const { every = EVERY, ...discovery } = options
    this.#discovery = new Discovery({
      ...discovery,
      onFailed: (failed) => this.#failed(failed),
      signal: this.#end.signal,
    })
    this.#timer = setInterval(() => {
      this.look().catch(() => {})
    }, every).unref()
  }

  /** The settings with the discovered servers added. */
  with(settings: Settings): Settings {
    const served = [...this.#known.values()].filter(
      (one) => one.served && !Object.hasOwn(settings.mcpServers, one.name),
    )
    this.#reported = this.#served()
    this.#placed = new Set(served.map(({ name }) => name))
    return withServers(settings, Object.fromEntries(served.map(({ name, entry }) => [name, entry])))
  }

  /** Sets the function to call when a server is added or must be served in another way. */
  follow(changed: () => void): void {
    this.#changed = changed
    this.#tell()
  }

  /** The trust in a discovered server, by name; undefined for other servers. */
  readonly lead = (name: string): MountTrust | undefined => {
    return [...this.#known.values()].find((one) => one.name === name && this.#placed.has(name))?.trust
  }

  /** Runs one round: searches for servers and examines all known ones. Never rejects. */
  look(): Promise<void> {
    this.#looking ??= this.#look()
      .catch((error: unknown) => {
        if (!this.#end.signal.aborted)
          this.#log.error({ event: 'search_failed', err: error }, 'looking for servers failed')
      })
      .finally(() => {
        this.#looking = undefined
      })
    return this.#looking
  }

  close(): void {
    this.#end.abort()
    clearInterval(this.#timer)
    clearTimeout(this.#wanted)
  }

  get #log() {
    return this.#options.host.log
  }

  async #look(): Promise<void> {
    const { settings } = this.#options
    const { parts } = this.#discovery
    await this.#discovery.store.writeNoted()
    const { candidates, failures } = await locate(settings.discover, parts, undefined, await this.#discovery.own())
    for (const { place, error } of failures) {
      const { phase, message: why } = error
      this.#log.debug({ event: 'source_unavailable', place, phase, why }, 'cannot read a source of servers')
    }
    const named = new Map(candidates.map((one) => [canonical(one.endpoint), one]))
    // A server that was never served is forgotten when no source names it any more.
    for (const [endpoint, { served }] of this.#known) if (!served && !named.has(endpoint)) this.#forget(endpoint)
    const gone = [...this.#known].filter(([endpoint]) => !named.has(endpoint)).map(([, { candidate }]) => candidate)
    const all = [...gone, ...candidates]
      .filter((one) => one.runnable && !this.#discovery.isOwn(one))
      .slice(0, CANDIDATES)
    await Promise.all(
      all.map(async (candidate) => {
        const endpoint = canonical(candidate.endpoint)
        const name = this.#nameOf(endpoint, candidate.name)
        try {
          this.#learn(endpoint, await examine({ ...candidate, name }, parts))
        } catch (error) {
          if (this.#end.signal.aborted) return
          const why = error instanceof Error ? error.message : String(error)
          this.#log.warn({ event: 'candidate_unusable', server: name, why }, 'discovered server cannot be served')
        }
      }),
    )
  }

  #forget(endpoint: string): void {
    this.#known.delete(endpoint)
    this.#names.delete(endpoint)
  }

  /** A name that is unique among the discovered servers. An endpoint keeps its name while the bridge runs. */
  #nameOf(endpoint: string, wanted: string): string {
    const taken = new Set(this.#names.values())
    let name = this.#names.get(endpoint) ?? wanted
    if (!this.#names.has(endpoint))
      for (let number = 2; taken.has(name); number++) name = `${wanted.slice(0, 60)}-${number}`
    this.#names.set(endpoint, name)
    return name
  }

  #learn(endpoint: string, { candidate, facts, manifest, introspected, failure, unread }: Examined): void {
    if (this.#end.signal.aborted) return
    const known = this.#known.get(endpoint) ?? this.#begin(endpoint, candidate, facts)
    const { tools: _tools, ...now } = facts
    // Facts that could not be determined keep their previous values.
    if (unread && known.manifest) now.manifest = known.manifest
    else known.manifest = manifest
    // An identity from a later reply is newer than the one of the handshake.
    const isNew = introspected !== undefined && introspected !== known.introspected
    if (!isNew) Object.assign(now, { handshake: known.facts.handshake, pin: now.pin ?? known.facts.pin })
    if (!isNew && introspected) now.pin = known.facts.pin
    if (isNew) Object.assign(known, { introspected, identity: undefined })
    known.facts = now
    known.candidate = candidate
    known.pins = now.origin === undefined ? undefined : this.#discovery.parts.pinsOf(now.origin)
    known.served ||= introspected !== undefined || failure?.transient === true || failure?.phase === 'cooling'
    known.trust = this.#trustContextOf(endpoint, known)
    this.#tell()
  }

  #begin(endpoint: string, candidate: Candidate, facts: Facts): Known {
    const { name } = candidate
    const entry = this.#discovery.entryOf(candidate)
    const known: Known = {
      ...{ name, candidate, entry, facts, manifest: undefined, introspected: undefined, pins: undefined },
      ...{ served: false, trust: undefined, identity: undefined },
    }
    this.#known.set(endpoint, known)
    return known
  }

  #trustContextOf(endpoint: string, known: Known): MountTrust | undefined {
    const { candidate, name, pins } = known
    // A configured server is trusted as its configuration says.
    if (isConfigured(candidate)) return undefined
    const plan = JSON.stringify(pins ?? null)
    if (known.trust?.plan === plan) return known.trust
    const connect = this.#discovery.connectorTo(candidate, pins, () => {
      known.facts = { ...known.facts, pin: { pins: pins ?? [], matched: false } }
      this.#discovery.forgetMeeting(endpoint)
    })
    if (!connect) throw new TypeError(`${name} has no HTTP endpoint`)
    const { timing } = this.#options
    const trustStatus = trustStatusOf({
      ...(timing?.now && { now: timing.now }),
      store: this.#discovery.store,
      facts: () => this.#factsOf(known),
      changed: (verdict) => this.#judged(known, verdict),
    })
    return {
      plan,
      connect,
      claimed: () => (known.candidate.card?.revisions ? known.introspected?.era : undefined),
      trustStatus: (tools: ToolList | undefined): TrustStatus => {
        const now = trustStatus(tools)
        // Without a handshake the server has not been compared with its manifest.
        if (now.state === 'trusted' && !known.facts.handshake) return UNMET
        return withFlags(now, { settings: this.#options.settings, config: this.#options.host.config, ...known })
      },
      now: timing?.now,
      readOnly: this.#options.settings.readOnlyTools,
      state: () => {
        const cooling = this.#discovery.cooling(endpoint)
        return { open: cooling !== undefined, until: cooling?.until ?? 0, reason: cooling?.reason ?? '' }
      },
      required: (tool) => toolsIn(known).find(({ name }) => name === tool)?.scopes ?? [],
      requiredByAny: () => toolsIn(known).flatMap(({ scopes }) => scopes),
      heard: (identity) => this.#compareIdentity(endpoint, known, identity),
      missed: () => {
        this.#discovery.forgetMeeting(endpoint)
        this.#lookSoon()
      },
    }
  }

  #factsOf({ facts, pins: before }: Known): Omit<Facts, 'tools'> {
    const pins = facts.origin === undefined ? undefined : this.#discovery.parts.pinsOf(facts.origin)
    // The pins have changed: another round makes new connections with them.
    if (JSON.stringify(pins) !== JSON.stringify(before)) this.#lookSoon()
    return facts
  }

  #compareIdentity(endpoint: string, known: Known, identity: Json): void {
    if (known.identity === identity) return
    known.identity = identity
    const { handshake } = known.facts
    const { name, version } = JSON.parse(identity) as Record<string, unknown>
    if (!handshake) this.#lookSoon()
    if (!handshake || typeof name !== 'string' || typeof version !== 'string') return
    if (handshake.name === name && handshake.version === version) return
    known.facts = { ...known.facts, handshake: { ...handshake, name, version } }
    this.#discovery.forgetMeeting(endpoint)
    this.#lookSoon()
  }

  #judged({ name, manifest, facts }: Known, { state, reason, dependsOnTools }: TrustVerdict): void {
    // This is not final: the verdict depends on the tools, which are not known yet.
    if (state === 'quarantined' && dependsOnTools) return
    this.#log.info({ event: 'trust_changed', server: name, state, why: reason }, 'trust changed')
    this.#options.host.noteTrust?.(name, reason === undefined ? state : `${state}: ${reason}`)
    // A manifest that contradicts its server is fetched again at once, not only when it expires.
    if (state === 'quarantined' && manifest?.server && facts.handshake) this.#discovery.forgetManifest(manifest)
  }

  #failed({ endpoint, phase, reason, error, opens }: FailedCycle): void {
    const fields = { phase, endpoint, error: error.message, ...(opens && { leftAlone: true }) }
    this.#log.warn({ event: 'discovery_failed', ...fields }, 'discovery failed')
    this.#options.host.observe?.({ kind: 'discovery', server: endpoint, phase, reason })
  }

  #lookSoon(): void {
    if (this.#wanted || this.#end.signal.aborted) return
    this.#wanted = setTimeout(() => {
      this.#wanted = undefined
      this.look().catch(() => {})
    }, SOONEST).unref()
  }

  #tell(): void {
    if (this.#served() !== this.#reported) this.#changed()
  }

  #served(): string {
    const served = [...this.#known.values()].filter((one) => one.served)
    return JSON.stringify(served.map(({ name, trust }) => [name, trust?.plan]))
  }
}

/** The tools that the manifest of a server lists. */
function toolsIn({ manifest }: Known): readonly { name: string; scopes: readonly string[] }[] {
  const tools = manifest?.server?.tools
  return Array.isArray(tools) ? tools : []
}
