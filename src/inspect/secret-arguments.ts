/** Arguments of tools that are secret because their schema says `writeOnly` or `format: password`. */
import type { MessageSeen, Sight } from '../ports/seen.js'
import type { Wire } from '../rpc/source.js'
import { ListedTools } from './listed-tools.js'
import { globOf } from './redact.js'

type Json = Readonly<Record<string, unknown>>

/** Most requests for lists of tools that wait for their results, and most servers. */
const MAX_OPEN = 100
const MAX_SERVERS = 1_000
/** Most secret arguments of a server. If there are more, all of its arguments are hidden. */
const MAX_ARGUMENTS = 100
const ARGUMENTS = '/params/arguments'
/** Levels of a schema that are examined. */
const DEEPEST = 16
/** Bytes of a list that is examined. */
const LONGEST = 4 * 1024 * 1024
/** Keywords with a schema for the same value, and with one for each element or further member. */
const SAME = ['allOf', 'anyOf', 'oneOf', 'if', 'then', 'else']
const WITHIN = ['items', 'prefixItems', 'contains', 'additionalProperties', 'patternProperties']

/** What lists of tools have said, by server. */
export class SecretArguments {
  /** The tools of the servers themselves. */
  readonly tools = new ListedTools()
  /** Requests for lists of tools that wait for their results, and whether they ask for the first page. */
  readonly #open = new Map<string, boolean>()
  /** Globs of JSON Pointers within the arguments, by server. */
  readonly #globs = new Map<string, Map<string, RegExp>>()

  /** Learns from lists of tools among the messages. */
  note(message: Sight & MessageSeen, text: Wire | undefined): void {
    if (message.form === 'request') {
      if (message.method !== 'tools/list') return
      if (this.#open.size >= MAX_OPEN) this.#open.clear()
      this.#open.set(keyOf(message), text === undefined || !textOf(text).includes('"cursor"'))
    } else if (this.#open.size > 0 && message.form === 'result') {
      const isFirst = this.#open.get(keyOf(message))
      if (isFirst === undefined) return
      this.#open.delete(keyOf(message))
      if (text !== undefined && message.bytes <= LONGEST) this.#learn(message, textOf(text), isFirst)
    }
  }

  /**
   * Whether the value at a JSON Pointer of a message is a secret argument. An argument that is secret for one tool of a
   * server is so for all of them: the text of a message may be cut off before the name of its tool.
   */
  has(server: string | undefined, pointer: string): boolean {
    const globs = this.#globs.get(server ?? '')
    if (!globs) return false
    for (let at = pointer.indexOf(ARGUMENTS); at >= 0; at = pointer.indexOf(ARGUMENTS, at + 1)) {
      const path = pointer.slice(at + ARGUMENTS.length)
      for (const glob of globs.values()) if (glob.test(path)) return true
    }
    return false
  }

  #learn({ server = '', hop }: Sight & MessageSeen, text: string, isFirst: boolean): void {
    if (hop === 'server') this.tools.learn(server, text, isFirst, () => toolsIn(text))
    if (!/"writeOnly"|"password"/.test(text)) return
    for (const tool of toolsIn(text))
      for (const path of pathsIn(tool['inputSchema'])) {
        const known = this.#globs.get(server) ?? new Map<string, RegExp>()
        const glob = known.size < MAX_ARGUMENTS ? path : ''
        if (!known.has(glob)) known.set(glob, globOf(glob))
        if (this.#globs.size < MAX_SERVERS) this.#globs.set(server, known)
      }
  }
}

function keyOf({ server, hop, id }: Sight & MessageSeen): string {
  return `${hop} ${id} ${server}`
}

function textOf(wire: Wire): string {
  return typeof wire === 'string' ? wire : Buffer.concat(wire.map((piece) => Buffer.from(piece))).toString()
}

function toolsIn(text: string): Json[] {
  try {
    const { result } = JSON.parse(text) as { result?: { tools?: unknown } }
    return Array.isArray(result?.tools) ? result.tools.filter(isObject) : []
  } catch {
    return []
  }
}

/** Globs of JSON Pointers, within a value of the schema, of what the schema calls secret. */
function pathsIn(root: unknown): Set<string> {
  const found = new Set<string>()
  const visit = (schema: unknown, path: string, depth: number): void => {
    if (!isObject(schema) || depth > DEEPEST || found.size >= MAX_ARGUMENTS) return
    if (schema['writeOnly'] === true || schema['format'] === 'password') {
      found.add(path)
      return
    }
    const each = (keyword: string, below: (name: string) => string) => {
      const { [keyword]: value } = schema
      const isMap = keyword === 'properties' || keyword === 'patternProperties'
      const schemas = Array.isArray(value) || (isMap && isObject(value)) ? Object.entries(value) : [['', value]]
      for (const [name, one] of schemas) visit(one, below(name as string), depth + 1)
    }
    each('properties', (name) => `${path}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`)
    for (const keyword of WITHIN) each(keyword, () => `${path}/*`)
    for (const keyword of SAME) each(keyword, () => path)
    if (typeof schema['$ref'] === 'string') visit(referred(root, schema['$ref']), path, depth + 1)
  }
  visit(root, '', 0)
  return found
}

/** What `#/$defs/name` refers to. */
function referred(root: unknown, reference: string): unknown {
  if (!reference.startsWith('#/')) return undefined
  const names = reference
    .slice(2)
    .split('/')
    .map((name) => name.replaceAll('~1', '/').replaceAll('~0', '~'))
  return names.reduce<unknown>((at, name) => (isObject(at) && Object.hasOwn(at, name) ? at[name] : undefined), root)
}

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
