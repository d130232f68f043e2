/**
 * Restricts what reaches a server, and what it may reply, until it is trusted. Discovery and lists pass, without the
 * caller's name, capabilities, credentials and `_meta`. A tool can be called if the server marks it as read-only and
 * the operator has listed it. Everything else is refused here, with what is missing and how to allow it, and nothing is
 * sent to the server: other tools; prompts and completions, because they carry what a person typed; resources, because
 * a server can return any text for them. What announces nothing else is not offered.
 *
 * A server in quarantine cannot ask its callers anything. Its instructions, and notifications outside subscriptions,
 * are dropped.
 */

import { EMPTY, edit, keys, mapElements, objectIn, type Payload, raw, value } from '../../base/rpc/splice.js'
import { ECHOED, printable } from '../../base/texts/printable.js'
import type { ToolList, TrustStatus } from '../../mcp/ports/trust-status.js'
import { askedBy } from '../../mcp/protocol/asked-client.js'
import {
  type AskedClient,
  type Call,
  type Final,
  type Handler,
  type Policy,
  type ServerNotification,
  withResult,
} from '../../mcp/protocol/call.js'
import { Unanswered } from '../../mcp/protocol/input.js'
import { isFirst, nextCursor } from '../../mcp/protocol/listed.js'
import { OF_BRIDGE } from '../../mcp/protocol/meta.js'
import { CALL_TOOL, LISTEN, LISTS } from '../../mcp/protocol/methods.js'
import { filterIn } from '../../mcp/protocol/subscriptions.js'
import { matchesGlobs } from './globs.js'
import { reading } from './pages.js'
import { refuse, toolOf } from './refusal.js'
import { fetchTools, toolList, withTools } from './tool-list.js'

/** The policy's view of a server. */
export interface QuarantineOptions {
  name: string
  /** How far the server is trusted now. `tools` is its list; undefined if not known yet. */
  trustStatus(tools: ToolList | undefined): TrustStatus
  /** Globs of the tools that may be called in quarantine if the server marks them as read-only. */
  readOnly: readonly string[]
  /** Milliseconds of a monotonic clock. */
  now?: () => number
  /** Milliseconds since 1970. */
  date?: () => number
}

interface Known {
  list: ToolList
  /** When the whole list was asked for. */
  asked: number
  /** Its tools have changed since. */
  isOld: boolean
}

/** When a list was asked for. */
interface Asked {
  asked: number
  at: number
  /** Number of changes until then. */
  changes: number
}

/** Methods that only return what the server states about itself. */
const HARMLESS: ReadonlySet<string> = new Set(['server/discover', ...LISTS.keys(), LISTEN])
/** Capabilities with harmless methods, and that for the level of the log, which the bridge keeps. */
const LISTING: ReadonlySet<string> = new Set(
  [...LISTS.values()].map(({ capability }) => capability as string).concat('logging'),
)
const MARK = `${OF_BRIDGE}quarantined`
const TOOLS_CHANGED = 'notifications/tools/list_changed'
/** Milliseconds for which a list of tools counts as current. */
const FRESH = 60_000

export class Quarantine {
  readonly #options: Required<QuarantineOptions>
  #known: Known | undefined
  #fetching: Promise<void> | undefined
  /** Number of `tools/list_changed` notifications so far. */
  #changes = 0

  constructor(options: QuarantineOptions) {
    this.#options = { now: () => performance.now(), date: () => Date.now(), ...options }
  }

  readonly policy: Policy = (next) => (call) => this.#answer(call, next)

  /** Whether the server is trusted without restriction. Only then it gets notifications of clients. */
  get open(): boolean {
    const { state, only } = this.trustStatus
    return state === 'trusted' && only === undefined
  }

  get trustStatus(): TrustStatus {
    return this.#options.trustStatus(this.#known?.list)
  }

  /** Whether a verdict waits for the list of tools alone: none is known, or only one that is older than a decision. */
  get needsTools(): boolean {
    return waitsForTools(this.trustStatus)
  }

  /** Reads the list of tools with `next`, as the caller of `call`. Rejects with a Fault. */
  learnTools(call: Call, next: Handler): Promise<void> {
    this.#fetching ??= this.#fetch(call, next).finally(() => {
      this.#fetching = undefined
    })
    return this.#fetching
  }

  async #answer(call: Call, next: Handler): Promise<Final> {
    const trustStatus = await this.#trustStatusFor(call, next)
    const tool = call.method === CALL_TOOL ? toolOf(call) : undefined
    switch (this.#handlingOf(call.method, tool, trustStatus)) {
      case 'forward':
        return this.#forward(call, next)
      case 'restrict':
        return this.#restrict(call, next)
      case 'refuse':
        return this.#refused(call, trustStatus, tool)
    }
  }

  /** How to handle a call: forward it unchanged, forward it anonymously and filter the replies, or refuse it. */
  #handlingOf(
    method: string,
    tool: string | undefined,
    { state, only, dependsOnTools }: TrustStatus,
  ): 'forward' | 'restrict' | 'refuse' {
    if (state === 'refused') return 'refuse'
    const trusted = state === 'trusted'
    if (method !== CALL_TOOL)
      return trusted && only === undefined ? 'forward' : HARMLESS.has(method) ? 'restrict' : 'refuse'
    if (trusted && !dependsOnTools) return 'forward'
    const fact = tool === undefined ? undefined : this.#known?.list.tools.get(tool)
    if (tool === undefined || fact === undefined) return 'refuse'
    if (trusted && (only === undefined || matchesGlobs(only, tool))) return 'forward'
    return fact.hints['readOnlyHint'] === true && matchesGlobs(this.#options.readOnly, tool) ? 'restrict' : 'refuse'
  }

  /** The current trust. Reads the list of tools first if trust depends on it and the known list is not current. */
  async #trustStatusFor(call: Call, next: Handler): Promise<TrustStatus> {
    const trustStatus = this.trustStatus
    if (HARMLESS.has(call.method) || trustStatus.state === 'refused') return trustStatus
    const tool = call.method === CALL_TOOL ? toolOf(call) : undefined
    const mayRead = tool !== undefined && matchesGlobs(this.#options.readOnly, tool)
    if (!trustStatus.dependsOnTools && !(trustStatus.state === 'quarantined' && mayRead)) return trustStatus
    const known = this.#known
    const isFresh = known !== undefined && !known.isOld && this.#options.now() - known.asked < FRESH
    if (isFresh && !waitsForTools(trustStatus) && (tool === undefined || known.list.tools.has(tool))) return trustStatus
    await this.learnTools(call, next)
    return this.trustStatus
  }

  /** The client as the server may ask it beside its calls: not while it is in quarantine. */
  asking(client: AskedClient): AskedClient {
    return askedBy(client, (input, signal) =>
      this.open ? client.ask(input, signal) : Promise.reject(new Unanswered(-32601, 'The server is in quarantine')),
    )
  }

  async #fetch(call: Call, next: Handler): Promise<void> {
    const asked = this.#asked()
    this.#learn(await reading(anonymous(call), 'tools/list', next, this.#options.name, fetchTools), asked)
  }

  #asked(): Asked {
    const { now, date } = this.#options
    return { asked: now(), at: date(), changes: this.#changes }
  }

  /** Remembers a whole list, unless one is known that was asked for later. */
  #learn(list: ToolList, { asked, at, changes }: Asked): void {
    if (this.#known && this.#known.asked > asked) return
    this.#known = { list: { ...list, at }, asked, isOld: changes !== this.#changes }
  }

  /** Forwards a call to a trusted server, and notes changes of its tools. */
  async #forward(call: Call, next: Handler): Promise<Final> {
    const notify = (notification: ServerNotification) => {
      this.#noteChange(notification)
      return call.notify(notification)
    }
    const asked = this.#asked()
    const last = await next({ ...call, notify })
    return last.kind === 'result' && call.method === 'tools/list' ? this.#listed(call, last, asked) : last
  }

  /** Sends a call anonymously, and forwards what a server in quarantine may reply. */
  async #restrict(call: Call, next: Handler): Promise<Final> {
    const notify = (notification: ServerNotification) => {
      this.#noteChange(notification)
      return call.method === LISTEN ? call.notify(notification) : undefined
    }
    const asked = this.#asked()
    const last = await next({ ...anonymous(call), notify })
    if (last.kind === 'input')
      return refuse(call, {
        reason: 'quarantined',
        text: `${this.#options.name} asked for input, which a server in quarantine may not do. ${this.#remedyText(this.trustStatus)}`,
      })
    if (last.kind === 'result' && call.method === 'tools/list') return this.#listed(call, last, asked)
    return call.method === 'server/discover' ? withResult(last, onlyHarmless) : last
  }

  /** A change makes the known list outdated. */
  #noteChange({ method }: ServerNotification): void {
    if (method !== TOOLS_CHANGED) return
    this.#changes++
    if (this.#known) this.#known = { ...this.#known, isOld: true }
  }

  /** A page of tools for the client, in which tools that cannot be called are marked. Notes its tools. */
  #listed(call: Call, reply: Final & { kind: 'result' }, asked: Asked): Final {
    const { result } = reply
    const isWhole = isFirst(raw(call.params, 'cursor')) && nextCursor(result) === undefined
    const seen = toolList([result])
    if (isWhole) this.#learn(seen, asked)
    // A page does not cover tools that were listed later.
    else if (this.#known && this.#known.asked <= asked.asked)
      this.#known = { ...this.#known, list: { ...withTools(this.#known.list, seen), at: this.#known.list.at } }
    const { trustStatus } = this
    if (this.open) return reply
    const mark = JSON.stringify({
      reason: trustStatus.reason,
      missing: trustStatus.missing,
      remedy: trustStatus.remedy,
    })
    const tools = mapElements(result, 'tools', (tool) => {
      const name = value(tool, 'name')
      if (typeof name === 'string' && this.#handlingOf(CALL_TOOL, name, trustStatus) !== 'refuse') return tool
      return edit(tool, { _meta: edit(objectIn(tool, '_meta') ?? EMPTY, { [MARK]: mark }) })
    })
    return tools === undefined ? reply : { ...reply, result: edit(result, { tools }) }
  }

  #refused(call: Call, trustStatus: TrustStatus, tool?: string): Final {
    const { name } = this.#options
    const { state, only, reason, missing, remedy } = trustStatus
    const what = tool === undefined ? printable(call.method, ECHOED) : `"${printable(call.called ?? tool)}"`
    const why =
      state !== 'trusted'
        ? reason
        : only === undefined
          ? 'the server does not list such a tool'
          : `only these tools are approved: ${only.join(', ')}`
    const text = `${what} was not sent to ${name}: ${why}. ${this.#remedyText(trustStatus)}`
    return refuse(call, { reason: state === 'refused' ? 'refused' : 'quarantined', text, data: { missing, remedy } })
  }

  #remedyText({ missing, remedy }: TrustStatus): string {
    const lacks = missing === '' ? '' : `Missing: ${missing}. `
    return remedy === '' ? lacks.trimEnd() : `${lacks}To allow it, run on the bridge's machine: ${remedy}`
  }
}

/** Whether a verdict waits for a list of tools. */
function waitsForTools({ state, dependsOnTools }: TrustStatus): boolean {
  return state === 'quarantined' && dependsOnTools
}

/** The call without anything about its caller, and without the capability to be asked. */
function anonymous(call: Call): Call {
  return {
    ...call,
    params: call.method === LISTEN ? onlyLists(call.params) : call.params,
    meta: EMPTY,
    progress: false,
    caller: { revision: call.caller.revision, capabilities: '{}' },
    credential: undefined,
    client: undefined,
  }
}

/** What a server states about itself, without its instructions, and without capabilities whose methods are all refused. */
function onlyHarmless(discovered: Payload): Payload {
  const capabilities = objectIn(discovered, 'capabilities')
  const refused = keys(capabilities ?? EMPTY).filter((name) => !LISTING.has(name))
  const left = Object.fromEntries(refused.map((name) => [name, undefined]))
  return edit(discovered, {
    instructions: undefined,
    ...(capabilities && { capabilities: edit(capabilities, left) }),
  })
}

/** A subscription reduced to lists: which resources a caller is interested in is not revealed. */
function onlyLists(params: Payload): Payload {
  const { lists } = filterIn(params)
  return edit(params, { notifications: `{${lists.map((list) => `"${list.filter}":true`).join(',')}}` })
}
