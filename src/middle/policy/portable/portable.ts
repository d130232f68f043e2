/**
 * Lists tools with schemas and names that the APIs of all models take, and calls them as the server has defined them. Tools
 * without a portable form stay as they are.
 */
import { digest } from '../../../base/crypto/digest.js'
import type { Memory } from '../../../base/limits/memory.js'
import { memoize, Recent } from '../../../base/rpc/memoize.js'
import { edit, objectIn, type Payload, parseObject, stringUnder, type Value, write } from '../../../base/rpc/splice.js'
import type { Simplified } from '../../../base/texts/simplified.js'
import { annotationsOfTool } from '../../../mcp/protocol/annotations.js'
import type { Call, Caller, Final, Handler, Policy } from '../../../mcp/protocol/call.js'
import { CALL_TOOL } from '../../../mcp/protocol/methods.js'
import { ChosenList } from '../choice/listed.js'
import { asSeen } from '../choice/seen.js'
import { globs } from '../globs.js'
import { stringIn } from '../unambiguous.js'
import { original } from './arguments.js'
import { NotPortable } from './forms.js'
import { type Mapping, type Portable, portableSchema } from './schema.js'

/** For which clients: all, or those whose `clientInfo` has such a name. */
export type Schemas = 'portable' | { readonly portable: readonly string[] }

export interface PortableOptions {
  /** The name of the server or group. */
  server: string
  schemas: Schemas
  /** Names stay: another policy makes them portable, with the prefix of a group. */
  keepsNames?: boolean
  memory: Memory
  /** Called with each listed tool, by its name at the server; undefined if clients see it as it is. */
  told?: (tool: string, simplified: Simplified | undefined) => void
}

/** A tool that a client may call, and how. */
interface Ported {
  /** Its name at the server. */
  name: string
  mapping?: Mapping | undefined
  /** Headers of its annotations are for the original schema, which the client does not know. */
  isMirrored: boolean
}

/** Names of functions that all APIs take: with `.` or `/`, most refuse the request. */
const NAME = /^[a-z_][\w-]{0,63}$/i
const DIGITS = 6

/** The policy of one server or group. It has to be the first one: all others know a tool by its own name. */
export function portable({ server, schemas, keepsNames = false, memory, told }: PortableOptions): Policy {
  const isFor = clientsOf(schemas)
  const see = asSeen('tools', 'name', (tool, name) => {
    const form = formOfTool(tool)
    const shown = keepsNames ? name : nameOf(name)
    told?.(name, simplification(name, shown, form))
    return ported(tool, name, shown, form)
  })
  const list = new ChosenList<Ported>({ server, method: 'tools/list', see, memory })
  async function calling(call: Call, next: Handler): Promise<Final> {
    const name = stringIn(call.params, 'name')
    const tool = name === undefined ? undefined : await list.find(call, name, next)
    if (!tool || (tool.name === name && !tool.mapping && !tool.isMirrored)) return next(call)
    const edits: Record<string, Value> = {}
    if (tool.name !== name) edits['name'] = JSON.stringify(tool.name)
    const args = tool.mapping && original(objectIn(call.params, 'arguments'), tool.mapping)
    if (args) edits['arguments'] = args
    const { paramHeaders, ...others } = call
    return next({
      ...others,
      params: edit(call.params, edits),
      ...(tool.name !== name && { called: call.called ?? name }),
      ...(paramHeaders && !tool.isMirrored && { paramHeaders }),
    })
  }
  return (next) => (call) => {
    if (call.method !== 'tools/list' && call.method !== CALL_TOOL) return next(call)
    if (!isFor(call.caller)) return next(call)
    return call.method === CALL_TOOL ? calling(call, next) : list.answer(call, next)
  }
}

/** Whether lists are portable for a caller. */
function clientsOf(schemas: Schemas): (caller: Caller) => boolean {
  if (schemas === 'portable') return () => true
  const isNamed = globs(schemas.portable)
  const isNamedIn = memoize((clientInfo) => {
    const name = stringUnder(parseObject(clientInfo), 'name')
    return name !== undefined && isNamed(name)
  })
  return ({ clientInfo }) => clientInfo !== undefined && isNamedIn(clientInfo)
}

function ported(tool: Payload, name: string, shown: string, made: Form | undefined) {
  const edits: Record<string, Value> = {}
  if (shown !== name) edits['name'] = JSON.stringify(shown)
  if (made && 'schema' in made) edits['inputSchema'] = JSON.stringify(made.schema)
  const said = made && 'schema' in made ? made.says : undefined
  const own = stringUnder(tool, 'description')
  if (said !== undefined && !own?.includes(said)) edits['description'] = JSON.stringify(own ? `${own} ${said}` : said)
  const mapping = made && 'schema' in made ? made.mapping : undefined
  const isMirrored = edits['inputSchema'] !== undefined && annotationsOfTool(tool).annotations.length > 0
  return {
    shown: Object.keys(edits).length > 0 ? edit(tool, edits) : tool,
    name: shown,
    item: { name, mapping, isMirrored } satisfies Ported,
  }
}

/** What is said of a tool; undefined if clients see it as it is. */
export function simplification(name: string, shown: string, form: Form | undefined): Simplified | undefined {
  if (!form && shown === name) return undefined
  const schema = form && ('why' in form ? { why: form.why } : { notes: form.notes })
  return { tool: name, ...(shown !== name && { shown }), ...schema }
}

/** The name for models: a changed one has a digest of the original, so that it is no other tool's. */
export function nameOf(name: string): string {
  if (NAME.test(name)) return name
  const plain = name.replace(/[^\w-]/g, '_').replace(/^(?=[^a-z_])/i, '_')
  return `${plain.slice(0, 63 - DIGITS)}_${digest(name)
    .replace(/[^a-z\d]/gi, '')
    .slice(0, DIGITS)}`
}

/** The schema has no portable form: the reason. */
interface Unportable {
  readonly why: string
}

/** What becomes of a schema that is not portable as it is. */
type Form = Portable | Unportable

/** Most schemas that are kept in each generation: more than the tools of ten servers. */
const MAX_PORTABLE_SCHEMAS = 500
const known = new Recent<Form | 'as it is'>({ max: MAX_PORTABLE_SCHEMAS })

/** The portable form of a tool's schema; undefined if it is portable as it is. Computed once for each text. */
export function formOfTool(tool: Payload): Form | undefined {
  const schema = objectIn(tool, 'inputSchema')
  if (!schema) return undefined
  const text = write(schema)
  const key = digest(text)
  let form = known.get(key)
  if (form === undefined) {
    form = made(text)
    known.set(key, form)
  }
  return form === 'as it is' ? undefined : form
}

function made(text: string): Form | 'as it is' {
  try {
    return portableSchema(JSON.parse(text)) ?? 'as it is'
  } catch (error) {
    // A RangeError: it is nested too deeply.
    if (error instanceof NotPortable || error instanceof RangeError) return { why: error.message }
    throw error
  }
}
