/** Each member that may be absent from a message of a client, by the schemas of all revisions, written as null or as an empty list. */
import t from 'tap'
import { textWithoutAbsent } from '../../src/mcp/protocol/absent.js'
import { readMessage } from '../../src/mcp/protocol/classify.js'
import { CLIENT_CAPABILITIES } from '../../src/mcp/protocol/meta.js'
import { definitionsOf, problems, type SchemaRevision } from '../support/schema.js'

type Json = Record<string, unknown>
interface Schema {
  $ref?: string
  const?: unknown
  enum?: unknown[]
  anyOf?: Schema[]
  allOf?: Schema[]
  type?: string | string[]
  properties?: Record<string, Schema>
  additionalProperties?: Schema | boolean
  required?: string[]
  items?: Schema
}

const REVISIONS: SchemaRevision[] = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25', '2026-07-28']
/** What clients say, by the names of definitions. A revision may lack some. */
const REQUESTS = ['ClientRequest', 'ClientNotification'] as const
const ANSWERS = ['CreateMessageResult', 'ElicitResult', 'ListRootsResult', 'ListTasksResult', 'GetTaskResult']

class Reading {
  readonly #definitions: Record<string, Schema>
  constructor(definitions: Record<string, Schema>) {
    this.#definitions = definitions
  }

  /** A value without anything that may be absent. */
  least(schema: Schema): unknown {
    const { const: only, enum: some, anyOf, allOf, properties = {}, required = [], type } = this.resolved(schema)
    if (only !== undefined) return only
    if (some) return some[0]
    if (anyOf) return this.least(anyOf[0] as Schema)
    if (allOf) return Object.assign({}, ...allOf.map((one) => this.least(one))) as unknown
    const [kind] = [type].flat()
    if (kind === 'string') return 'x'
    if (kind === 'integer' || kind === 'number') return 1
    if (kind === 'boolean') return true
    if (kind === 'array') return []
    return Object.fromEntries(required.map((name) => [name, this.least(properties[name] ?? {})]))
  }

  /** Values with one member as null, or as an empty list, that may be absent; and where it is. */
  *absent(schema: Schema, path = '', seen: readonly string[] = []): Generator<{ path: string; value: unknown }> {
    const { $ref } = schema
    if ($ref !== undefined && seen.includes($ref)) return
    const within = $ref === undefined ? seen : [...seen, $ref]
    const whole = this.resolved(schema)
    for (const one of whole.anyOf ?? []) yield* this.absent(one, path, within)
    for (const one of whole.allOf ?? [])
      for (const { path: at, value } of this.absent(one, path, within))
        yield { path: at, value: { ...(this.least(whole) as Json), ...(value as Json) } }
    if (whole.items)
      for (const { path: at, value } of this.absent(whole.items, `${path}/*`, within))
        yield { path: at, value: [value] }
    const { properties = {}, required = [], additionalProperties: others } = whole
    const named = Object.entries(properties)
    if (typeof others === 'object' && this.#refusesNull(others)) named.push(['any', others])
    for (const [name, inner] of named) {
      const least = this.least(whole) as Json
      const at = `${path}/${name}`
      if (!required.includes(name) && this.#refusesNull(inner)) {
        yield { path: `${at} null`, value: { ...least, [name]: null } }
        if ([this.resolved(inner).type].flat().includes('object'))
          yield { path: `${at} []`, value: { ...least, [name]: [] } }
      }
      for (const { path: below, value } of this.absent(inner, at, within))
        yield { path: below, value: { ...least, [name]: value } }
    }
  }

  resolved(schema: Schema): Schema {
    const { $ref } = schema
    // Any JSON, of which null is one.
    if ($ref?.endsWith('/JSONValue')) return {}
    if ($ref?.endsWith('/JSONObject')) return { type: 'object' }
    return $ref === undefined ? schema : this.resolved(this.#definitions[$ref.split('/').at(-1) as string] ?? {})
  }

  #refusesNull(schema: Schema): boolean {
    const { type, anyOf, const: only } = this.resolved(schema)
    if (anyOf) return anyOf.every((one) => this.#refusesNull(one))
    return only !== undefined || (type !== undefined && ![type].flat().includes('null'))
  }
}

/** Of modern clients these are judged as they are: what a client can do, and what belongs to a question, is no matter of guesses. */
const JUDGED =
  /\/io\.modelcontextprotocol\/clientCapabilities\b|\/requestState null$|\/inputResponses(\/any)? (null|\[\])$/

/** As a server gets it. */
function passedOn(message: Json): Json {
  const bytes = Buffer.from(JSON.stringify(message))
  const text = textWithoutAbsent(readMessage([bytes]))
  return text === undefined ? message : (JSON.parse(text) as Json)
}

for (const revision of REVISIONS)
  t.test(`what may be absent from messages of clients is not passed on as null or an empty list: ${revision}`, (t) => {
    const definitions = definitionsOf(revision) as Record<string, Schema>
    const reading = new Reading(definitions)
    const wrong: unknown[] = []
    let forms = 0
    const check = (definition: string, path: string, message: Json, at: (sent: Json) => unknown) => {
      forms++
      const problem = problems(revision, definition, at(passedOn(message)))
      if (problem.length > 0) wrong.push({ definition, path, problem })
    }
    for (const kind of REQUESTS)
      for (const { $ref = '' } of definitions[kind]?.anyOf ?? []) {
        const definition = $ref.split('/').at(-1) as string
        const id = kind === 'ClientRequest' ? { id: 1 } : {}
        for (const { path, value } of reading.absent({ $ref }))
          if (!JUDGED.test(path)) check(definition, path, { ...(value as Json), jsonrpc: '2.0', ...id }, (sent) => sent)
      }
    for (const definition of ANSWERS.filter((name) => definitions[name]))
      for (const { path, value } of reading.absent({ $ref: `#/${definition}` })) {
        // In 2026-07-28, an empty list is a result of a tool.
        if (path.endsWith('/structuredContent []')) continue
        check(definition, path, { jsonrpc: '2.0', id: 1, result: value }, ({ result }) => result)
      }
    t.same(wrong, [])
    t.ok(forms > 50, `${forms} forms`)
    t.end()
  })

t.test('null that has a meaning is passed on', (t) => {
  const messages: Json[] = [
    { id: 1, method: 'tools/call', params: { name: 'x', arguments: { a: null, b: [], c: { d: null } } } },
    { id: 1, method: 'tools/list', params: { _meta: { vendor: null }, vendor: null } },
    { id: 1, method: 'vendor/method', params: { cursor: null, arguments: [] } },
    { id: 1, result: { action: 'accept', content: { names: [] } } },
    { id: 1, result: { taskId: 't', status: 'working', ttl: null } },
    { id: 1, error: { code: 1, message: 'x', data: null } },
    { id: 1, method: 'tools/call', params: { name: 'x', requestState: null, inputResponses: { a: null } } },
    { id: 1, method: 'prompts/get', params: { name: 'x', inputResponses: [] } },
    { id: 1, method: 'tools/list', params: { _meta: { [CLIENT_CAPABILITIES]: { roots: [], sampling: null } } } },
  ]
  for (const message of messages) t.same(passedOn({ jsonrpc: '2.0', ...message }), { jsonrpc: '2.0', ...message })
  t.end()
})

t.test('answers to questions of modern servers have no null in forms', (t) => {
  const inputResponses = {
    a: { action: 'accept', content: { name: 'x', age: null } },
    b: { roots: [{ uri: 'x:y', name: null }] },
  }
  const params = { name: 'x', inputResponses }
  t.same(passedOn({ jsonrpc: '2.0', id: 1, method: 'tools/call', params })['params'], {
    name: 'x',
    inputResponses: { a: { action: 'accept', content: { name: 'x' } }, b: { roots: [{ uri: 'x:y' }] } },
  })
  t.end()
})
