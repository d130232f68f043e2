/** Asks a server for its era, capabilities and tools: what `mcp-bridge probe` prints. */
import { HangUp } from '../hang-up.js'
import { type Call, type Final, unheard } from '../protocol/call.js'
import { NEWEST_MODERN } from '../protocol/eras.js'
import { Fault } from '../protocol/fault.js'
import { EMPTY, edit, type Payload, raw, value } from '../rpc/splice.js'
import type { Server } from '../upstream/server.js'

/** What was learned about a server. */
export interface Inspection {
  era: 'modern' | 'legacy'
  revision: string
  transport: 'stdio' | 'http' | 'sse'
  /** The evidence for the era. */
  why: string
  server: { name?: string; title?: string; version?: string } | undefined
  instructions: string | undefined
  capabilities: Record<string, unknown>
  tools: { name: string; title?: string; description?: string }[]
  /** Why listing the tools failed, if it did. */
  toolsError?: string
}

const MAX_PAGES = 100
/** Milliseconds for a page of tools. */
const PAGE_WITHIN = 30_000

/** Options of an inspection. */
export interface InspectOptions {
  /** Called with each page of the tools. */
  seen?: (page: Payload) => void
  /**
   * `required`: rejects if the tools cannot be listed. `attempted`: reports the failure in `toolsError`. `left out`:
   * lists none.
   */
  tools?: 'required' | 'attempted' | 'left out'
}

/** Inspects a server. Rejects with a Fault. */
export async function inspect(
  server: Server,
  { seen = () => {}, tools = 'required' }: InspectOptions = {},
): Promise<Inspection> {
  const { result: discovered, server: named } = await ask(server, 'server/discover', EMPTY)
  const { verdict } = server
  if (!verdict) throw new Fault('internal', 'The server answered, but its era is unknown')
  const capabilities = (value(discovered, 'capabilities') ?? {}) as Record<string, unknown>
  return {
    era: verdict.era,
    revision: verdict.revision ?? 'unknown',
    transport: verdict.transport.kind,
    why: verdict.why,
    server: named === undefined ? undefined : (JSON.parse(named) as Inspection['server']),
    instructions: value(discovered, 'instructions') as string | undefined,
    capabilities,
    ...(tools !== 'left out' && 'tools' in capabilities ? await listTools(server, seen, tools) : { tools: [] }),
  }
}

async function listTools(
  server: Server,
  seen: (page: Payload) => void,
  needed: 'required' | 'attempted',
): Promise<Pick<Inspection, 'tools' | 'toolsError'>> {
  const tools: Inspection['tools'] = []
  try {
    for await (const tool of toolsOf(server, seen)) tools.push(tool)
    return { tools }
  } catch (error) {
    if (needed === 'required') throw error
    return { tools, toolsError: Fault.from(error).message }
  }
}

async function* toolsOf(server: Server, seen: (page: Payload) => void): AsyncGenerator<Inspection['tools'][number]> {
  let cursor: string | undefined
  for (let page = 0; page < MAX_PAGES; page++) {
    const { result } = await ask(
      server,
      'tools/list',
      cursor === undefined ? EMPTY : edit(EMPTY, { cursor }),
      PAGE_WITHIN,
    )
    seen(result)
    const listed = value(result, 'tools')
    if (!Array.isArray(listed)) throw new Fault('upstreamProtocol', 'The answer to tools/list has no array of tools')
    for (const { name, title, description } of listed as Inspection['tools'])
      yield { name, ...(title !== undefined && { title }), ...(description !== undefined && { description }) }
    cursor = raw(result, 'nextCursor')
    if (cursor === undefined) return
  }
}

async function ask(
  server: Server,
  method: string,
  params: Payload,
  within?: number,
): Promise<Final & { kind: 'result' }> {
  const silent = () => {}
  const hangUp = new HangUp()
  const late = () => hangUp.abort(new Fault('upstreamTimeout', `The server did not answer ${method} in ${within} ms`))
  const timer = within === undefined ? undefined : setTimeout(late, within)
  const call: Call = {
    method,
    params,
    meta: EMPTY,
    progress: false,
    caller: { revision: NEWEST_MODERN, capabilities: '{}' },
    principal: 'local',
    tell: unheard,
    signal: hangUp,
    abort: (reason) => hangUp.abort(reason),
    log: { note: silent, warn: silent },
  }
  let last: Final
  try {
    last = await server.handle(call)
  } catch (error) {
    throw hangUp.aborted ? hangUp.reason : error
  } finally {
    clearTimeout(timer)
  }
  if (last.kind === 'result') return last
  const detail = last.kind === 'error' ? `: ${last.error.message} (${last.error.code})` : ''
  throw new Fault('upstreamProtocol', `The server did not answer ${method} with a result${detail}`)
}

/** The inspection as text for people. */
export function describe(
  target: string,
  { era, revision, transport, why, server, capabilities, tools, toolsError, instructions }: Inspection,
): string {
  const names = { stdio: 'stdio', http: 'Streamable HTTP', sse: 'HTTP+SSE' }
  const lines = [
    `${target}`,
    `  speaks     ${era} ${revision} over ${names[transport]}`,
    `  because    ${why}`,
    `  calls itself ${[server?.title ?? server?.name ?? 'nothing', server?.version].filter(Boolean).join(' ')}`,
    `  offers     ${Object.keys(capabilities).join(', ') || 'nothing'}`,
    ...(instructions === undefined ? [] : [`  says       ${oneLine(instructions, 100)}`]),
  ]
  if (tools.length > 0) lines.push(`  tools      ${tools.length}`)
  if (toolsError !== undefined)
    lines.push(`  tools      could not be listed${tools.length > 0 ? ' all' : ''}: ${oneLine(toolsError, 300)}`)
  const width = Math.min(Math.max(0, ...tools.map(({ name }) => name.length)), 40)
  for (const { name, description = '' } of tools) lines.push(`    ${name.padEnd(width)}  ${oneLine(description, 80)}`)
  return lines.join('\n')
}

function oneLine(text: string, most: number): string {
  const flat = text.replace(/\s+/g, ' ').trim()
  return flat.length > most ? `${flat.slice(0, most - 1)}…` : flat
}
