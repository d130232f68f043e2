/**
 * Several servers as one: a group is an Upstream made of the Upstreams of its servers, independent of eras. Each call goes
 * to its target server, through that server's own policies; lists and discovery go to all servers.
 */

import type { SealKey } from '../crypto/seal.js'
import { Fault } from '../fault/fault.js'
import { MAX_LOGGED_NAME } from '../limits/constants.js'
import type { Memory } from '../limits/memory.js'
import type { Log } from '../log/events.js'
import type { Observe } from '../ports/events.js'
import type { Call, Final, Handler, Notice, Told } from '../protocol/call.js'
import { LISTEN, methodTraits } from '../protocol/methods.js'
import type { ChangingList } from '../protocol/subscriptions.js'
import type { LegacyRoute, Upstream } from '../protocol/upstream.js'
import { edit, type Json, parseObject, raw, write } from '../rpc/splice.js'
import { ECHOED, printable, publicAddress } from '../texts/printable.js'
import { type Asked, Asking, type MemberQuestion } from './asking.js'
import { GroupListening } from './listen.js'
import { LISTS, Listings, whoOf } from './listings.js'
import { Lists } from './lists.js'
import type { GroupPlan, Member } from './member.js'
import { offersIn, onlyForeign } from './merge.js'
import { isTooLong, prefixed, prefixedLogger } from './names.js'
import { Owners } from './owners.js'
import { type Kind, mayHavePlaces, type Replace, replaced } from './places.js'
import { Search } from './search.js'
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
  observe?: Observe | undefined
}

/** Most names that are logged as omitted, and as too long; and most names in one line. */
const MAX_HIDDEN = 1_000
const MAX_LONG = 20

/** A tool or prompt that is omitted: in a group without prefixes, an earlier server has one with the same name. */
export interface Hidden {
  server: string
  method: string
  name: string
}

export class Group implements Upstream {
  readonly #options: GroupOptions
  #plan: GroupPlan
  /** The group's own Implementation. */
  #identity: Json
  readonly #listings: Listings
  readonly #asking: Asking
  readonly #lists: Lists
  readonly #targets: Targets
  readonly #states: States
  readonly #search: Search
  readonly #listening = new Set<GroupListening>()
  /** Servers whose last list or discovery failed, with the reason. */
  readonly #missing = new Map<string, string>()
  /** Names that are omitted because an earlier server has them. */
  readonly #hidden = new Map<string, Hidden>()
  /** Names that were logged as too long. */
  readonly #long = new Set<string>()

  constructor(options: GroupOptions) {
    const { name, keys, memory } = options
    this.#options = options
    this.#plan = options.plan
    this.#identity = identityOf(options)
    const plan = () => this.#plan
    this.#listings = new Listings(memory)
    this.#asking = new Asking((question, asked) => this.#came(question, asked))
    this.#lists = new Lists({
      group: name,
      keys,
      plan,
      asking: this.#asking,
      listings: this.#listings,
      memory,
      identity: () => this.#identity,
      replaceFor: (member) => this.#replaceFor(member),
      heard: (member, asked, principal) => this.#heard(member, asked, principal),
      hidden: (member, method, one) => this.#hide(member, method, one),
      named: (member, names) => this.#measure(member, names),
    })
    this.#targets = new Targets(plan, this.#lists, new Owners(this.#lists, this.#listings))
    this.#states = new States(name, keys)
    this.#search = new Search({ plan, lists: this.#lists, memory, identity: () => this.#identity })
  }

  /** Servers that did not answer the last list request, with the reason. */
  get missing(): ReadonlyMap<string, string> {
    return this.#missing
  }

  /** Tools and prompts that have been omitted from lists. */
  get hidden(): readonly Hidden[] {
    return [...this.#hidden.values()]
  }

  readonly handle: Handler = (call) => this.#search.handle(call, this.withoutSearch)

  /** Answers as a group without tool search. */
  readonly withoutSearch: Handler = async (call) => {
    const { method } = call
    if (method === 'server/discover') return this.#lists.discover(call)
    if (Object.hasOwn(LISTS, method)) return this.#lists.page(call)
    if (method === LISTEN) return this.#listen(call)
    const target = this.#targets.of(call)
    return this.#send(call, target instanceof Promise ? await target : (target ?? (await this.#unnamed(call))))
  }

  notify(notice: Notice): void {
    for (const { upstream } of this.#lists.members) upstream.notify(notice)
  }

  /** The bridge has the client's session, because no single server could answer for the group. */
  legacyRoute(): Promise<LegacyRoute> {
    return Promise.resolve('translate')
  }

  connected(principal: string): () => void {
    const ends = this.#plan.members.map(({ upstream }) => upstream.connected?.(principal))
    return () => {
      for (const end of ends) end?.()
    }
  }

  /** Replaces the servers or their names, and notifies clients with a subscription. */
  change(plan: GroupPlan): void {
    this.#plan = plan
    this.#identity = identityOf({ ...this.#options, plan })
    this.#listings.clear()
    this.#lists.clear()
    for (const server of this.#missing.keys())
      if (!plan.members.some((member) => member.server === server)) this.#missing.delete(server)
    this.refresh()
  }

  /** Notifies clients with a subscription: servers have become active or inactive. */
  refresh(): void {
    for (const listening of this.#listening) listening.changed()
  }

  close(): void {
    this.#asking.close()
    this.#listings.close()
    this.#lists.close()
    this.#search.close()
  }

  /** Sends a call to its server, and translates the answer into the names of the group. */
  async #send(call: Call, target: CallTarget): Promise<Final> {
    const { member, id, params } = target
    const { server, upstream } = member
    const { method, answers } = call
    call.log.note(params === call.params ? { server } : { server, ...originalOf(method, id) })
    const belonging = { call, server, name: id }
    const state = answers?.state === undefined ? undefined : this.#states.opened(answers.state, belonging)
    const theirs: Call = {
      ...call,
      params,
      answers: answers && { ...answers, state },
      tell: (told) => call.tell(this.#shown(member, told)),
    }
    const reply = await upstream.handle(theirs)
    switch (reply.kind) {
      case 'error':
        return this.#shownError(call, target, reply)
      case 'input':
        return { ...reply, result: this.#states.sealed(reply.result, belonging), server: this.#identity }
      case 'result': {
        const kind = reply.type === 'task' ? 'task' : method
        const result = mayHavePlaces(kind, reply.result)
          ? replaced(
              kind,
              reply.result,
              this.#replaceFor(member, () => whoOf(call), target.bare),
            )
          : reply.result
        return { ...reply, result, server: this.#identity }
      }
    }
  }

  /** The target of a call whose params name no server: the only server, or the only one with unknown capabilities. */
  async #unnamed(call: Call): Promise<CallTarget> {
    const { members } = this.#lists
    const [only, ...others] = members
    const foreign = others.length === 0 ? undefined : onlyForeign(await this.#lists.describe(call))
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
      members: () => this.#lists.members,
      offered: (lists) => this.#offered(call, lists),
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

  /** The lists that the group offers. All, if a server has not answered or is not active yet: it may offer any. */
  async #offered(call: Call, lists: readonly ChangingList[]): Promise<readonly ChangingList[]> {
    const described = this.#lists.known(call)
    if (!described || this.#lists.isPartial) return lists
    return lists.filter(({ capability }) => described.some((one) => offersIn(one, capability)))
  }

  /** A server answered after its callers stopped waiting. */
  #came({ member, call, who }: MemberQuestion, asked: Asked): void {
    this.#heard(member, asked, call.principal)
    if (asked.kind !== 'answer') return
    const { result } = asked.reply
    if (call.method === 'server/discover') this.#lists.learnDiscovered(who, member, result)
    else this.#lists.learn(who, member, call, result)
    for (const listening of this.#listening) if (listening.principal === call.principal) listening.came()
  }

  /** Notes whether a server has answered, and reports changes. */
  #heard(member: Member, asked: Asked, principal: string): void {
    const { log, name: group, observe } = this.#options
    const { server } = member
    if (asked.kind !== 'missing') {
      if (!this.#missing.delete(server)) return
      observe?.({ kind: 'member', group, server, what: 'back' })
      log.info({ event: 'group_complete', server }, 'a server of the group answers again')
      return
    }
    const why = asked.why.message
    for (const listening of this.#listening) if (listening.principal === principal) listening.expect(member)
    if (this.#missing.has(server)) return
    this.#missing.set(server, why)
    observe?.({ kind: 'member', group, server, what: 'missing', why })
    log.warn(
      { event: 'group_incomplete', server, why },
      'a server of the group does not answer; the others are served without it',
    )
  }

  #hide({ server }: Member, method: string, name: string): void {
    const key = `${server} ${method} ${name}`
    if (this.#hidden.has(key) || this.#hidden.size >= MAX_HIDDEN) return
    this.#hidden.set(key, { server, method, name })
    const message = 'name left out: an earlier server of the group has it'
    this.#options.log.warn({ event: 'group_name_hidden', server, method, name: printable(name) }, message)
  }

  /** Warns once about each tool name that is too long for some clients. */
  #measure({ server }: Member, names: Iterable<string>): void {
    const { name: group, log } = this.#options
    const fresh = [...names].filter((name) => isTooLong(group, name) && !this.#long.has(name))
    if (fresh.length === 0 || this.#long.size >= MAX_HIDDEN) return
    for (const name of fresh) this.#long.add(name)
    const some = fresh.slice(0, MAX_LONG).map((name) => printable(name))
    log.warn(
      { event: 'group_names_long', server, names: some, count: fresh.length },
      'names of tools are too long for some clients: set a shorter prefix in "prefixes"',
    )
  }

  /** A message of a server, in the names of the group. */
  #shown(member: Member, told: Told): Told {
    const { method, params } = told
    if (isAlone(this.#plan) || !mayHavePlaces(method, params)) return told
    const shown = replaced(method, params, this.#replaceFor(member))
    const isLog = method === 'notifications/message' && raw(shown, 'logger') === undefined
    const named = isLog ? edit(shown, { logger: JSON.stringify(prefixedLogger(member, undefined)) }) : shown
    return named === params ? told : { ...told, params: named }
  }

  /** An error about a resource names the URI that the client sent. */
  #shownError(call: Call, { id, params }: CallTarget, reply: Final & { kind: 'error' }): Final {
    const { data } = reply.error
    const uri = raw(call.params, 'uri')
    if (params === call.params || uri === undefined || !data?.startsWith('{'))
      return { ...reply, server: this.#identity }
    const details = parseObject(data)
    const isAbout = raw(details, 'uri') === JSON.stringify(id)
    const error = isAbout ? { ...reply.error, data: write(edit(details, { uri })) } : reply.error
    return { ...reply, error, server: this.#identity }
  }

  /**
   * Maps names and URIs of a server to those of the group. With `who`, URIs are remembered for that caller, which may
   * request them without their prefix later.
   */
  #replaceFor(member: Member, who?: () => string, bare?: string): Replace {
    const { bareNames, bareUris } = this.#plan
    const alone = isAlone(this.#plan)
    let known: string | undefined
    const replace: Readonly<Record<Kind, (text: string) => string>> = {
      name: (name) => (bareNames ? name : prefixed(member, name)),
      uri: (uri) => {
        if (alone || uri === bare) return uri
        if (who) {
          known ??= who()
          this.#targets.sent(known, member, uri)
        }
        return bareUris ? uri : prefixedUri(member, uri)
      },
      task: (taskId) => (alone ? taskId : prefixed(member, taskId)),
      logger: (logger) => (alone ? logger : prefixedLogger(member, logger)),
    }
    return (kind, text) => replace[kind](text)
  }
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
