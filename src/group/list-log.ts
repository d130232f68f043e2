/** Reports what clients of a group cannot get or use of the lists of its servers, once each. */

import { MAX_LOGGED_NAME } from '../limits/constants.js'
import type { Log } from '../log/events.js'
import { printable, publicAddress } from '../texts/printable.js'
import type { ListPage } from './list-page.js'
import type { Member } from './member.js'
import { isTooLong } from './names.js'

/** A tool or prompt that is omitted: in a group without prefixes, an earlier server has one with the same name. */
export interface Hidden {
  server: string
  method: string
  name: string
}

/** Most names that are logged as omitted, as too long, and as ambiguous; and most names in one line. */
const MAX_HIDDEN = 1_000
const MAX_LONG = 20

export class ListLog {
  readonly #group: string
  readonly #log: Pick<Log, 'warn'>
  readonly #hidden = new Map<string, Hidden>()
  readonly #long = new Set<string>()
  /** Lists that are not read to their end, by server and method. */
  readonly #cut = new Set<string>()
  /** URIs that several servers have. */
  readonly #ambiguous = new Set<string>()
  /** Pages whose names have been checked for their length. */
  readonly #measured = new WeakSet<ListPage>()

  constructor(group: string, log: Pick<Log, 'warn'>) {
    this.#group = group
    this.#log = log
  }

  /** Tools and prompts that have been omitted from lists. */
  get hidden(): readonly Hidden[] {
    return [...this.#hidden.values()]
  }

  /** Notes a name that is omitted, and warns once about it. */
  hide({ server }: Member, method: string, name: string): void {
    const key = `${server} ${method} ${name}`
    if (this.#hidden.has(key) || this.#hidden.size >= MAX_HIDDEN) return
    this.#hidden.set(key, { server, method, name })
    const message = 'name left out: an earlier server of the group has it'
    this.#log.warn({ event: 'group_name_hidden', server, method, name: printable(name) }, message)
  }

  /** Warns once about a list that is not read to its end. */
  cut({ server }: Member, method: string, why: string): void {
    const key = `${server} ${method}`
    if (this.#cut.has(key) || this.#cut.size >= MAX_HIDDEN) return
    this.#cut.add(key)
    const message = 'a list of a server is not read to its end: what comes after is not found'
    this.#log.warn({ event: 'group_list_cut', server, method, why }, message)
  }

  /** Warns once about a URI without prefix that several servers have. */
  ambiguous(uri: string, members: readonly Member[]): void {
    const shown = publicAddress(uri).slice(0, MAX_LOGGED_NAME)
    if (this.#ambiguous.has(shown) || this.#ambiguous.size >= MAX_HIDDEN) return
    this.#ambiguous.add(shown)
    const servers = members.map(({ server }) => server)
    const message = 'a URI without prefix is not read: several servers have it'
    this.#log.warn({ event: 'group_uri_ambiguous', servers, uri: shown }, message)
  }

  /** Warns once about each name of a tool that is too long for some clients. `shown` returns the name for clients. */
  measure({ server }: Member, page: ListPage, shown: (name: string) => string): void {
    if (this.#measured.has(page)) return
    this.#measured.add(page)
    const names = [...page.ids].map(shown)
    const fresh = names.filter((name) => isTooLong(this.#group, name) && !this.#long.has(name))
    if (fresh.length === 0 || this.#long.size >= MAX_HIDDEN) return
    for (const name of fresh) this.#long.add(name)
    const some = fresh.slice(0, MAX_LONG).map((name) => printable(name))
    this.#log.warn(
      { event: 'group_names_long', server, names: some, count: fresh.length },
      'names of tools are too long for some clients: set a shorter prefix in "prefixes"',
    )
  }
}
