/** The names of servers' tools, learned from the lists that clients requested. */
import { digest } from '../crypto/digest.js'
import { short } from './short.js'

/** Most servers, and most tools and pages of one. */
const MAX_SERVERS = 1_000
const MAX_LISTED_TOOLS = 1_000
const MAX_LISTED_PAGES = 100

/** The last list of one server. */
interface Listed {
  names: string[]
  /** Digests of its pages. An equal page is not parsed again. */
  pages: Set<string>
}

/** The digest of the tools on a page of a list. */
export function pageOf(text: string): string {
  // Without the id of the answer.
  const tools = text.slice(text.indexOf('"tools"'), text.lastIndexOf(']'))
  return digest(tools)
}

/** The last tool list of each server. */
export class ListedTools {
  readonly #lists = new Map<string, Listed>()

  /** The names of a server's tools; undefined before its first list. */
  of(server: string): readonly string[] | undefined {
    return this.#lists.get(server)?.names
  }

  /** Adds a page, by its digest. `read` parses its tools. `isFirst`: it is the first page of a list. */
  learn(
    server: string,
    page: string,
    isFirst: boolean,
    read: () => readonly Readonly<Record<string, unknown>>[],
  ): void {
    const known = this.#lists.get(server)
    if (known?.pages.has(page) || (!known && this.#lists.size >= MAX_SERVERS)) return
    // A truncated text cannot be parsed.
    const listed = read()
    if (listed.length === 0) return
    const list = known && !isFirst ? known : { names: [], pages: new Set<string>() }
    this.#lists.set(server, list)
    if (list.pages.size < MAX_LISTED_PAGES) list.pages.add(page)
    for (const { name } of listed)
      if (typeof name === 'string' && list.names.length < MAX_LISTED_TOOLS) list.names.push(short(name))
  }
}
