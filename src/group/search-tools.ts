/** Defines the two tools of a group with tool search, and parses calls of them. */

import { Fault } from '../fault/fault.js'
import { isUnambiguous, stringIn } from '../policy/unambiguous.js'
import type { Call } from '../protocol/call.js'
import { EMPTY, edit, has, type Json, objectIn, opens, type Payload, value } from '../rpc/splice.js'

export const SEARCH = 'search_tools'
export const CALL = 'call_tool'

/** Most results, and most characters of a query. */
const MOST_FOUND = 50
const MAX_QUERY = 500

/** Part of the group's instructions. */
export const HOW_TO_SEARCH = `Most tools are not listed. Find them with ${SEARCH}, and call them with ${CALL}.`

/** The definitions of both tools for a group of these servers. */
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
        arguments: { type: 'object', description: 'Arguments of the tool, as its inputSchema says' },
      },
      required: ['name'],
    },
  }
  return [search, call].map((one) => JSON.stringify(one))
}

/** The query of a call of `search_tools`. Throws a Fault. */
export function queryOf({ params }: Call, limit: number): { query: string; limit: number } {
  const args = argumentsOf(params, SEARCH)
  const query = stringIn(args, 'query')
  if (query === undefined) throw new Fault('invalidParams', `The query of ${SEARCH} has to be given once, as a string`)
  const most = value(args, 'limit') ?? limit
  if (typeof most !== 'number') throw new Fault('invalidParams', `The limit of ${SEARCH} has to be a number`)
  return { query: query.slice(0, MAX_QUERY), limit: Math.min(Math.max(1, Math.floor(most)), MOST_FOUND) }
}

/**
 * The tool call inside a call of `call_tool`, as if the client had sent it directly. Its arguments keep their bytes. Throws
 * a Fault.
 */
export function unwrapped(call: Call): Call {
  const { params } = call
  const args = argumentsOf(params, CALL)
  const name = stringIn(args, 'name')
  if (name === undefined) throw new Fault('invalidParams', `The name for ${CALL} has to be given once, as a string`)
  if (!isUnambiguous(args, 'arguments') || ![undefined, '{'].includes(opens(args, 'arguments')))
    throw new Fault('invalidParams', `The arguments for ${CALL} have to be given once, as an object`)
  // The client cannot know which arguments the server also requires as headers, so the bridge makes the headers.
  const { paramHeaders: _none, ...others } = call
  return {
    ...others,
    params: edit(params, { name: JSON.stringify(name), arguments: objectIn(args, 'arguments') }),
  }
}

function argumentsOf(params: Payload, tool: string): Payload {
  if (!isUnambiguous(params, 'arguments') || (has(params, 'arguments') && opens(params, 'arguments') !== '{'))
    throw new Fault('invalidParams', `The arguments of ${tool} have to be given once, as an object`)
  return objectIn(params, 'arguments') ?? EMPTY
}
