/** Defines the two tools of a group with tool search, and parses calls of them. */

import { JsonError } from '../../base/rpc/scan.js'
import {
  EMPTY,
  edit,
  type Json,
  objectIn,
  opens,
  type Payload,
  parseObject,
  receivedKeys,
  value,
} from '../../base/rpc/splice.js'
import { ECHOED, printable } from '../../base/texts/printable.js'
import type { Call } from '../../mcp/protocol/call.js'
import { folded, isUnambiguous, stringIn } from '../policy/unambiguous.js'

export const SEARCH = 'search_tools'
export const CALL = 'call_tool'

/** Most results, and most characters of a query. */
const MOST_FOUND = 50
const MAX_QUERY = 500

/** Part of the group's instructions. */
export const HOW_TO_SEARCH = `Most tools are not listed. Find them with ${SEARCH}, and call them with ${CALL}.`

/** The definitions of both tools for a group of these servers, with schemas that every model takes. */
export function definitions(servers: readonly string[], limit: number): Json[] {
  const search = {
    name: SEARCH,
    title: 'Search tools',
    description: `Finds tools of ${servers.join(', ')} by words. Returns their definitions. Call one with ${CALL}.`,
    inputSchema: {
      type: 'object',
      properties: {
        query: { type: 'string', description: 'What the tool has to do, in a few words, or its name' },
        limit: {
          type: 'integer',
          minimum: 1,
          maximum: MOST_FOUND,
          description: `Most tools to return. Default: ${limit}`,
        },
      },
      required: ['query'],
    },
    annotations: { title: 'Search tools', readOnlyHint: true, openWorldHint: false },
  }
  const call = {
    name: CALL,
    title: 'Call a tool',
    description: `Calls a tool that ${SEARCH} has returned, and returns its result.`,
    inputSchema: {
      type: 'object',
      properties: {
        name: { type: 'string', description: `Name of the tool, as ${SEARCH} returns it` },
        arguments: { type: 'object', description: 'Arguments of the tool, as its inputSchema says', properties: {} },
      },
      required: ['name'],
    },
  }
  return [search, call].map((one) => JSON.stringify(one))
}

/** A call of one of the two tools that is not in its form. Models see only results, so it becomes the result of the call. */
export class WrongForm extends Error {
  override name = 'WrongForm'
}

/** The form of each tool, as in messages. `name` is that of the tool that is meant, if it is known. */
const FORMS = {
  [SEARCH]: () => '{"query":"a few words","limit":5}',
  [CALL]: (name = 'name of the tool') => `{"name":${JSON.stringify(name)},"arguments":{…}}`,
}
const MEMBERS = { [SEARCH]: ['query', 'limit'], [CALL]: ['name', 'arguments'] }

/** The query of a call of `search_tools`. Throws a WrongForm. */
export function queryOf({ params }: Call, limit: number): { query: string; limit: number } {
  const args = argumentsOf(params, SEARCH)
  const query = stringIn(args, 'query')
  if (query === undefined) throw wrong(SEARCH, `The query of ${SEARCH} must be a string and must not be repeated`)
  const given = value(args, 'limit')
  const text = typeof given === 'string' ? given.trim() : undefined
  const most = text === undefined ? (given ?? limit) : text === '' ? limit : Number(text)
  if (!isUnambiguous(args, 'limit') || typeof most !== 'number' || Number.isNaN(most))
    throw wrong(SEARCH, `The limit of ${SEARCH} has to be a number`)
  return { query: query.slice(0, MAX_QUERY), limit: Math.min(Math.max(1, Math.floor(most)), MOST_FOUND) }
}

/**
 * The tool call inside a call of `call_tool`, as if the client had sent it directly. Its arguments keep their bytes. Throws
 * a WrongForm: a tool is never called without arguments that the model has given in another place.
 */
export function unwrapped(call: Call): Call {
  const { params } = call
  const args = argumentsOf(params, CALL)
  const name = stringIn(args, 'name')
  if (name === undefined || name === '')
    throw wrong(CALL, `The name for ${CALL} must be a string and must not be repeated`)
  const inner = argumentsIn(args)
  if (inner === 'invalid')
    throw wrong(CALL, `The arguments for ${CALL} must be an object and must not be repeated`, name)
  // The client cannot know which arguments the server also requires as headers, so the bridge makes the headers.
  const { paramHeaders: _none, ...others } = call
  return { ...others, params: edit(params, { name: JSON.stringify(name), arguments: inner }) }
}

/** The arguments of a call of one of the two tools. */
function argumentsOf(params: Payload, tool: keyof typeof FORMS): Payload {
  const args = argumentsIn(params) ?? EMPTY
  if (args === 'invalid') throw wrong(tool, `The arguments of ${tool} must be an object and must not be repeated`)
  const unknown = receivedKeys(args).find((key) => !MEMBERS[tool].some((member) => folded(member) === folded(key)))
  if (unknown === undefined) return args
  throw wrong(tool, `${tool} has no argument "${printable(unknown)}"`, stringIn(args, 'name'))
}

/**
 * The object under `arguments`. Models write it into a string, too; null and an empty string are none. Undefined if there is
 * none, 'invalid' if there is something else.
 */
function argumentsIn(payload: Payload): Payload | 'invalid' | undefined {
  if (!isUnambiguous(payload, 'arguments')) return 'invalid'
  const first = opens(payload, 'arguments')
  if (first === undefined || first === 'n') return undefined
  if (first === '{') return objectIn(payload, 'arguments')
  const given = first === '"' ? String(value(payload, 'arguments')).trim() : undefined
  if (given === undefined) return 'invalid'
  if (given === '' || given === 'null') return undefined
  try {
    return parseObject(given)
  } catch (error) {
    if (error instanceof JsonError) return 'invalid'
    throw error
  }
}

function wrong(tool: keyof typeof FORMS, what: string, name?: string): WrongForm {
  const asDefined = tool === CALL ? `, with the arguments that the inputSchema of the tool defines` : ''
  const form = FORMS[tool](name === undefined ? undefined : printable(name, ECHOED))
  return new WrongForm(`${what}. No tool was called. Call ${tool} with ${form}${asDefined}.`)
}
