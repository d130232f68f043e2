/** Says what a server speaks and offers: what `mcp-bridge probe` prints. */
import type { Call, Reply } from './protocol/call.js'
import { NEWEST_MODERN } from './protocol/eras.js'
import { Fault } from './protocol/fault.js'
import { EMPTY, edit, type Payload, raw, value } from './rpc/splice.js'
import type { Server } from './upstream/server.js'

export interface Inspection {
  era: 'modern' | 'legacy'
  revision: string
  transport: 'stdio' | 'http' | 'sse'
  /** How that was found out. */
  why: string
  server: { name?: string; title?: string; version?: string } | undefined
  instructions: string | undefined
  capabilities: Record<string, unknown>
  tools: { name: string; title?: string; description?: string }[]
}

const MAX_PAGES = 100

/** Asks the server. Whoever wants to gets each page of its tools as well, or has it not asked for them. Rejects with a Fault. */
export async function inspect(
  server: Server,
  seen: (page: Payload) => void = () => {},
  withTools = true,
): Promise<Inspection> {
  const { result: discovered, server: named } = await ask(server, 'server/discover', EMPTY)
  const { verdict } = server
  if (!verdict) throw new Fault('internal', 'The server answered, but nothing is known of it')
  const capabilities = (value(discovered, 'capabilities') ?? {}) as Record<string, unknown>
  return {
    era: verdict.era,
    revision: verdict.revision ?? 'unknown',
    transport: verdict.transport.kind,
    why: verdict.why,
    server: named === undefined ? undefined : (JSON.parse(named) as Inspection['server']),
    instructions: value(discovered, 'instructions') as string | undefined,
    capabilities,
    tools: withTools && 'tools' in capabilities ? await listTools(server, seen) : [],
  }
}

async function listTools(server: Server, seen: (page: Payload) => void): Promise<Inspection['tools']> {
  const tools: Inspection['tools'] = []
  let cursor: string | undefined
  for (let page = 0; page < MAX_PAGES; page++) {
    const { result } = await ask(server, 'tools/list', cursor === undefined ? EMPTY : edit(EMPTY, { cursor }))
    seen(result)
    for (const { name, title, description } of value(result, 'tools') as Inspection['tools'])
      tools.push({ name, ...(title !== undefined && { title }), ...(description !== undefined && { description }) })
    cursor = raw(result, 'nextCursor')
    if (cursor === undefined) break
  }
  return tools
}

async function ask(server: Server, method: string, params: Payload): Promise<Reply & { kind: 'result' }> {
  const silent = () => {}
  const controller = new AbortController()
  const call: Call = {
    method,
    params,
    meta: EMPTY,
    progress: false,
    caller: { revision: NEWEST_MODERN, capabilities: '{}' },
    principal: 'local',
    signal: controller.signal,
    abort: (reason) => controller.abort(reason),
    log: { note: silent, debug: silent, warn: silent },
  }
  let last: Reply | undefined
  for await (const reply of server.handle(call)) last = reply
  if (last?.kind === 'result') return last
  const said = last?.kind === 'error' ? `: ${last.error.message} (${last.error.code})` : ''
  throw new Fault('upstreamProtocol', `The server did not answer ${method} with a result${said}`)
}

/** The inspection in words. */
export function describe(
  target: string,
  { era, revision, transport, why, server, capabilities, tools, instructions }: Inspection,
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
  const width = Math.min(Math.max(0, ...tools.map(({ name }) => name.length)), 40)
  for (const { name, description = '' } of tools) lines.push(`    ${name.padEnd(width)}  ${oneLine(description, 80)}`)
  return lines.join('\n')
}

function oneLine(text: string, most: number): string {
  const flat = text.replace(/\s+/g, ' ').trim()
  return flat.length > most ? `${flat.slice(0, most - 1)}…` : flat
}
