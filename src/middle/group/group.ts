/**
 * Several servers as one: a group is an Upstream made of the Upstreams of its servers, independent of eras. Each call goes
 * to its target server, through that server's own policies; lists and discovery go to all servers.
 */

import type { SealKey } from '../../base/crypto/seal.js'
import { Fault } from '../../base/fault/fault.js'
import { MAX_LOGGED_NAME } from '../../base/limits/constants.js'
import type { Memory } from '../../base/limits/memory.js'
import type { Log } from '../../base/log/events.js'
import { edit, type Json, NO_ORIGIN, type Payload, parseObject, raw, value, write } from '../../base/rpc/splice.js'
import { ECHOED, printable, publicAddress } from '../../base/texts/printable.js'
import type { Observe } from '../../mcp/ports/events.js'
import type { ListStore } from '../../mcp/ports/list-store.js'
import { NAMELESS } from '../../mcp/protocol/account.js'
import { askedBy } from '../../mcp/protocol/asked-client.js'
import type {
  AskedClient,
  Call,
  Final,
  Handler,
  Notice,
  Policy,
  RpcError,
  ServerNotification,
} from '../../mcp/protocol/call.js'
import { isOfEvents, LISTEN, methodTraits } from '../../mcp/protocol/methods.js'
import type { LegacyRoute, Upstream } from '../../mcp/protocol/upstream.js'
import { whoOf } from '../policy/who.js'
import { type Asked, Asking, type MemberQuestion, unaddressed } from './asking.js'
import { EventCursors } from './event-cursors.js'
import { GroupDiscovery } from './group-discovery.js'
import type { Inside } from './inside.js'
import { KeptLists } from './kept-lists.js'
import { type Hidden, ListLog } from './list-log.js'
import { GROUP_LISTS } from './list-page.js'
import { GroupListening } from './listen.js'
import { Listings } from './listings.js'
import { Lists } from './lists.js'
import { activeIn, type GroupPlan, type Member } from './member.js'
import { MemberConnections } from './member-connections.js'
import { onlyForeign } from './merge.js'
import { prefixed, prefixedLogger } from './names.js'
import { Owners } from './owners.js'
import { type Replace, replaced } from './places.js'
import { signed, signedError } from './questions.js'
import { Search } from './search.js'
import { Sleepers } from './sleepers.js'
import { States } from './states.js'
import { type CallTarget, isAlone, Targets } from './targets.js'
import { prefixedUri } from './uris.js'

export interface GroupOptions {
  name: string
  plan: GroupPlan
  /** The first key seals cursors and states for clients; all keys open them. */
  keys: readonly SealKey[]
  version: string
  memory: Memory
  log: Pick<Log, 'info' | 'warn'>
  /** What operators are told about a fault of a server: lines of its stderr, and what to do next. */
  advise?: ((fault: Fault) => object) | undefined
  observe?: Observe | undefined
  /** Where lists are kept beyond a restart; undefined for nowhere. */
  store?: ListStore | undefined
  /** Answers calls of tools and resources that are the group's own, also through its search. */
  own?: Policy | undefined
}

export class Group implements Upstream {
  readonly #options: GroupOptions
  #plan: GroupPlan
  /** The group's own Implementation. */
  #identity: Json
  readonly #inside: Inside
  readonly #lists: Lists
  readonly #discovery: GroupDiscovery
  readonly #targets: Targets
  readonly #states: States
  readonly #eventCursors: EventCursors
  readonly #search: Search
  readonly #connections: MemberConnections
  readonly #listening = new Set<GroupListening>()
  /** Servers whose last list or discovery failed, with the reason. */
  readonly #missing = new Map<string, string>()
  /** Answers calls by their own names. */
  readonly #named: Handler

  constructor(options: GroupOptions) {
    const { name, keys, memory, store, version } = options
    this.#options = options
    this.#plan = options.plan
    this.#identity = identityOf(options)
    const plan = () => this.#plan
    const listings = new Listings(memory)
    const inside: Inside = {
      ...{ name, keys, memory, plan, listings },
      log: new ListLog(name, options.log),
      asking: new Asking({
        patience: () => this.#plan.wait.first,
        heard: (question, asked) => this.#heard(question, asked),
        came: (question, asked) => this.#came(question, asked),
      }),
      kept: store && new KeptLists({ store, listings, version, plan }),
      sleepers: new Sleepers(() => this.#rested()),
      identity: () => this.#identity,
      replaceFor: (member) => this.#replaceFor(member),
    }
    this.#inside = inside
    this.#lists = new Lists(inside)
    this.#discovery = new GroupDiscovery(inside)
    this.#targets = new Targets(inside, this.#discovery, new Owners(inside, this.#lists))
    this.#states = new States(name, keys)
    this.#eventCursors = new EventCursors(name, keys)
    this.#connections = new MemberConnections(options.plan.members, (member, client) => this.#asked(member, client))
    this.#named = options.own ? options.own(this.withoutSearch) : this.withoutSearch
    this.#search = new Search(inside, this.#lists)
  }

  /** Servers that did not answer the last list request, with the reason. */
  get missing(): ReadonlyMap<string, string> {
    return this.#missing
  }

  /** Tools and prompts that have been omitted from lists. */
  get hidden(): readonly Hidden[] {
    return this.#inside.log.hidden
  }

  readonly handle: Handler = (call) => this.#search.handle(call, this.#named)

  /** Answers as a group without tool search. */
  readonly withoutSearch: Handler = async (call) => {
    const { method } = call
    if (method === 'server/discover') return this.#discovery.answer(call)
    if (isOfEvents(method) && (await this.#discovery.lacksEvents(call)))
      throw new Fault('methodNotFound', `Method not found: no server of the group has ${method}`)
    if (GROUP_LISTS.has(method)) return this.#lists.page(call)
    if (method === LISTEN) return this.#listen(call)
    const target = this.#targets.of(call)
    return this.#send(call, target instanceof Promise ? await target : (target ?? (await this.#unnamed(call))))
  }

  notify({ received, ...notice }: Notice): undefined {
    // No single server could answer it.
    if (received?.onlyUnchanged) return
    for (const { upstream } of activeIn(this.#plan)) upstream.notify(notice)?.catch(() => {})
  }

  /** The bridge has the client's session, because no single server could answer for the group. */
  legacyRoute(): Promise<LegacyRoute> {
    return Promise.resolve('translate')
  }

  connected(principal: string, client?: AskedClient): () => void {
    return this.#connections.enter(principal, client)
  }

  /** Replaces the servers or their names, and notifies clients with a subscription. */
  change(plan: GroupPlan): void {
    const before = this.#plan
    this.#plan = plan
    this.#identity = identityOf({ ...this.#options, plan })
    if (isNamedAlike(before, plan))
      this.#inside.listings.keepOnly(before.members.filter((member) => plan.members.includes(member)))
    else this.#inside.listings.clear()
    this.#inside.kept?.change()
    this.#lists.clear()
    this.#targets.change(plan.members)
    this.#connections.change(plan.members)
    for (const server of this.#missing.keys())
      if (!plan.members.some((member) => member.server === server)) this.#missing.delete(server)
    this.refresh()
  }

  /** Notifies clients with a subscription: servers have become active or inactive. */
  refresh(): void {
    for (const listening of this.#listening) listening.changed()
  }

  /** Keeps what is not kept yet of its lists. Never rejects. */
  async flush(): Promise<void> {
    await this.#inside.kept?.flush()
  }

  close(): void {
    const { asking, sleepers, kept, listings } = this.#inside
    for (const one of [asking, sleepers, kept, listings, this.#lists, this.#search]) one?.close()
  }

  /** Sends a call to its server, and translates the answer into the names of the group. */
  async #send(call: Call, { member, id, params: named, bare, called }: CallTarget): Promise<Final> {
    const { server, upstream } = member
    const { method, answers } = call
    if (member.sleeps) this.#use(call, member)
    const params = isAlone(this.#plan) ? named : this.#eventCursors.opened(named, { call, server })
    call.log.note(params === call.params ? { server } : { server, ...originalOf(method, id) })
    const belonging = { call, server, name: id }
    const state = answers?.state === undefined ? undefined : this.#states.opened(answers.state, belonging)
    const theirs: Call = {
      ...call,
      params,
      called,
      answers: answers && { ...answers, state },
      notify: (told) => call.notify(this.#shown(member, told, call)),
      client: call.client && this.#asked(member, call.client),
    }
    const reply = { ...(await upstream.handle(theirs)), server: this.#identity }
    if (member.sleeps) this.#use(call, member)
    switch (reply.kind) {
      case 'error': {
        const error = isAlone(this.#plan) ? reply.error : signedError(member, reply.error)
        return { ...reply, error: params === call.params ? error : shownError(error, id, raw(call.params, 'uri')) }
      }
      case 'input':
        return { ...reply, result: this.#states.sealed(this.#signed(member, reply.result, call), belonging) }
      case 'result': {
        const { named } = methodTraits(method)
        if (named === 'uri' && !isAlone(this.#plan)) this.#targets.claimed(whoOf(call), member, id, 'served')
        const replace = this.#replaceFor(member, call, bare)
        const result = replaced(reply.type === 'task' ? 'task' : method, reply.result, replace)
        // A task that waits for input has questions in its state.
        return { ...reply, result: named === 'taskId' ? this.#signed(member, result, call) : result }
      }
    }
  }

  /** A question of a server, asked during `call` or beside all calls. It says which server asks, if there are several. */
  #signed(member: Member, input: Payload, call?: Call): Payload {
    return isAlone(this.#plan) ? input : signed(member, input, this.#replaceFor(member, call))
  }

  /** The client, as a server of the group asks it beside its calls. */
  #asked(member: Member, client: AskedClient): AskedClient {
    return askedBy(client, (input, signal) => client.ask(this.#signed(member, input), signal))
  }

  /** The target of a call whose params name no server: the only server, or the only one with unknown capabilities. */
  async #unnamed(call: Call): Promise<CallTarget> {
    const members = activeIn(this.#plan)
    const [only, ...others] = members
    const foreign = others.length === 0 ? undefined : onlyForeign(await this.#discovery.describe(call))
    const member = others.length === 0 ? only : members.find(({ server }) => server === foreign?.server)
    if (!member)
      throw new Fault(
        'methodNotFound',
        `Method not found: no server of the group alone has ${printable(call.method, ECHOED)}`,
      )
    return { member, id: '', params: call.params }
  }

  async #listen(call: Call): Promise<Final> {
    const listening = new GroupListening({
      call,
      members: () => activeIn(this.#plan),
      sleeps: (member) => this.#inside.sleepers.isUnused(call, member),
      offered: (lists) => this.#discovery.offered(call, lists),
      uri: (uri) => this.#targets.uri(call, uri),
      task: (taskId) => this.#targets.task(taskId),
      shown: (member, told) => this.#shown(member, told),
    })
    this.#listening.add(listening)
    try {
      return await listening.run()
    } finally {
      this.#listening.delete(listening)
    }
  }

  #use(call: Call, member: Member): void {
    if (this.#inside.sleepers.wake(call, member)) this.#woke(call, member)
  }

  /** A caller uses a server that slept: changes are heard from now on, and what is known of it may have changed meanwhile. */
  #woke(call: Call, member: Member): void {
    for (const listening of this.#listening) listening.adjust()
    const who = whoOf(call)
    for (const method of GROUP_LISTS.keys()) {
      const listing = unaddressed(call, method)
      if (this.#inside.listings.likely(who, member, listing))
        this.#inside.asking.ask(listing, [{ member }], { most: 0 }).catch(() => {})
    }
  }

  /** Ends subscriptions to the lists of servers that sleep again. Returns whether others may sleep later. */
  #rested(): boolean {
    let hasMore = false
    for (const listening of this.#listening) if (listening.adjust()) hasMore = true
    return hasMore
  }

  /** Whether lists for people without a credential need nothing of a server that is started when it is used. */
  async rests(member: Member): Promise<boolean> {
    if (!member.sleeps) return false
    for (const principal of NAMELESS) {
      const who = whoOf({ principal, caller: { revision: '', capabilities: '{}' } })
      await this.#inside.kept?.restored(who, member)
      if (this.#inside.listings.likely(who, member, { method: 'tools/list', params: NO_ORIGIN })) return true
    }
    return false
  }

  /** A server answered after its callers stopped waiting. */
  #came(question: MemberQuestion, asked: Asked): void {
    if (asked.kind !== 'answer') return
    const { member, call, who } = question
    const { result } = asked.reply
    const came = () => {
      for (const listening of this.#listening) if (listening.principal === call.principal) listening.changed()
    }
    if (call.method === 'server/discover') {
      this.#inside.listings.learnDiscovered(who, member, result)
      return came()
    }
    const shown = this.#inside.listings.likely(who, member, call)?.page.content
    this.#lists.learn(question, result).then(
      ({ page }) => {
        if (page.content !== shown) came()
      },
      // A list that cannot be read is read again when a client asks for it.
      came,
    )
  }

  /** Notes whether a server has answered, and reports changes. */
  #heard({ member, call, who }: MemberQuestion, asked: Asked): void {
    const { principal } = call
    const { log, name: group, observe, advise } = this.#options
    const { server } = member
    if (asked.kind !== 'missing') {
      if (!this.#missing.delete(server)) return
      observe?.({ kind: 'member', group, server, what: 'back' })
      log.info({ event: 'group_complete', server }, 'a server of the group answers again')
      return
    }
    const why = asked.why.message
    for (const listening of this.#listening) if (listening.principal === principal) listening.expect(member)
    // It may only be starting, and nobody lacks anything.
    const isServed = asked.isLate && this.#inside.listings.likely(who, member, call) !== undefined
    if (this.#missing.has(server) || isServed) return
    this.#missing.set(server, why)
    observe?.({ kind: 'member', group, server, what: 'missing', why })
    log.warn(
      { event: 'group_incomplete', server, why, ...advise?.(asked.why) },
      'a server of the group does not answer; the others are served without it',
    )
  }

  /** A message of a server, in the names of the group. */
  #shown(member: Member, notification: ServerNotification, call?: Call): ServerNotification {
    const { method, params } = notification
    if (isAlone(this.#plan)) return notification
    const rename = this.#replaceFor(member)
    const replace: Replace = (kind, text) =>
      kind === 'cursor' && call ? this.#eventCursors.sealed(text, { call, server: member.server }) : rename(kind, text)
    const renamed = replaced(method, params, replace)
    const shown = method === 'notifications/tasks' ? this.#signed(member, renamed) : renamed
    const isUnnamed = method === 'notifications/message' && typeof value(shown, 'logger') !== 'string'
    const named = isUnnamed ? edit(shown, { logger: JSON.stringify(prefixedLogger(member, undefined)) }) : shown
    return named === params ? notification : { ...notification, params: named }
  }

  /**
   * Maps names and URIs of a server to those of the group, but for `bare`. URIs in the answer to `call` are remembered for
   * its caller, which may request them without their prefix later.
   */
  #replaceFor(member: Member, call?: Call, bare?: string): Replace {
    const { bareNames, bareUris } = this.#plan
    const alone = isAlone(this.#plan)
    let who: string | undefined
    return (kind, text) => {
      if (kind === 'name') return bareNames ? text : prefixed(member, text)
      if (alone) return text
      if (kind === 'cursor') return call ? this.#eventCursors.sealed(text, { call, server: member.server }) : text
      if (kind === 'task') return prefixed(member, text)
      if (kind === 'logger') return prefixedLogger(member, text)
      if (call) {
        who ??= whoOf(call)
        this.#targets.claimed(who, member, text, 'sent')
      }
      return bareUris || text === bare ? text : prefixedUri(member, text)
    }
  }
}

/** Whether two plans give the things of a server the same names. */
function isNamedAlike(one: GroupPlan, other: GroupPlan): boolean {
  return one.bareNames === other.bareNames && one.bareUris === other.bareUris && isAlone(one) === isAlone(other)
}

/** An error about the resource that the server calls `id` names the URI that the client sent. */
function shownError(error: RpcError, id: string, uri: Json | undefined): RpcError {
  const details = uri !== undefined && error.data?.startsWith('{') ? parseObject(error.data) : undefined
  if (!details || raw(details, 'uri') !== JSON.stringify(id)) return error
  return { ...error, data: write(edit(details, { uri })) }
}

function identityOf({ plan: { name, title }, version }: Pick<GroupOptions, 'plan' | 'version'>): Json {
  return JSON.stringify({ name, title, version })
}

/** The target of a call at its server, for the log. Ids of tasks must not be logged. */
function originalOf(method: string, id: string): { original: string } | undefined {
  const { named } = methodTraits(method)
  if (named !== 'name' && named !== 'uri') return undefined
  return { original: (named === 'uri' ? publicAddress(id) : id).slice(0, MAX_LOGGED_NAME) }
}
