/**
 * Lets clients search the tools of a group instead of listing them. A call through `call_tool` is handled as if the client
 * had sent it directly, so all rules for calls apply to it.
 */

import { MAX_LOGGED_NAME } from '../../base/limits/constants.js'
import { edit, NO_ORIGIN, raw, value } from '../../base/rpc/splice.js'
import { ECHOED, printable } from '../../base/texts/printable.js'
import { SIGN_IN_TOOL } from '../../mcp/protocol/account.js'
import type { Call, Final, Handler } from '../../mcp/protocol/call.js'
import { isFirst } from '../../mcp/protocol/listed.js'
import { CALL_TOOL } from '../../mcp/protocol/methods.js'
import { matchesGlobs } from '../policy/globs.js'
import { refuse } from '../policy/refusal.js'
import { stringIn } from '../policy/unambiguous.js'
import { isOfUnknown } from '../policy/unknown.js'
import { wrongCursor } from './cursors.js'
import type { Inside } from './inside.js'
import type { ListedItem } from './list-page.js'
import type { Lists, Whole } from './lists.js'
import { activeIn, type SearchPlan } from './member.js'
import { joinedLists } from './merge.js'
import { SEPARATOR } from './names.js'
import { nearestNames } from './nearest-names.js'
import { ranked } from './ranking.js'
import { CALL, definitions, queryOf, SEARCH, unwrapped, WrongForm } from './search-tools.js'
import { ToolIndexes } from './tool-indexes.js'

const LIST = 'tools/list'
/** Errors of a server that may say that it has no such tool. Hosts hide errors from models. */
const UNKNOWN_CODES: ReadonlySet<number> = new Set([-32601, -32602])
/** What servers say of a tool that they do not have; longer answers say more than that. */
const NOT_THERE = /not found|unknown|no such|does not exist/i
const MAX_NOT_THERE = 2_000
const FEWER = 'list fewer with "always" of the search'
/** Most tools that are found by the words of an unknown name. */
const MAX_FOUND_BY_NAME = 5

export class Search {
  readonly #inside: Inside
  readonly #lists: Lists
  readonly #indexes: ToolIndexes

  constructor(inside: Inside, lists: Lists) {
    this.#inside = inside
    this.#lists = lists
    this.#indexes = new ToolIndexes(inside.memory, inside.log)
  }

  /** Answers calls of the group's own tools; `next` answers all others. */
  handle(call: Call, next: Handler): Promise<Final> {
    const { search } = this.#inside.plan()
    if (search && call.method === LIST) return this.#list(call, search)
    return search && call.method === CALL_TOOL ? this.#call(call, next, search) : next(call)
  }

  close(): void {
    this.#indexes.close()
  }

  async #call(call: Call, next: Handler, search: SearchPlan): Promise<Final> {
    const name = stringIn(call.params, 'name')
    if (name !== SEARCH && name !== CALL) return next(call)
    try {
      return await (name === SEARCH ? this.#search(call, search) : this.#through(call, next, search))
    } catch (error) {
      if (!(error instanceof WrongForm)) throw error
      return refuse(call, { reason: 'invalid_params', text: error.message })
    }
  }

  async #list(call: Call, search: SearchPlan): Promise<Final> {
    if (!isFirst(raw(call.params, 'cursor'))) throw wrongCursor()
    const { identity, log, plan } = this.#inside
    const own = definitions(
      activeIn(plan()).map(({ server }) => server),
      search.limit,
    )
    return this.#lists.whole(call, LIST, (whole) => {
      const items = whole.lists.flatMap((list) => list.items.filter((item) => isListed(item, search)))
      const tools = joinedLists([...own, ...items.map(({ text }) => text)])
      const listed = { characters: tools.length, count: own.length + items.length }
      log.large([{ server: '', cursor: undefined, ...listed }], FEWER)
      const result = edit(NO_ORIGIN, { tools, _meta: whole.meta })
      return { kind: 'result', result, server: identity(), cache: whole.cache }
    })
  }

  #search(call: Call, search: SearchPlan): Promise<Final> {
    const { query, limit } = queryOf(call, search.limit)
    const { identity } = this.#inside
    // The client will call the found tools through `call_tool`, without headers for their arguments.
    const { paramHeaders: _none, ...caller } = call
    return this.#lists.whole(caller, LIST, async (whole) => {
      const { items, cut } = await this.#found(whole, query, limit)
      const texts = [`{"tools":${joinedLists(items.map(({ text }) => text))}}`, ...notSearched(whole, cut)]
      const content = JSON.stringify(texts.map((text) => ({ type: 'text', text })))
      return { kind: 'result', result: edit(NO_ORIGIN, { content, structuredContent: texts[0] }), server: identity() }
    })
  }

  /** Makes the call inside a call of `call_tool`. The log and the inspector name the actual tool. */
  async #through(call: Call, next: Handler, search: SearchPlan): Promise<Final> {
    const meant = unwrapped(call)
    const name = stringIn(meant.params, 'name') ?? ''
    call.log.note({ name: name.slice(0, MAX_LOGGED_NAME), through: CALL })
    // Without prefixes, a server may have a tool with this name.
    if (name === SEARCH && !this.#inside.plan().bareNames) return this.#search(meant, search)
    try {
      const last = await next(meant)
      return mayBeOfUnknown(last, name) ? ((await this.#unknown(meant, name)) ?? last) : last
    } catch (error) {
      const refused = isOfUnknown(error) ? await this.#unknown(meant, name) : undefined
      if (refused) return refused
      throw error
    }
  }

  /**
   * The result of a call of an unknown tool, with the names that it may mean. Undefined if the tool is listed, or if the lists
   * cannot be read.
   */
  #unknown(call: Call, name: string): Promise<Final | undefined> {
    const refusal = this.#lists.whole(call, LIST, async (whole) => {
      const names = whole.lists.flatMap((list) => list.items.map(({ shown = '' }) => shown))
      if (names.includes(name)) return undefined
      const { items, cut } = await this.#found(whole, name.slice(0, MAX_LOGGED_NAME), MAX_FOUND_BY_NAME)
      const found = items.map(({ shown = '' }) => shown)
      const nearest = nearestNames(name, names, found).map((one) => printable(one, ECHOED))
      const hint = nearest.length === 0 ? '' : ` The nearest names: ${nearest.join(', ')}.`
      const texts = [
        `Unknown tool: ${printable(name, ECHOED)}.${hint} Find others with ${SEARCH}.`,
        ...notSearched(whole, cut),
      ]
      return refuse(call, { reason: 'unknown_tool', text: texts.join(' ') })
    })
    return refusal.catch(() => undefined)
  }

  /** The best tools for a question, first the one that it names; and the servers whose tools are not all searched. */
  async #found({ lists }: Whole, question: string, limit: number): Promise<{ items: ListedItem[]; cut: string[] }> {
    const name = question.trim()
    const named = lists.flatMap(({ items }) => items.find(({ shown }) => shown === name) ?? [])
    const indexes = await this.#indexes.of(lists)
    const hits = await ranked(indexes, question, limit)
    const found = hits.flatMap(({ index, tool }) => lists[index]?.items[tool] ?? [])
    const cut = lists.flatMap(({ member, items }, i) => (items.length > (indexes[i]?.count ?? 0) ? member.server : []))
    return { items: [...new Set([...named, ...found])].slice(0, limit), cut }
  }
}

/** Whether a tool is listed. The sign-in tool always is; a tool with the name of one of the group's own two never is. */
function isListed({ id, shown }: ListedItem, { always }: SearchPlan): boolean {
  if (id === SIGN_IN_TOOL) return true
  return shown !== undefined && shown !== SEARCH && shown !== CALL && matchesGlobs(always, shown)
}

/**
 * Whether an answer may say that there is no such tool. Servers made with the SDK say it in a failed result, as in
 * `MCP error -32602: Tool x not found`.
 */
function mayBeOfUnknown(last: Final, name: string): boolean {
  if (last.kind === 'error') return UNKNOWN_CODES.has(last.error.code)
  if (last.kind !== 'result' || value(last.result, 'isError') !== true) return false
  const said = raw(last.result, 'content') ?? ''
  const [, own = name] = name.split(SEPARATOR, 2)
  return said.length <= MAX_NOT_THERE && (said.includes('-32602') || (said.includes(own) && NOT_THERE.test(said)))
}

/** What a search has not seen, in words. `cut`: the servers with more tools than there is room for in the index. */
function notSearched({ missing }: Whole, cut: readonly string[]): string[] {
  const silent = missing.flatMap(({ server, isCut }) => (isCut ? [] : server))
  const long = new Set([...missing.flatMap(({ server, isCut }) => (isCut ? server : [])), ...cut])
  return [
    ...(silent.length === 0 ? [] : [`Not searched, because they do not answer: ${silent.join(', ')}`]),
    ...(long.size === 0 ? [] : [`Not searched to the end, because their lists are too long: ${[...long].join(', ')}`]),
  ]
}
