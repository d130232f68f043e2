/** Answers list requests and discovery of a group with the merged answers of its servers. */

import { digest } from '../crypto/digest.js'
import type { SealKey } from '../crypto/seal.js'
import { Fault } from '../fault/fault.js'
import { MAX_PAGES } from '../limits/constants.js'
import type { Memory } from '../limits/memory.js'
import { OWN as OURS } from '../policy/refusal.js'
import type { CacheHint, Call, Final } from '../protocol/call.js'
import { EMPTY, edit, type Json, NO_PARAMS, OWN, type Payload, raw, sizeOf } from '../rpc/splice.js'
import type { Asked, Asking, Missing } from './asking.js'
import { Carrier } from './carried.js'
import { JoinedLists } from './joined.js'
import { LISTS, type ListedItem, type Listings, type ListPage, type ListTraits, whoOf } from './listings.js'
import type { GroupPlan, Member } from './member.js'
import {
  type DiscoverAnswer,
  itemsOf,
  joinedDiscovery,
  joinedInstructions,
  joinedLists,
  joinedMeta,
  leastHint,
} from './merge.js'
import { partLog } from './part-log.js'
import type { Replace } from './places.js'
import { HOW_TO_SEARCH } from './search-tools.js'

export interface ListsOptions {
  group: string
  keys: readonly SealKey[]
  plan(): GroupPlan
  asking: Asking
  listings: Listings
  memory: Memory
  /** The group's own Implementation, as JSON. */
  identity(): Json
  /** Maps the names and URIs of a server to those of the group. */
  replaceFor(member: Member): Replace
  /** Called with the answer of each server. */
  heard(member: Member, asked: Asked, principal: string): void
  /** Called for a name that is omitted because an earlier server has it. */
  hidden(member: Member, method: string, name: string): void
  /** Called once per page with the names of its tools for clients. */
  named(member: Member, names: Iterable<string>): void
}

/** The sources of one page of a merged list. */
interface Part {
  member: Member
  page: ListPage | undefined
  missing: Missing | undefined
  result: Payload | undefined
  hint: CacheHint | undefined
}

/** A server whose list a caller did not get. */
export interface Unheard {
  member: Member
  /** The server may still answer. */
  isLate: boolean
}

/** The complete list of all servers. */
export interface Whole {
  pages: readonly ListPage[]
  /** As clients see them. */
  items: readonly ListedItem[]
  /** Servers that have not answered. */
  missing: readonly string[]
  meta: Json | undefined
  cache: CacheHint
}

/** Lists in which the names of two servers may collide. */
const NAMED: ReadonlySet<string> = new Set(['tools/list', 'prompts/list'])
const UNAVAILABLE = `${OURS}unavailable`
/** Milliseconds for which discovery waits. The merged answer lacks slower servers. */
const DISCOVER_WAIT = 1_000

export class Lists {
  readonly #options: ListsOptions
  readonly #cursors: Carrier
  readonly #joined: JoinedLists
  /** Pages whose names have been checked for their length. */
  readonly #measured = new WeakSet<ListPage>()

  constructor(options: ListsOptions) {
    this.#options = options
    this.#cursors = new Carrier(options.keys, 'group-cursor')
    this.#joined = new JoinedLists(options.memory)
  }

  /** The active servers. */
  get members(): readonly Member[] {
    return this.#options.plan().members.filter((member) => member.takesPart())
  }

  /** Whether a server of the group is not active yet, so that its offer is unknown. */
  get isPartial(): boolean {
    return this.members.length < this.#options.plan().members.length
  }

  /** The answer to a list. Rejects with a Fault if the cursor is invalid, or if a required server is missing. */
  async page(call: Call): Promise<Final> {
    const { method, params, log } = call
    const traits = LISTS[method] as ListTraits
    const who = whoOf(call)
    const { members } = this
    const from = this.#from(params, method, members)
    const asked = await this.#askAll(call, who, members.slice(from.at), from.cursor)
    const parts = asked.map(({ member, answer, question }) => this.#part(who, member, question, answer))
    this.#check(parts)
    const same = from.at === 0 && from.cursor === undefined && this.#whole(parts, method)
    if (same) return same
    const items: string[] = []
    let next: Json | undefined
    const used: Part[] = []
    for (const part of parts) {
      used.push(part)
      items.push(this.#shown(part, method, this.#takenBefore(who, part.member, method, members)))
      if (part.page?.next === undefined) continue
      next = this.#cursorFor(part.member, method, part.page.next)
      break
    }
    const missing = used.filter((part) => part.missing)
    if (missing.length > 0) log.note({ missing: missing.map(({ member }) => member.server).join(' ') })
    const meta = joinedMeta(
      used.flatMap(({ result }) => result ?? []),
      unavailable(missing),
    )
    const result = edit(OWN, { [traits.key]: joinedLists(items), nextCursor: next, _meta: meta })
    const cache = missing.length > 0 ? NOT_NOW : leastHint(used.flatMap((part) => (part.page ? [part.hint] : [])))
    return { kind: 'result', result, server: this.#options.identity(), cache }
  }

  /** The answer if each server has one page and none is missing; otherwise undefined. */
  #whole(parts: readonly Part[], method: string): Final | undefined {
    const pages: ListPage[] = []
    const results: Payload[] = []
    const hints: (CacheHint | undefined)[] = []
    for (const { missing, page, result, hint } of parts) {
      if (missing || page?.next !== undefined) return undefined
      if (!page) continue
      pages.push(page)
      if (result) results.push(result)
      hints.push(hint)
    }
    const meta = joinedMeta(results)
    const result = this.#joined.of({ method, pages, meta }, () => {
      const items = parts.map((part, i) =>
        this.#shown(part, method, (id) => parts.slice(0, i).some(({ page }) => page?.ids.has(id))),
      )
      return edit(OWN, { [(LISTS[method] as ListTraits).key]: joinedLists(items), _meta: meta })
    })
    return { kind: 'result', result, server: this.#options.identity(), cache: leastHint(hints) }
  }

  /** Drops the merged lists. */
  clear(): void {
    this.#joined.clear()
  }

  close(): void {
    this.#joined.close()
  }

  /** The complete list of all servers. Rejects as `page` does. */
  async whole(call: Call, method: string): Promise<Whole> {
    const who = whoOf(call)
    const { members } = this
    const parts = await this.#readEach(unaddressed(call, method), who)
    const firsts = parts.flatMap(([first]) => first ?? [])
    this.#check(firsts)
    const missing = parts.flatMap((pages) => pages.find((part) => part.missing) ?? [])
    if (missing.length > 0) call.log.note({ missing: missing.map(({ member }) => member.server).join(' ') })
    const found = parts.flat()
    return {
      pages: found.flatMap(({ page }) => page ?? []),
      items: found.flatMap((part) => this.#itemsOf(part, method, this.#takenBefore(who, part.member, method, members))),
      missing: missing.map(({ member: { server } }) => server),
      meta: joinedMeta(
        firsts.flatMap(({ result }) => result ?? []),
        unavailable(missing),
      ),
      cache: missing.length > 0 ? NOT_NOW : leastHint(found.flatMap(({ page, hint }) => (page ? [hint] : []))),
    }
  }

  /** The answer to `server/discover`. */
  async discover(call: Call): Promise<Final> {
    const plan = this.#options.plan()
    const { found, missing, hints } = await this.#discovered(call)
    this.#checkRequired(missing)
    const hasAll = missing.every(({ member }) => found.some(({ server }) => server === member.server))
    const isComplete = hasAll && !this.isPartial
    const { bareNames, instructionBytes: most, search } = plan
    const own = search ? HOW_TO_SEARCH : undefined
    const instructions = plan.instructions ?? joinedInstructions(found, { bareNames, most, own })
    const result = joinedDiscovery(found, { isComplete, instructions, hasTools: search !== undefined })
    const meta = joinedMeta([], unavailable(missing))
    const cache = missing.length > 0 ? NOT_NOW : leastHint(hints)
    return {
      kind: 'result',
      result: meta === undefined ? result : edit(result, { _meta: meta }),
      server: this.#options.identity(),
      cache,
    }
  }

  /** The discovery results of all servers for this caller; undefined if one is missing. */
  known(call: Call): readonly DiscoverAnswer[] | undefined {
    const who = whoOf(call)
    const known = this.members.flatMap((member) => {
      const result = this.#options.listings.discovered(who, member)
      return result ? [{ server: member.server, prefix: member.prefix, result }] : []
    })
    return known.length === this.members.length ? known : undefined
  }

  /** The discovery results of the servers for this caller: remembered ones, and those that arrive in time. */
  async describe(call: Call): Promise<readonly DiscoverAnswer[]> {
    const known = this.known(call)
    if (known) return known
    return (await this.#discovered(unaddressed(call, 'server/discover'))).found
  }

  /**
   * Reads all pages of a list of all servers, and remembers them for the caller. Resolves to the servers without any
   * page.
   */
  async readAll(call: Call, method: string): Promise<readonly Unheard[]> {
    const parts = await this.#readEach(unaddressed(call, method), whoOf(call))
    return parts
      .flat()
      .flatMap(({ member, page, missing }) => (missing && !page ? { member, isLate: missing.isLate } : []))
  }

  #has(who: string, member: Member, method: string, name: string): boolean {
    for (const page of this.#options.listings.all(who, member, method)) if (page.ids.has(name)) return true
    return false
  }

  /** All pages of all servers. */
  #readEach(listing: Call, who: string): Promise<Part[][]> {
    return Promise.all(
      this.members.map(async (member) => {
        const parts: Part[] = []
        let cursor: Json | undefined
        do {
          const [asked] = await this.#askAll(listing, who, [member], cursor)
          if (!asked) break
          const part = this.#part(who, member, asked.question, asked.answer)
          parts.push(part)
          cursor = part.page?.next
        } while (cursor !== undefined && parts.length < MAX_PAGES)
        return parts
      }),
    )
  }

  async #discovered(
    call: Call,
  ): Promise<{ found: DiscoverAnswer[]; missing: Part[]; hints: (CacheHint | undefined)[] }> {
    const { listings } = this.#options
    const who = whoOf(call)
    const asked = await this.#askAll(call, who, this.members, undefined, DISCOVER_WAIT)
    const found: DiscoverAnswer[] = []
    const missing: Part[] = []
    const hints: (CacheHint | undefined)[] = []
    for (const { member, answer } of asked) {
      const { server, prefix } = member
      if (answer.kind === 'answer') {
        this.learnDiscovered(who, member, answer.reply.result)
        hints.push(answer.reply.cache)
      } else if (answer.kind === 'missing') {
        missing.push({ member, page: undefined, missing: answer, result: undefined, hint: undefined })
      }
      const result = listings.discovered(who, member)
      if (result) found.push({ server, prefix, result })
    }
    return { found, missing, hints }
  }

  /** Remembers the discovery result of a server. */
  learnDiscovered(who: string, member: Member, result: Payload): void {
    this.#options.listings.learnDiscovered(who, member, result, sizeOf(result))
  }

  /** Remembers a page, unless its server has been replaced in the meantime: the new one may hide some items. */
  learn(who: string, member: Member, question: Pick<Call, 'method' | 'params'>, result: Payload): ListPage {
    const { listings, plan, replaceFor, named } = this.#options
    const replace = replaceFor(member)
    const page = listings.read(member, question, result, replace)
    if (plan().members.includes(member)) listings.keep(who, member, question, page)
    if (question.method !== 'tools/list' || this.#measured.has(page)) return page
    this.#measured.add(page)
    named(
      member,
      [...page.ids].map((id) => replace('name', id)),
    )
    return page
  }

  async #askAll(
    call: Call,
    who: string,
    members: readonly Member[],
    first: Json | undefined,
    most = Number.POSITIVE_INFINITY,
  ) {
    const { asking, plan, heard } = this.#options
    const { wait: patience } = plan()
    const wait = Math.min(patience, most)
    const { log, over } = partLog(call.log)
    const afresh = { ...call, params: edit(call.params, { cursor: undefined }), log }
    const questions = members.map((member, i) => {
      const question =
        i === 0 && first !== undefined ? { ...afresh, params: edit(call.params, { cursor: first }) } : afresh
      return { member, call: question, who, wait, patience }
    })
    try {
      const answers = await asking.ask(questions, call.signal)
      return questions.map(({ member, call: question }, i) => {
        const answer = answers[i] as Asked
        heard(member, answer, call.principal)
        return { member, answer, question }
      })
    } finally {
      over()
    }
  }

  #part(who: string, member: Member, question: Pick<Call, 'method' | 'params'>, answer: Asked): Part {
    if (answer.kind === 'answer') {
      const { result, cache: hint } = answer.reply
      return { member, page: this.learn(who, member, question, result), missing: undefined, result, hint }
    }
    const missing = answer.kind === 'missing' ? answer : undefined
    // Remembered items of a missing server stay listed.
    const page = missing && this.#options.listings.known(who, member, question)
    return { member, page, missing, result: undefined, hint: undefined }
  }

  /** Throws a Fault if a required server is missing, or if all have failed and nothing is known. */
  #check(parts: readonly Part[]): void {
    this.#checkRequired(parts)
    const [first] = parts
    // A single server decides who may see its lists, even remembered ones.
    if (first?.missing?.why.refused && this.#options.plan().members.length === 1) throw first.missing.why
    const isNothing = parts.every(({ page, missing }) => missing && !missing.isLate && !page)
    if (isNothing && first?.missing) throw first.missing.why
  }

  #checkRequired(parts: readonly Part[]): void {
    const { required } = this.#options.plan()
    for (const { member, missing } of parts) if (missing && required.has(member.server)) throw missing.why
  }

  /** The items of a part as clients see them, as JSON text. */
  #shown(part: Part, method: string, isTaken: (id: string) => boolean): string {
    const { page } = part
    if (!page) return ''
    if (!this.#options.plan().bareNames || !NAMED.has(method)) return page.text
    const items = this.#itemsOf(part, method, isTaken)
    if (items.length === page.items.length) return page.text
    return itemsOf(joinedLists(items.map(({ text }) => text)))
  }

  /** The items of a part. Without prefixes, names that an earlier server has are omitted. */
  #itemsOf({ member, page }: Part, method: string, isTaken: (id: string) => boolean): readonly ListedItem[] {
    if (!page || !this.#options.plan().bareNames || !NAMED.has(method)) return page?.items ?? []
    return page.items.filter(({ id }) => {
      if (id === undefined || !isTaken(id)) return true
      this.#options.hidden(member, method, id)
      return false
    })
  }

  /** Returns a function that tells whether an earlier server has a name, by the lists that the caller got. */
  #takenBefore(who: string, member: Member, method: string, members: readonly Member[]): (id: string) => boolean {
    const earlier = members.slice(0, members.indexOf(member))
    return (id) => earlier.some((one) => this.#has(who, one, method, id))
  }

  /** The start of a request: a server, and a cursor of that server. */
  #from(params: Payload, method: string, members: readonly Member[]): { at: number; cursor: Json | undefined } {
    const cursor = raw(params, 'cursor')
    if (cursor === undefined || cursor === 'null') return { at: 0, cursor: undefined }
    const carried = this.#cursors.open(cursor)
    const { g, v, s, l } = carried?.fields ?? {}
    const at = members.findIndex(({ server }) => server === s)
    if (!carried || g !== this.#options.group || v !== this.#planDigest || l !== method || at < 0)
      throw new Fault(
        'invalidParams',
        'params.cursor is not a cursor of this list, or the servers of the group have changed',
      )
    return { at, cursor: carried.text }
  }

  #cursorFor({ server }: Member, method: string, cursor: Json): Json {
    return this.#cursors.carry({ g: this.#options.group, v: this.#planDigest, s: server, l: method }, cursor)
  }

  get #planDigest(): string {
    const { members, bareNames, bareUris } = this.#options.plan()
    return digest(JSON.stringify([members.map(({ server, prefix }) => [server, prefix]), bareNames, bareUris])).slice(
      0,
      16,
    )
  }
}

const NO_HEADERS: ReadonlyMap<string, string> = new Map()
const NOT_NOW: CacheHint = { ttlMs: 0, scope: 'private' }

/** A call of the same caller without the content of the original call, which is meant for one server. */
function unaddressed(call: Call, method: string): Call {
  const { paramHeaders } = call
  const headers = paramHeaders && { paramHeaders: NO_HEADERS }
  return { ...call, method, params: NO_PARAMS, answers: undefined, meta: EMPTY, ...headers }
}

function unavailable(missing: readonly Part[]): Record<string, Json> {
  if (missing.length === 0) return {}
  const entries = missing.map(({ member: { server }, missing: { why } = {} }) => ({
    server,
    reason: why?.row.reason ?? 'invalid_params',
    message: why?.message,
  }))
  return { [UNAVAILABLE]: JSON.stringify(entries) }
}
