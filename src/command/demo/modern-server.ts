/** The modern server of `mcp-bridge demo`: two tools on stdio, in revision 2026-07-28. It is stateless. */

import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import { NEWEST_MODERN } from '../../mcp/protocol/eras.js'
import { SERVER_INFO } from '../../mcp/protocol/meta.js'
import { CALL_TOOL } from '../../mcp/protocol/methods.js'

type Json = Readonly<Record<string, unknown>>

interface Tool {
  description: string
  inputSchema: Json
  /** The result of a call: a text, or first a question. */
  run(args: Json, answers: Json): Json
}

const SELF = { [SERVER_INFO]: { name: 'demo-server-of-today', version: '1.0.0' } }
/** How long clients may cache lists, in milliseconds. */
const KEEP = { ttlMs: 60_000, cacheScope: 'public' }

const text = (description: string): Json => ({ type: 'string', description })
const schema = (properties: Json): Json => ({ type: 'object', properties, required: Object.keys(properties) })
const say = (said: string): Json => ({ resultType: 'complete', content: [{ type: 'text', text: said }] })

/** The tools, by their names. */
const TOOLS: Readonly<Record<string, Tool>> = {
  find_train: {
    description: 'The next train to a city',
    inputSchema: schema({ to: text('The city') }),
    run: ({ to }) => say(`The next train to ${to} leaves at 18:05`),
  },
  buy_ticket: {
    description: 'Buys a ticket, and asks for which train',
    inputSchema: schema({ to: text('The city') }),
    run({ to }, { train }) {
      if (train === undefined) return ask('train', `At what time do you go to ${to}?`)
      const { action, content } = train as { action?: unknown; content?: Json }
      return say(action === 'accept' ? `A ticket to ${to} for the train at ${content?.['time']}` : 'Nothing was bought')
    },
  },
}

/** Asks the client, which repeats the call with the answer. */
function ask(key: string, message: string): Json {
  const params = { mode: 'form', message, requestedSchema: schema({ time: text('Such as 19:30') }) }
  return { resultType: 'input_required', inputRequests: { [key]: { method: 'elicitation/create', params } } }
}

/** The answer to a request: its result or error. */
function answer(method: string, params: Json): Json {
  if (method === 'server/discover')
    return {
      result: { resultType: 'complete', supportedVersions: [NEWEST_MODERN], capabilities: { tools: {} }, ...KEEP },
    }
  if (method === 'tools/list') {
    const tools = Object.entries(TOOLS).map(([name, { description, inputSchema }]) => ({
      name,
      description,
      inputSchema,
    }))
    return { result: { resultType: 'complete', tools, ...KEEP } }
  }
  if (method !== CALL_TOOL) return { error: { code: -32601, message: `Unknown method: ${method}` } }
  const name = String(params['name'])
  const tool = Object.hasOwn(TOOLS, name) ? TOOLS[name] : undefined
  if (!tool) return { error: { code: -32602, message: `Unknown tool: ${name}` } }
  return { result: tool.run((params['arguments'] ?? {}) as Json, (params['inputResponses'] ?? {}) as Json) }
}

/** Serves the tools on two streams, until the input ends. */
export async function serveModernDemo(input: Readable, output: Writable): Promise<void> {
  for await (const line of createInterface({ input })) {
    if (line === '') continue
    const { id, method, params = {} } = JSON.parse(line) as { id?: unknown; method?: string; params?: Json }
    if (id === undefined || method === undefined) continue
    const { result, error } = answer(method, params)
    const message = result === undefined ? { id, error } : { id, result: { ...(result as Json), _meta: SELF } }
    output.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
  }
}
