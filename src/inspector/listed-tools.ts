/** Servers' tools, learned from the lists that clients requested: their names, and the first words of their descriptions. */
import { withoutCredentials } from '../base/credentials/credentials.js'
import { digest } from '../base/crypto/digest.js'
import { detach } from '../base/rpc/source.js'
import { short } from './short.js'

/** Most servers, and most tools and pages of one. */
const MAX_SERVERS = 1_000
const MAX_LISTED_TOOLS = 1_000
const MAX_LISTED_PAGES = 100
/** Most characters of one description, and of all descriptions together. Further tools have none. */
const MAX_DESCRIPTION = 200
const MAX_DESCRIPTIONS = 1024 * 1024
/** Most characters of a description that are read. */
const MAX_READ_DESCRIPTION = 1_000

/** The last list of one server. */
interface Listed {
  names: string[]
  /** The descriptions, by name. */
  described: Map<string, string>
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
  /** Characters of all descriptions. */
  #characters = 0

  /** The names of a server's tools; undefined before its first list. */
  of(server: string): readonly string[] | undefined {
    return this.#lists.get(server)?.names
  }

  /** The first words of the descriptions of a server's tools, by name. */
  descriptionsOf(server: string): Readonly<Record<string, string>> | undefined {
    const described = this.#lists.get(server)?.described
    return described && Object.fromEntries(described)
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
    const isMore = known && !isFirst
    if (known && !isMore) for (const text of known.described.values()) this.#characters -= text.length
    const list: Listed = isMore ? known : { names: [], described: new Map(), pages: new Set() }
    this.#lists.set(server, list)
    if (list.pages.size < MAX_LISTED_PAGES) list.pages.add(page)
    for (const { name, title, description } of listed) {
      if (typeof name !== 'string' || list.names.length >= MAX_LISTED_TOOLS) continue
      const copy = short(name)
      list.names.push(copy)
      this.#describe(list, copy, firstWords(description) ?? firstWords(title))
    }
  }

  #describe({ described }: Listed, name: string, text: string | undefined): void {
    if (text === undefined || described.has(name) || this.#characters + text.length > MAX_DESCRIPTIONS) return
    described.set(name, text)
    this.#characters += text.length
  }
}

/** The first line of a text, without credentials; undefined if there is none. */
function firstWords(text: unknown): string | undefined {
  if (typeof text !== 'string') return undefined
  const [line = ''] = text.slice(0, MAX_READ_DESCRIPTION).trim().split('\n', 1)
  return line === '' ? undefined : detach(withoutCredentials(line).slice(0, MAX_DESCRIPTION))
}
