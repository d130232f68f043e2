/** Finds tool arguments that are secret by their schema: `writeOnly` or `format: password`. */

import { BoundedMap } from '../base/limits/bounded.js'
import { textOfWire, type Wire } from '../base/rpc/source.js'
import { ListedTools, pageOf } from './listed-tools.js'
import { begins, type Pattern } from './paths.js'
import { isRecord, recordIn } from './record.js'
import type { MessageBody, TraceEvent } from './recorder/events.js'
import { bytesOf } from './recorder/message.js'
import { keyOf, secretsIn } from './secret-schema.js'
import type { JsonRecord } from './try/types.js'

/** Most pending requests for lists of tools. */
const MAX_PENDING_LISTS = 1_000
/** Most secret arguments of a server, and most characters of their paths. With more, all its arguments are hidden. */
const MAX_ARGUMENTS = 100
const MAX_PATH_CHARACTERS = 16 * 1024
/** Most known pages of lists per server. A known page is not examined again. */
const MAX_EXAMINED_PAGES = 100
/** Most bytes of an examined list, and most schemas in it. */
const LONGEST = 4 * 1024 * 1024
const EFFORT = 10_000

/** The secret arguments of one server. */
interface Known {
  /** By their keys. */
  patterns: Map<string, Pattern>
  characters: number
  /** All arguments are hidden: a list could not be read, or has too many secrets. */
  isAll: boolean
  pages: Set<string>
}

/** Secret arguments from lists of tools, by server. */
export class SecretArguments {
  /** Tools of the servers themselves. */
  readonly tools = new ListedTools()
  /** Pending requests for lists of tools, and whether they ask for the first page. */
  readonly #open = new BoundedMap<string, boolean>(MAX_PENDING_LISTS)
  /** By name of the server. The configuration limits their number. */
  readonly #known = new Map<string, Known>()

  /** Learns from lists of tools among the messages. */
  note(message: TraceEvent & MessageBody, text: Wire | undefined): void {
    if (message.form === 'request') {
      if (message.method !== 'tools/list') return
      this.#open.set(keyOfRequest(message), text === undefined || !textOfWire(text).includes('"cursor"'))
    } else if (this.#open.size > 0 && message.form === 'result') {
      const isFirst = this.#open.get(keyOfRequest(message))
      if (isFirst === undefined) return
      this.#open.delete(keyOfRequest(message))
      const isWhole = text !== undefined && bytesOf(text) >= message.bytes && message.bytes <= LONGEST
      if (isWhole) this.#learn(message, textOfWire(text), isFirst)
      else this.#knownOf(message.server).isAll = true
    }
  }

  /**
   * Whether the value at a path of a message is a secret argument. An argument that is secret for one tool of a server is
   * secret for all of them: the text of a message may be truncated before the name of its tool.
   */
  has(server: string | undefined, path: readonly string[]): boolean {
    const known = this.#known.get(server ?? '')
    const start = known && argumentsIn(path)
    if (start === undefined) return false
    if (known?.isAll) return true
    for (const pattern of known?.patterns.values() ?? []) if (begins(pattern, path, start)) return true
    return false
  }

  #learn({ server = '', hop }: TraceEvent & MessageBody, text: string, isFirst: boolean): void {
    const maySecret = SECRET.test(text)
    if (hop !== 'server' && !maySecret) return
    const page = pageOf(text)
    let tools: JsonRecord[] | undefined
    const read = () => (tools ??= toolsIn(text))
    if (hop === 'server') this.tools.learn(server, page, isFirst, read)
    if (!maySecret) return
    const known = this.#knownOf(server)
    if (known.isAll || known.pages.has(page)) return
    if (known.pages.size < MAX_EXAMINED_PAGES) known.pages.add(page)
    const effort = { left: EFFORT }
    for (const { inputSchema } of read()) {
      const found = secretsIn(inputSchema, effort)
      if (!found) known.isAll = true
      for (const pattern of found ?? []) add(known, pattern)
    }
  }

  #knownOf(server = ''): Known {
    const known = this.#known.get(server) ?? { patterns: new Map(), characters: 0, isAll: false, pages: new Set() }
    this.#known.set(server, known)
    return known
  }
}

/** Texts that mark a secret in a list. Escapes may hide them. */
const SECRET = /"writeOnly"|"password"|\\u00/

function add(known: Known, pattern: Pattern): void {
  const key = keyOf(pattern)
  if (known.patterns.has(key)) return
  known.patterns.set(key, pattern)
  known.characters += key.length
  if (known.patterns.size <= MAX_ARGUMENTS && known.characters <= MAX_PATH_CHARACTERS) return
  known.isAll = true
  known.patterns.clear()
}

/** The position of the arguments in a path, of a request or of one in a batch. Undefined if the path is not one of arguments. */
function argumentsIn(path: readonly string[]): number | undefined {
  for (const start of [2, 3]) if (path[start - 2] === 'params' && path[start - 1] === 'arguments') return start
  return undefined
}

/** Several clients, and several sessions with a server, have requests with the same id. */
function keyOfRequest({ server, hop, call, session, id }: TraceEvent & MessageBody): string {
  return `${hop} ${call} ${session} ${id} ${server}`
}

function toolsIn(text: string): JsonRecord[] {
  const result = recordIn(text)?.['result']
  const tools = isRecord(result) ? result['tools'] : undefined
  return Array.isArray(tools) ? tools.filter(isRecord) : []
}
