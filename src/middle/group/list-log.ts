/** Reports what clients of a group cannot get or use of the lists of its servers, once each. */

import { MAX_LOGGED_NAME } from '../../base/limits/constants.js'
import type { Log } from '../../base/log/events.js'
import type { Json } from '../../base/rpc/splice.js'
import { printable, publicAddress } from '../../base/texts/printable.js'
import type { ListPage } from './list-page.js'
import type { Member } from './member.js'
import { isTooLong, isUnusual } from './names.js'
import { manyTokens } from './tokens.js'

/** An item of a list that is left out, by the name or URI at its server. */
export interface Hidden {
  server: string
  method: string
  name: string
  why: WhyHidden
}

/** `taken`: without prefixes, an earlier server has its name or URI. `twice`: its server lists it twice. */
type WhyHidden = 'taken' | 'twice' | 'malformed'

/** Tools that clients get in one page of a server. */
interface ListedPart {
  server: string
  /** The server's cursor of the page; undefined for the first page. */
  cursor: Json | undefined
  /** Of its JSON. */
  characters: number
  count: number
}

const WHY: Readonly<Record<WhyHidden, string>> = {
  taken: 'item of a list left out: an earlier server of the group has its name or URI',
  twice: 'item of a list left out: its server lists it twice',
  malformed: 'item of a list left out: it is not as MCP defines it',
}

/** Most names that are logged of each kind, and in one line. */
const MAX_LOGGED = 1_000
const MAX_IN_LINE = 20

export class ListLog {
  readonly #group: string
  readonly #log: Pick<Log, 'info' | 'warn'>
  readonly #hidden = new Map<string, Hidden>()
  readonly #long = new Set<string>()
  readonly #unusual = new Set<string>()
  /** Items that were repaired, by server, method and name. */
  readonly #repaired = new Set<string>()
  /** Lists that are not read to their end, by server and method. */
  readonly #cut = new Set<string>()
  /** URIs that several servers have. */
  readonly #ambiguous = new Set<string>()
  readonly #seen = new WeakSet<ListPage>()
  /** The pages of the list of tools that was listed last, by server and cursor: the first page begins another list. */
  readonly #pages = new Map<string, Map<Json | undefined, ListedPart>>()
  /** The most tokens of a list of tools so far. */
  #tokens = 0

  constructor(group: string, log: Pick<Log, 'info' | 'warn'>) {
    this.#group = group
    this.#log = log
  }

  /** What has been left out of lists. */
  get hidden(): readonly Hidden[] {
    return [...this.#hidden.values()]
  }

  /** Notes an item that is left out, and warns once about it. */
  hide({ server }: Pick<Member, 'server'>, method: string, name: string, why: WhyHidden): void {
    const key = `${server} ${method} ${name}`
    if (this.#hidden.has(key) || this.#hidden.size >= MAX_LOGGED) return
    this.#hidden.set(key, { server, method, name, why })
    const shown = printable(method.startsWith('resources/') ? publicAddress(name) : name, MAX_LOGGED_NAME)
    this.#log.warn({ event: 'group_name_hidden', server, method, name: shown }, WHY[why])
  }

  /** Warns once about a list that is not read to its end. */
  cut({ server }: Member, method: string, why: string): void {
    const key = `${server} ${method}`
    if (this.#cut.has(key) || this.#cut.size >= MAX_LOGGED) return
    this.#cut.add(key)
    const message = 'a list of a server is not read to its end: what comes after is not found'
    this.#log.warn({ event: 'group_list_cut', server, method, why }, message)
  }

  /** Warns once about a `_meta` of a list that is too long. */
  about({ server }: Member, method: string, length: number): void {
    const items = [`_meta of ${length} characters`]
    if (!this.#isNewRepair(server, method, '_meta')) return
    const message = 'the _meta of a list is too long: clients of the group do not get it'
    this.#log.warn({ event: 'group_items_repaired', server, method, items, count: 1 }, message)
  }

  /**
   * Tells how large a list of tools is for a model with these parts and those of its earlier pages, once, and again for one that is
   * twice as large.
   */
  large(parts: readonly ListedPart[], advice?: string): void {
    for (const part of parts) {
      const pages = part.cursor === undefined ? undefined : this.#pages.get(part.server)
      if (pages && pages.size >= MAX_LOGGED) continue
      this.#pages.set(part.server, (pages ?? new Map<Json | undefined, ListedPart>()).set(part.cursor, part))
    }
    const all = [...this.#pages.values()].flatMap((pages) => [...pages.values()])
    const many = manyTokens(
      all.reduce((sum, { characters }) => sum + characters, 0),
      advice,
    )
    if (!many || many.tokens < 2 * this.#tokens) return
    const { tokens, message } = many
    this.#tokens = tokens
    const count = all.reduce((sum, one) => sum + one.count, 0)
    this.#log.info({ event: 'group_tools_large', tokens, count }, message)
  }

  /** Warns once about a URI without prefix that several servers have. */
  ambiguous(uri: string, members: readonly Member[]): void {
    const shown = publicAddress(uri).slice(0, MAX_LOGGED_NAME)
    if (this.#ambiguous.has(shown) || this.#ambiguous.size >= MAX_LOGGED) return
    this.#ambiguous.add(shown)
    const servers = members.map(({ server }) => server)
    const message = 'a URI without prefix is not read: several servers have it'
    this.#log.warn({ event: 'group_uri_ambiguous', servers, uri: shown }, message)
  }

  /** Warns once about what is wrong with the items of a page. `shown` returns the name of a tool for clients. */
  see(member: Member, method: string, page: ListPage, shown: (name: string) => string): void {
    if (this.#seen.has(page)) return
    this.#seen.add(page)
    for (const { name, why, lost } of page.flaws) if (!lost) this.hide(member, method, name, why)
    this.#repairs(member, method, page)
    if (method !== 'tools/list') return
    const names = [...page.ids].map(shown)
    this.#names(member, this.#long, {
      names: names.filter((name) => isTooLong(this.#group, name)),
      event: 'group_names_long',
      message: 'names of tools are too long for some clients: set a shorter prefix in "prefixes"',
    })
    this.#names(member, this.#unusual, {
      names: names.filter(isUnusual),
      event: 'group_names_unusual',
      message:
        'names of tools have characters that APIs of models refuse: give them other names in "tools" of the server',
    })
  }

  #repairs({ server }: Member, method: string, { flaws }: ListPage): void {
    const fresh = flaws.flatMap(({ name, lost }) => {
      if (!lost || !this.#isNewRepair(server, method, name)) return []
      return [`${printable(name)}: ${lost.join(', ')}`]
    })
    if (fresh.length === 0) return
    const items = fresh.slice(0, MAX_IN_LINE)
    const message = 'items of a list have members that are not as MCP defines them: they are left out, or replaced'
    this.#log.warn({ event: 'group_items_repaired', server, method, items, count: fresh.length }, message)
  }

  #isNewRepair(server: string, method: string, name: string): boolean {
    const key = `${server} ${method} ${name}`
    if (this.#repaired.has(key) || this.#repaired.size >= MAX_LOGGED) return false
    this.#repaired.add(key)
    return true
  }

  #names(
    { server }: Member,
    known: Set<string>,
    { names, event, message }: { names: string[]; event: 'group_names_long' | 'group_names_unusual'; message: string },
  ): void {
    const fresh = names.filter((name) => !known.has(name))
    if (fresh.length === 0 || known.size >= MAX_LOGGED) return
    for (const name of fresh) known.add(name)
    const some = fresh.slice(0, MAX_IN_LINE).map((name) => printable(name))
    this.#log.warn({ event, server, names: some, count: fresh.length }, message)
  }
}
