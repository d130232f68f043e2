/** The policies of one server, in their order: what clients may see and call, and what becomes of the answers. */

import type { Log } from '../base/log/events.js'
import type { Handler, Policy, Sender } from '../mcp/protocol/call.js'
import type { ListedNames } from '../mcp/protocol/listed-names.js'
import type { Upstream } from '../mcp/protocol/upstream.js'
import { ownCall } from '../middle/describe/server.js'
import type { Admission } from '../middle/policy/admission.js'
import type { Cache } from '../middle/policy/cache/cache.js'
import { callbacks } from '../middle/policy/callbacks.js'
import { hidesNothing } from '../middle/policy/choice/choice.js'
import { choosing } from '../middle/policy/choice/seen.js'
import { compose } from '../middle/policy/compose.js'
import { reading as readingResults } from '../middle/policy/cut/reading.js'
import { requiring } from '../middle/policy/forwarding.js'
import { type Pages, reading } from '../middle/policy/pages.js'
import { SimplifiedTools } from '../middle/policy/portable/simplified.js'
import { Quarantine } from '../middle/policy/quarantine.js'
import type { Scopes } from '../middle/policy/scopes.js'
import { subscribers } from '../middle/policy/subscribers.js'
import { ToolNames } from '../middle/policy/tool-names.js'
import { unavailable } from '../middle/policy/unavailable.js'
import type { MountTrust } from '../services/discovery/trust/mount-trust.js'
import type { HidingServer } from './hidden.js'
import {
  approvalOf,
  auditOf,
  type Chosen,
  cacheOf,
  choiceOf,
  cuttingOf,
  learning,
  type PolicyParts,
  portableOf,
  requiredScopes,
  scopesOf,
  toolLimitsOf,
  watched,
  withheldBy,
} from './pipeline.js'
import { publicHosts } from './public-hosts.js'

const LIST = 'tools/list'
/** Milliseconds before the list of tools is read again for a decision about trust. */
const LEARN_AGAIN = 10_000

/** The parts, and what is outside of the bridge. */
export interface MountPolicyParts extends PolicyParts {
  /** Learns the names of tools for metrics and traces; undefined if these have no names. */
  names: Pick<ListedNames, 'learn'> | undefined
  /** Resolves the hosts of callbacks for events; by default the resolver of the system. */
  resolve: Parameters<typeof publicHosts>[0]
}

export class MountPolicies {
  /** The server without quarantine and the policies before it: what the bridge itself reads. */
  readonly behind: Handler
  /** The parts that decide what is hidden from clients, for the inspector. */
  readonly hiding: HidingServer
  readonly quarantine: Quarantine | undefined
  /** What portable schemas make of its tools. */
  readonly simplified = new SimplifiedTools()
  /**
   * Whether no client has a session of its own with the server: where its trust may change, because it learns there who the
   * client is, and asks it; and where updates of resources are hidden, or clients share a process.
   */
  readonly translates: boolean
  /** Whether clients are asked during their calls. */
  readonly asks: boolean
  /** Whether the server would not let a call pass; undefined where nothing is withheld. */
  readonly withholds: Upstream['withholds']
  readonly #parts: MountPolicyParts
  readonly #hides: boolean
  readonly #scoped: Scopes | undefined
  readonly #cache: Cache | undefined
  /** Stops listening to the changes that other replicas report. */
  readonly #unsubscribe: (() => void) | undefined
  /** Answers for a discovered server while it is unavailable. */
  readonly #unavailable: ReturnType<typeof unavailable> | undefined
  /** The policies between the bounds on calls and the server, as they come after those for events, and before them. */
  readonly #inner: readonly Policy[]
  readonly #outer: readonly Policy[]
  /** The time when the list of tools was last read for a decision about trust. */
  #learned = Number.NEGATIVE_INFINITY

  constructor(parts: MountPolicyParts, server: Handler) {
    this.#parts = parts
    const { name, settings, shared, trust, names } = parts
    const { server: own } = settings
    const { memory, kept, replicas } = shared
    const cache = cacheOf(parts)
    this.#cache = cache
    this.#unsubscribe =
      cache && replicas?.hear(name, { changed: (notice) => cache.drop(notice), missed: () => cache.missed() })
    this.#unavailable = trust && unavailable({ name, state: trust.state, memory })
    this.quarantine = trust && quarantineOf(name, trust)
    this.behind = compose(
      server,
      ...(trust ? [watched(trust)] : []),
      ...(cache ? [cache.policy] : []),
      ...(names ? [learning(name, names)] : []),
    )
    const required = requiredScopes(own, trust)
    this.hiding = { name, own, required, behind: this.behind }
    const shown: Chosen = { ...own, tools: choosing(own.tools) }
    this.#hides = !hidesNothing(shown)
    const listed = new ToolNames({ server: name, memory })
    const scoped = scopesOf(parts, required, listed)
    this.#scoped = scoped
    const limited = toolLimitsOf(parts, listed)
    const approved = approvalOf(parts)
    const chosen = choiceOf(parts, shown)
    const { lists, calls } = readingResults({ server: name, isOn: () => this.cutsResults, kept, memory })
    this.#inner = [
      // Before the choice, which does not know the bridge's own tool and resources.
      ...(own.results ? [lists, calls] : []),
      // Translates names into those of the server, which scopes and trust use.
      ...chosen,
      ...(scoped ? [scoped.policy] : []),
    ]
    this.#outer = [
      ...(scoped || limited.length > 0 ? [listed.policy] : []),
      ...(this.#unavailable && this.quarantine ? [this.#unavailable.policy, this.quarantine.policy] : []),
      // After what refuses calls, so that nobody is asked in vain.
      ...approved,
      // Last, so that it counts only calls that go to the server.
      ...limited,
      ...cuttingOf(parts),
    ]
    this.translates = trust !== undefined || (this.#hides && own.resources !== undefined) || own.process === 'single'
    this.asks = approved.length > 0
    this.withholds = scoped && withheldBy(this.behind, ...chosen, scoped.policy, listed.policy)
  }

  /** The server behind all policies. */
  admittedBy(admission: Admission, forwarded: Parameters<typeof requiring>[1]): Handler {
    const { name, settings, shared, resolve } = this.#parts
    const { server: own, auth } = settings
    const required = requiring(name, forwarded)
    const ofEvents = [
      callbacks({ allowed: own.events?.callbacks ?? [], whyNotPublic: publicHosts(resolve) }),
      subscribers({ server: name, owners: shared.subscribers, passthrough: auth?.passthrough ?? false }),
    ]
    const answered = (more: readonly Policy[]) => compose(this.behind, ...this.#inner, ...more, ...this.#outer)
    // First the audit log, so that it records refusals of the other policies.
    return compose(
      admission.admit(answered([]), admission.admit(answered(ofEvents))),
      ...auditOf(this.#parts),
      ...(required ? [required] : []),
      // Before all others, which know the tools as the server has defined them.
      ...portableOf({ server: name, schemas: own.schemas, memory: shared.memory, told: this.simplified.note }),
    )
  }

  /** Whether a sender sees everything. If not, an unknown notification could name a hidden item. */
  readonly carriesUnknown = (sender: Pick<Sender, 'principal' | 'grant'>): boolean =>
    !this.#hides && (this.#scoped?.hasAll(sender) ?? true)

  /** Whether long results of tools are cut. */
  get cutsResults(): boolean {
    return this.#parts.settings.server.results !== undefined
  }

  /**
   * Reads the list of tools if a decision about trust requires it: clients may not do so before the server is trusted. Tries
   * again later after a failure.
   */
  learnTools(log: Pick<Log, 'debug'>): void {
    if (!this.quarantine?.needsTools || performance.now() - this.#learned < LEARN_AGAIN) return
    this.#learned = performance.now()
    this.quarantine.learnTools(ownCall(LIST), this.behind).catch((error: unknown) => {
      log.debug({ event: 'tools_not_learned', err: error }, 'tools not listed: the server stays in quarantine')
    })
  }

  /** Reads the list of tools for metrics and traces. Without that, names are known once a client has listed them. */
  learnNames(): void {
    const { name, names, trust } = this.#parts
    if (!names || trust) return
    const read = async (pages: Pages) => {
      for await (const _page of pages);
    }
    reading(ownCall(LIST), LIST, this.behind, name, read).catch(() => {})
  }

  drain(): void {
    this.#unsubscribe?.()
    this.#cache?.close()
  }

  close(): void {
    this.#unavailable?.close()
  }
}

function quarantineOf(name: string, { trustStatus, readOnly, now }: MountTrust): Quarantine {
  return new Quarantine({ name, trustStatus, readOnly, ...(now && { date: now }) })
}
