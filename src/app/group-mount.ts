/** A group as the bridge serves it: several mounts behind one endpoint. It stays while its servers come and go. */

import { Fault } from '../base/fault/fault.js'
import type { Simplified } from '../base/texts/simplified.js'
import { lookEvery } from '../base/time/time.js'
import type { GroupSettings } from '../config/settings.js'
import type { Gauge } from '../mcp/ports/events.js'
import type { Handler, Policy } from '../mcp/protocol/call.js'
import type { Era } from '../mcp/protocol/eras.js'
import { methodTraits } from '../mcp/protocol/methods.js'
import type { Upstream } from '../mcp/protocol/upstream.js'
import { Group } from '../middle/group/group.js'
import type { Hidden } from '../middle/group/list-log.js'
import type { GroupPlan, Member } from '../middle/group/member.js'
import { Admission } from '../middle/policy/admission.js'
import { compose } from '../middle/policy/compose.js'
import { reading } from '../middle/policy/cut/reading.js'
import { SimplifiedTools } from '../middle/policy/portable/simplified.js'
import { ClientSide } from './client-side.js'
import { type BridgeContext, logOf, observerOf } from './context.js'
import { memberOf, titleOf } from './members.js'
import type { Health, Mount } from './mount.js'
import type { CommonSettings } from './mount-settings.js'
import { auditOfGroup, portableOf } from './pipeline.js'
import type { Served } from './served.js'
import type { Shared } from './shared.js'

/** The health of a group. */
export interface GroupHealth {
  state: Health['state']
  servers: string[]
  /** Servers that do not answer, with the reasons. */
  missing?: Readonly<Record<string, string>>
}

/** Milliseconds between two checks of the trust in discovered servers. Decisions of people are in a file. */
const LOOK_EVERY = 1_000
/** Milliseconds that a list waits for a server whose last list is known, by default. */
const KNOWN_WAIT = 500

export class GroupMount implements Served {
  readonly name: string
  /** The version of the bridge. */
  readonly #version: string
  /** The settings now: a reload may change them. */
  readonly #settings: CommonSettings
  /** The group behind its policies. */
  readonly upstream: Upstream
  readonly #group: Group
  readonly #admission = new Admission()
  readonly clients: ClientSide
  #entry: GroupSettings
  #mounts: readonly Mount[] = []
  /** The headers of callers that a server of the group gets. */
  #forwarded: ReadonlySet<string> = new Set()
  /** The members of the group, by their mounts. */
  #members = new Map<Mount, Member>()
  /** Checks the trust in discovered servers periodically. */
  #looking: NodeJS.Timeout | undefined
  /** The servers that the last check found trusted. */
  #trusted = ''
  #draining = false
  /** The group behind its policies, as its servers define their tools, and as clients see it. */
  readonly #guarded: Handler
  #handle: Handler
  readonly #shared: Shared
  readonly #simplified = new SimplifiedTools()

  constructor(entry: GroupSettings, given: CommonSettings, shared: Shared, context: BridgeContext) {
    const { name } = entry
    const { version } = context
    const log = logOf({ kind: 'group', name, eraOf: (server) => this.#eraOf(server) }, shared, context)
    const settings = { ...given }
    this.name = name
    this.#version = version
    this.#settings = settings
    this.#entry = entry
    this.#shared = shared
    const isOn = () => this.#mounts.some(({ policies }) => policies.cutsResults)
    const { lists, calls } = reading({ server: name, isOn, ...shared })
    const group = new Group({
      ...{ name, version, log },
      plan: this.#planOf(),
      keys: shared.keys,
      memory: shared.memory,
      advise: log.advise,
      observe: observerOf(context),
      store: context.lists,
      own: calls,
    })
    this.#group = group
    const audited = auditOfGroup(name, settings, shared)
    this.#guarded = compose(group.handle, ...audited, this.#admitted, this.#admission.policy, lists)
    this.#handle = compose(this.#guarded, ...this.#portable(entry))
    this.upstream = {
      handle: (call) => this.#handle(call),
      notify: (notice) => group.notify(notice),
      legacyRoute: () => group.legacyRoute(),
      connected: (principal, client) => group.connected(principal, client),
    }
    this.clients = new ClientSide({
      ...{ name, settings, shared, version, log },
      upstream: this.upstream,
      admission: this.#admission,
      forwarded: () => ({ names: this.#forwarded }),
    })
  }

  /** Applies changed settings: sessions and calls go on. */
  adapt(settings: CommonSettings): void {
    const { instructionBytes } = this.#settings.limits
    const { firstList } = this.#settings.timeouts
    Object.assign(this.#settings, settings)
    this.clients.adapt()
    const isSame = settings.limits.instructionBytes === instructionBytes && settings.timeouts.firstList === firstList
    if (!isSame) this.#group.change(this.#planOf())
  }

  /** Sets the entry of the group, and its servers: those in the entry that are served now. `lazy` are started when they are used. */
  set(entry: GroupSettings, mounts: ReadonlyMap<string, Mount>, lazy: ReadonlySet<string>): void {
    const served = entry.members.flatMap(({ server }) => mounts.get(server) ?? [])
    const sleeps = served.map(({ name }) => lazy.has(name))
    const isSame =
      JSON.stringify(entry) === JSON.stringify(this.#entry) &&
      isEqual(served, this.#mounts) &&
      served.every((mount, i) => this.#members.get(mount)?.sleeps === sleeps[i])
    if (isSame) return
    const hasSameSchemas = JSON.stringify(entry.schemas) === JSON.stringify(this.#entry.schemas)
    if (!hasSameSchemas) this.#handle = compose(this.#guarded, ...this.#portable(entry))
    this.#entry = entry
    this.#mounts = served
    this.#forwarded = new Set(served.flatMap(({ forwarded }) => forwarded.map(({ from }) => from)))
    this.#members = new Map(
      served.map((mount, i) => {
        const prefix = entry.members.find(({ server }) => server === mount.name)?.prefix ?? mount.name
        const known = this.#members.get(mount)
        const isKnown = hasSameSchemas && known?.prefix === prefix && known.sleeps === sleeps[i]
        return [
          mount,
          isKnown
            ? known
            : memberOf(
                mount,
                // Where results are cut, the group has the tool that reads them, and its servers do not.
                {
                  prefix,
                  group: mount.policies.cutsResults || this.#shared.audit ? this.name : undefined,
                  sleeps: sleeps[i] ?? false,
                },
                this.#portable(entry, mount.name),
              ),
        ]
      }),
    )
    this.#trusted = this.#trustedNow
    this.#group.change(this.#planOf())
    clearInterval(this.#looking)
    this.#looking = served.some(({ isFound }) => isFound) ? lookEvery(LOOK_EVERY, () => this.#look()) : undefined
  }

  /** What everybody may know of it: not its servers. */
  get identity(): { name: string; version: string } {
    return { name: this.name, version: this.#version }
  }

  /** The group without its search, which lists all tools; undefined if the tools are not searched. */
  get withoutSearch(): Pick<Upstream, 'handle'> | undefined {
    return this.#entry.search && { handle: this.#group.withoutSearch }
  }

  /** Whether a server need not be started, because its lists are known and nobody uses it yet. */
  async rests(mount: Mount): Promise<boolean> {
    const member = this.#members.get(mount)
    return member !== undefined && (await this.#group.rests(member))
  }

  /** Tools and prompts that are missing in its lists, because an earlier server has one of the same name. */
  get hidden(): readonly Hidden[] {
    return this.#group.hidden
  }

  /** What portable schemas make of the tools of its servers, as clients have listed them. */
  get simplified(): readonly Simplified[] {
    if (!this.#entry.schemas) return []
    const isServed = (server: string | undefined) => this.#mounts.some(({ name }) => name === server)
    return this.#simplified.all.filter(({ server }) => server === undefined || isServed(server))
  }

  /** Its servers. */
  get servers(): readonly Mount[] {
    return this.#mounts
  }

  get busy(): { calls: number; parked: number } {
    return { calls: this.#admission.inFlight, parked: 0 }
  }

  get gauges(): Gauge[] {
    return this.clients.gauges
  }

  /** The health for `/readyz`: ready if a server is ready, down if all servers or a required one are down. */
  get health(): GroupHealth {
    const states = this.#mounts.map((mount) => [mount.name, mount.health] as const)
    const down = states.filter(([, { state }]) => state === 'down')
    const isDown = down.length === states.length || down.some(([name]) => this.#entry.required.includes(name))
    const isReady = states.some(([, { state }]) => state === 'ready')
    const missing = {
      ...Object.fromEntries(this.#group.missing),
      ...Object.fromEntries(down.map(([name, { why = 'down' }]) => [name, why])),
    }
    return {
      state: isDown ? 'down' : isReady ? 'ready' : 'unknown',
      servers: states.map(([name]) => name),
      ...(Object.keys(missing).length > 0 && { missing }),
    }
  }

  drain(): void {
    this.#draining = true
    this.#admission.end()
    this.clients.drain()
  }

  async leave(): Promise<void> {
    await Promise.all([this.clients.leave(), this.#group.flush()])
  }

  cut(): void {
    this.#admission.cut()
    this.clients.cut()
  }

  /** Ends everything of the group. The mounts of its servers end the servers. */
  close(): Promise<void> {
    this.drain()
    this.cut()
    this.clients.close()
    clearInterval(this.#looking)
    this.#group.close()
    return Promise.resolve()
  }

  /** Notifies clients when the trust in a server has changed. Reads the tools for pending decisions about trust. */
  #look(): void {
    for (const mount of this.#mounts) mount.learnTools()
    const trusted = this.#trustedNow
    if (trusted === this.#trusted) return
    this.#trusted = trusted
    this.#group.refresh()
  }

  get #trustedNow(): string {
    return JSON.stringify(this.#mounts.flatMap(({ name, isTrusted }) => (isTrusted ? name : [])))
  }

  /** The era of a server, or of all servers for an empty name, if it is known and the same. */
  #eraOf(server: string): Era | undefined {
    const eras = new Set(this.#mounts.flatMap((mount) => (server === '' || mount.name === server ? mount.era : [])))
    const [era] = eras
    return eras.size === 1 ? era : undefined
  }

  /** The policies that make tools portable: of the group, or of one of its servers, whose names stay. */
  #portable({ schemas }: GroupSettings, server?: string): Policy[] {
    const { note } = this.#simplified
    return portableOf({
      server: this.name,
      schemas,
      memory: this.#shared.memory,
      keepsNames: server !== undefined,
      told: (tool, one) => {
        if (server !== undefined) note(`${server} ${tool}`, one && { ...one, server })
        // Only its name: the rest has been said of the server.
        else note(tool, one?.shown === undefined ? undefined : { tool, shown: one.shown })
      },
    })
  }

  #planOf(): GroupPlan {
    const { name, isImplied, title, instructions, bareNames, bareUris, wait, required, search } = this.#entry
    const members = [...this.#members.values()]
    const shown = title ?? (isImplied ? titleOf(members) : name)
    return {
      members,
      name: isImplied ? shown : name,
      title: shown,
      instructions,
      instructionBytes: this.#settings.limits.instructionBytes,
      bareNames,
      bareUris,
      wait: { known: wait ?? KNOWN_WAIT, first: wait ?? this.#settings.timeouts.firstList },
      required: new Set(required),
      search,
    }
  }

  /** During shutdown, admits only what continues a call. The servers have their own bounds on calls. */
  readonly #admitted: Policy = (next) => (call) => {
    const { answers, continues = answers !== undefined } = call
    return this.#draining && !continues && !methodTraits(call.method).endless
      ? Promise.reject(new Fault('draining', 'The bridge is shutting down', { retryAfter: 1 }))
      : next(call)
  }
}

function isEqual<T>(one: readonly T[], other: readonly T[]): boolean {
  return one.length === other.length && one.every((value, i) => value === other[i])
}
