/** The legacy server of `mcp-bridge demo`: a few tools on stdio, in revision 2025-11-25. */

import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import { NEWEST_LEGACY } from '../../mcp/protocol/eras.js'
import { CALL_TOOL } from '../../mcp/protocol/methods.js'

type Json = Readonly<Record<string, unknown>>
type Id = string | number

/** Actions of a running tool. */
interface Running {
  /** Sends a request to the client. Resolves to its result; rejects with its error. */
  ask(method: string, params: Json): Promise<Json>
  /** Sends progress, if the client asked for it. */
  progress(progress: number, total: number, message: string): void
  pause(milliseconds: number): Promise<void>
}

interface Tool {
  description: string
  inputSchema: Json
  run(args: Json, running: Running): string | Promise<string>
}

/** An error that the tool itself reports, for the model to read. */
class ToolError extends Error {}

const WEATHER: Readonly<Record<string, string>> = {
  oslo: '3 °C, snow',
  lisbon: '21 °C, sunny',
  nairobi: '24 °C, a light wind',
}
const LINES = 4
/** Milliseconds for one line of a report. */
const LINE = 250

const text = (description: string): Json => ({ type: 'string', description })
const schema = (properties: Json): Json => ({ type: 'object', properties, required: Object.keys(properties) })

/** The tools, by their names. */
const TOOLS: Readonly<Record<string, Tool>> = {
  weather: {
    description: 'The weather of a city',
    inputSchema: schema({ city: text('Oslo, Lisbon or Nairobi') }),
    run({ city }) {
      const found = WEATHER[String(city).toLowerCase()]
      if (found === undefined) throw new ToolError(`There is no weather for ${city}`)
      return `${city}: ${found}`
    },
  },
  write_report: {
    description: 'Writes a report, and says how far it is',
    inputSchema: schema({ subject: text('What it is about') }),
    async run({ subject }, { progress, pause }) {
      for (let line = 1; line <= LINES; line++) {
        await pause(LINE)
        progress(line, LINES, `line ${line}`)
      }
      return `A report about ${subject}, in ${LINES} lines`
    },
  },
  book_table: {
    description: 'Books a table in a restaurant, and asks when',
    inputSchema: schema({ guests: { type: 'integer', description: 'How many come' } }),
    async run({ guests }, { ask }) {
      const { action, content } = await ask('elicitation/create', {
        message: `At what time is the table for ${guests}?`,
        requestedSchema: schema({ time: text('Such as 19:30') }),
      })
      if (action !== 'accept') return 'Nothing was booked'
      return `A table for ${guests} at ${(content as Json)['time']}`
    },
  },
  open_safe: {
    description: 'Opens a safe. The inspector hides its combination, because the schema says writeOnly',
    inputSchema: schema({
      safe: text('Which safe'),
      combination: { ...text('Its combination'), writeOnly: true },
    }),
    run: ({ safe }) => `The ${safe} safe is open`,
  },
}

/** Serves the tools on two streams, until the input ends. */
export async function serveDemo(input: Readable, output: Writable): Promise<void> {
  const waiting = new Map<Id, (answer: Json) => void>()
  let lastId = 0
  const send = (message: Json) => output.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
  const ask = (method: string, params: Json) =>
    new Promise<Json>((resolve, reject) => {
      const id = `ask-${++lastId}`
      waiting.set(id, ({ result, error }) => {
        waiting.delete(id)
        if (result) resolve(result as Json)
        else reject(new ToolError(`The client did not answer: ${(error as Json | undefined)?.['message']}`))
      })
      send({ id, method, params })
    })
  const pause = (milliseconds: number) => new Promise<void>((resolve) => setTimeout(resolve, milliseconds))

  async function call(id: Id, params: Json): Promise<void> {
    const tool = TOOLS[String(params['name'])]
    if (!tool) return void send({ id, error: { code: -32602, message: `Unknown tool: ${params['name']}` } })
    const { progressToken } = (params['_meta'] ?? {}) as Json
    const progress: Running['progress'] = (progress, total, message) => {
      if (progressToken === undefined) return
      send({ method: 'notifications/progress', params: { progressToken, progress, total, message } })
    }
    const say = (said: string, more: Json = {}) =>
      send({ id, result: { content: [{ type: 'text', text: said }], ...more } })
    try {
      say(await tool.run((params['arguments'] ?? {}) as Json, { ask, progress, pause }))
    } catch (error) {
      say(error instanceof ToolError ? error.message : 'The tool failed', { isError: true })
    }
  }

  const results: Readonly<Record<string, () => Json>> = {
    initialize: () => ({
      protocolVersion: NEWEST_LEGACY,
      capabilities: { tools: {} },
      serverInfo: { name: 'demo-server', version: '1.0.0' },
    }),
    ping: () => ({}),
    'tools/list': () => ({
      tools: Object.entries(TOOLS).map(([name, { description, inputSchema }]) => ({ name, description, inputSchema })),
    }),
  }

  for await (const line of createInterface({ input })) {
    if (line === '') continue
    const message = JSON.parse(line) as Json
    const { id, method, params = {} } = message as { id?: Id; method?: string; params?: Json }
    if (method === undefined) waiting.get(id as Id)?.(message)
    else if (id === undefined) continue
    else if (method === CALL_TOOL) call(id, params).catch(() => {})
    else if (results[method]) send({ id, result: results[method]() })
    else send({ id, error: { code: -32601, message: `Unknown method: ${method}` } })
  }
}
