/**
 * Keeps a server on a short lead for as long as it is not trusted. What can do nothing but show what the server says of
 * itself goes through, without the caller's name, capabilities, credentials and `_meta`: discovery and lists. Tools can be
 * called that only read, as the server says, and that the operator has listed, as the server cannot know. Everything else
 * is answered here, with what is missing and how to get it, and the server sees nothing: other tools; prompts and
 * completions, which carry what a person has typed; resources, of which a server may make whatever it likes to be read.
 *
 * A server in quarantine cannot ask its callers anything, gives no instructions to their models, and says nothing beside its
 * answers.
 */
import picomatch from 'picomatch'
import type { Standing, ToolList } from '../ports/trust-status.js'
import { ECHOED, printable } from '../printable.js'
import type { Call, CallLog, Handler, Policy, Reply } from '../protocol/call.js'
import { Fault } from '../protocol/fault.js'
import { CHANGING_LISTS } from '../protocol/subscriptions.js'
import { EMPTY, edit, mapElements, objectIn, type Payload, parseObject, raw, value, write } from '../rpc/splice.js'
import { OWN, refuse, toolOf } from './refusal.js'
import { fetchTools, nextCursor, toolList, withTools } from './tool-list.js'

export interface QuarantineOptions {
  /** Names the server. */
  name: string
  /** How far the server is trusted at this moment, if these are its tools; undefined while they are not known. */
  standing(tools: ToolList | undefined): Standing
  /** Globs of the tools that may be called in quarantine, if the server says that they only read. */
  readOnly: readonly string[]
  /** Milliseconds, of a clock that is never set. */
  now?: () => number
}

interface Known {
  list: ToolList
  /** When all of it was seen. */
  at: number
}

/** What shows what a server says of itself, and does nothing else. */
const HARMLESS: ReadonlySet<string> = new Set([
  'server/discover',
  'tools/list',
  'prompts/list',
  'resources/list',
  'resources/templates/list',
  'subscriptions/listen',
])
const MARK = `${OWN}quarantined`
const TOOLS_CHANGED = 'notifications/tools/list_changed'
/** Milliseconds for which a list of tools is taken to be what it was. */
const FRESH = 60_000
const LONG_AGO = Number.NEGATIVE_INFINITY
/** Milliseconds for all pages of the list. */
const LIST_TIMEOUT = 30_000
/** Characters of a tool's name that is compared with globs. */
export const MAX_NAME = 256
/** What the bridge asks by itself is no call of anybody's, so that no line of the log is for it. */
const QUIET: CallLog = { note() {}, warn() {} }

export class Quarantine {
  readonly #options: Required<QuarantineOptions>
  #known: Known | undefined
  #fetching: Promise<void> | undefined
  /** How often the server has said that its tools have changed. */
  #changes = 0

  constructor(options: QuarantineOptions) {
    this.#options = { now: () => performance.now(), ...options }
  }

  readonly policy: Policy = (next) => (call) => this.#answer(call, next)

  /** Whether the server is trusted as a whole. Only then it is to get notifications of clients. */
  get open(): boolean {
    const { state, only } = this.standing
    return state === 'trusted' && only === undefined
  }

  get standing(): Standing {
    return this.#options.standing(this.#known?.list)
  }

  async *#answer(call: Call, next: Handler): AsyncGenerator<Reply, void> {
    const standing = await this.#standingFor(call, next)
    const tool = call.method === 'tools/call' ? toolOf(call) : undefined
    switch (this.#lead(call.method, tool, standing)) {
      case 'none':
        return yield* this.#overheard(call, next(call))
      case 'short':
        return yield* this.#guarded(call, next(anonymous(call)))
      case 'held':
        yield this.#held(call, standing, tool)
    }
  }

  /** How much rope a call gets as things stand: as much as it wants, some, or none at all. */
  #lead(
    method: string,
    tool: string | undefined,
    { state, only, dependsOnTools }: Standing,
  ): 'none' | 'short' | 'held' {
    if (state === 'refused') return 'held'
    const trusted = state === 'trusted'
    if (method !== 'tools/call') return trusted && only === undefined ? 'none' : HARMLESS.has(method) ? 'short' : 'held'
    if (trusted && !dependsOnTools) return 'none'
    const fact = tool === undefined ? undefined : this.#known?.list.tools.get(tool)
    if (tool === undefined || fact === undefined) return 'held'
    if (trusted && (only === undefined || matches(only, tool))) return 'none'
    return fact.hints['readOnlyHint'] === true && matches(this.#options.readOnly, tool) ? 'short' : 'held'
  }

  /** Looks at the tools first where it depends on them, and where they have not been looked at for too long. */
  async #standingFor(call: Call, next: Handler): Promise<Standing> {
    const standing = this.standing
    if (HARMLESS.has(call.method) || standing.state === 'refused') return standing
    const tool = call.method === 'tools/call' ? toolOf(call) : undefined
    const mayRead = tool !== undefined && matches(this.#options.readOnly, tool)
    if (!standing.dependsOnTools && !(standing.state === 'quarantined' && mayRead)) return standing
    const known = this.#known
    const isFresh = known !== undefined && this.#options.now() - known.at < FRESH
    if (isFresh && (tool === undefined || known.list.tools.has(tool))) return standing
    this.#fetching ??= this.#fetch(call, next).finally(() => {
      this.#fetching = undefined
    })
    await this.#fetching
    return this.standing
  }

  async #fetch(call: Call, next: Handler): Promise<void> {
    const changes = this.#changes
    const controller = new AbortController()
    const late = setTimeout(
      () => controller.abort(new Fault('upstreamTimeout', 'The server did not list its tools in time')),
      LIST_TIMEOUT,
    )
    const { paramHeaders: _none, ...asked } = anonymous(call)
    const page = async (cursor: string | undefined): Promise<Payload> => {
      const listing: Call = {
        ...asked,
        method: 'tools/list',
        params: cursor === undefined ? EMPTY : parseObject(`{"cursor":${cursor}}`),
        answers: undefined,
        signal: controller.signal,
        abort: (reason) => controller.abort(reason),
        log: QUIET,
      }
      for await (const reply of next(listing)) {
        if (reply.kind === 'result') return reply.result
        // A server without tools does not know the method.
        if (reply.kind === 'error' && reply.error.code === -32601) return EMPTY
        if (reply.kind === 'error')
          throw new Fault(
            'upstreamRefused',
            `${this.#options.name} does not list its tools: ${printable(reply.error.message)}`,
          )
      }
      throw new Fault('upstreamProtocol', `${this.#options.name} does not list its tools`)
    }
    try {
      const list = await fetchTools(page)
      this.#known = { list, at: changes === this.#changes ? this.#options.now() : LONG_AGO }
    } finally {
      clearTimeout(late)
    }
  }

  /** Passes on what a trusted server says, and hears when its tools change. */
  async *#overheard(call: Call, replies: AsyncIterable<Reply>): AsyncGenerator<Reply, void> {
    for await (const reply of replies) {
      this.#hear(reply)
      yield reply.kind === 'result' && call.method === 'tools/list' ? this.#listed(call, reply) : reply
    }
  }

  /** Passes on what a server in quarantine may say. */
  async *#guarded(call: Call, replies: AsyncIterable<Reply>): AsyncGenerator<Reply, void> {
    for await (const reply of replies) {
      this.#hear(reply)
      switch (reply.kind) {
        case 'notification':
          if (call.method === 'subscriptions/listen') yield reply
          break
        case 'input':
          yield refuse(call, {
            reason: 'quarantined',
            text: `${this.#options.name} wants to ask something, which it may not as long as it is in quarantine. ${this.#way(this.standing)}`,
          })
          return
        case 'result':
          if (call.method === 'tools/list') yield this.#listed(call, reply)
          else if (call.method === 'server/discover')
            yield { ...reply, result: edit(reply.result, { instructions: undefined }) }
          else yield reply
          break
        case 'error':
          yield reply
      }
    }
  }

  /** What changes is asked for again before anybody relies on it. */
  #hear(reply: Reply): void {
    if (reply.kind !== 'notification' || reply.method !== TOOLS_CHANGED) return
    this.#changes++
    if (this.#known) this.#known = { ...this.#known, at: LONG_AGO }
  }

  /** A page of tools as it goes out: those that cannot be called say so. What is new in it is known from now on. */
  #listed(call: Call, reply: Reply & { kind: 'result' }): Reply {
    const { result } = reply
    const isWhole = raw(call.params, 'cursor') === undefined && nextCursor(result) === undefined
    const seen = toolList([result])
    if (isWhole) this.#known = { list: seen, at: this.#options.now() }
    else if (this.#known) this.#known = { ...this.#known, list: withTools(this.#known.list, seen) }
    const { standing } = this
    if (this.open) return reply
    const mark = JSON.stringify({ reason: standing.reason, missing: standing.missing, remedy: standing.remedy })
    const tools = mapElements(result, 'tools', (tool) => {
      const name = value(tool, 'name')
      if (typeof name === 'string' && this.#lead('tools/call', name, standing) !== 'held') return tool
      return edit(tool, { _meta: write(edit(objectIn(tool, '_meta') ?? EMPTY, { [MARK]: mark })) })
    })
    return tools === undefined ? reply : { ...reply, result: edit(result, { tools }) }
  }

  #held(call: Call, standing: Standing, tool?: string): Reply {
    const { name } = this.#options
    const { state, only, reason, missing, remedy } = standing
    const what = tool === undefined ? printable(call.method, ECHOED) : `"${printable(tool)}"`
    const why =
      state !== 'trusted'
        ? reason
        : only === undefined
          ? 'the server does not list such a tool'
          : `only some of its tools are approved (${only.join(', ')})`
    const text = `${what} was not sent to ${name}, which has seen nothing of it: ${why}. ${this.#way(standing)}`
    return refuse(call, { reason: state === 'refused' ? 'refused' : 'quarantined', text, data: { missing, remedy } })
  }

  #way({ missing, remedy }: Standing): string {
    const lacks = missing === '' ? '' : `What is missing: ${missing}. `
    return remedy === '' ? lacks.trimEnd() : `${lacks}To allow it, somebody with access to the bridge runs: ${remedy}`
  }
}

/** A call that says nothing of who makes it, and may not be asked anything. */
function anonymous(call: Call): Call {
  return {
    ...call,
    params: call.method === 'subscriptions/listen' ? onlyLists(call.params) : call.params,
    meta: EMPTY,
    progress: false,
    caller: { revision: call.caller.revision, capabilities: '{}' },
    credential: undefined,
  }
}

/** A subscription to lists and nothing else: which resources somebody is interested in is theirs to know. */
function onlyLists(params: Payload): Payload {
  const filter = objectIn(params, 'notifications') ?? EMPTY
  const wanted = CHANGING_LISTS.filter((list) => raw(filter, list.filter) === 'true')
  return edit(params, { notifications: `{${wanted.map((list) => `"${list.filter}":true`).join(',')}}` })
}

const matchers = new WeakMap<readonly string[], (name: string) => boolean>()

function matches(list: readonly string[], name: string): boolean {
  let matcher = matchers.get(list)
  if (!matcher) {
    matcher = globs(list)
    matchers.set(list, matcher)
  }
  return matcher(name)
}

/** Tells whether a name of a tool is one of those that globs name. `*` is all names there are. */
export function globs(list: readonly string[]): (name: string) => boolean {
  if (list.length === 0) return () => false
  const matcher = list.includes('*')
    ? () => true
    : picomatch([...list], { dot: true, nonegate: true, strictSlashes: true })
  return (name) => name.length <= MAX_NAME && matcher(name)
}
