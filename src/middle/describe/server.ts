/** Asks a server for its era, capabilities and tools: what `mcp-bridge probe` prints. */

import { Fault } from '../../base/fault/fault.js'
import { MAX_LIST_BYTES, MAX_PAGES } from '../../base/limits/constants.js'
import { weightOf } from '../../base/rpc/source.js'
import { EMPTY, edit, type Payload, raw, value } from '../../base/rpc/splice.js'
import { printable } from '../../base/texts/printable.js'
import { MAX_SAID_OF_TOOL, type Simplified, simplifiedTool, simplifiedTools } from '../../base/texts/simplified.js'
import { HangUp } from '../../base/time/hang-up.js'
import { Deadline } from '../../base/time/time.js'
import { bridgeCall } from '../../mcp/protocol/bridge-call.js'
import type { Call, Final } from '../../mcp/protocol/call.js'
import { NEWEST_MODERN } from '../../mcp/protocol/eras.js'
import { nextCursor } from '../../mcp/protocol/listed.js'
import type { AddressHealth, UpstreamServer } from '../../servers/server.js'
import { manyTokens } from '../group/tokens.js'
import { type AskedRules, askedNames } from '../policy/approval/asked-tools.js'
import { type Left, leftOf, type ServerChoice, shownTools } from '../policy/choice/left.js'
import { choosing } from '../policy/choice/seen.js'
import { simplifiedIn } from '../policy/portable/simplified.js'

const LOCAL_USER = { caller: { revision: NEWEST_MODERN, capabilities: '{}' }, principal: 'local' }

export interface ServerDescription {
  era: 'modern' | 'legacy'
  revision: string
  transport: 'stdio' | 'http' | 'sse'
  /** The evidence for the era. */
  why: string
  server: { name?: string; title?: string; version?: string } | undefined
  instructions: string | undefined
  capabilities: Record<string, unknown>
  /** As clients see them. */
  tools: { name: string; title?: string; description?: string }[]
  /** Bytes of the lists of tools as clients get them, as far as they were listed. */
  toolBytes?: number
  /** Why listing the tools failed, if it did. */
  toolsError?: string
  /** What the configuration leaves of the server for clients, if it chooses. */
  left?: Left[]
  /** The state of each of its addresses, if it has several. */
  addresses?: readonly AddressHealth[]
  /** What portable schemas make of its tools, if clients get these. */
  simplified?: Simplified[]
  /** The tools that a person has to approve before each call, by their names at the server. */
  approve?: string[]
}

/** What a server over HTTP+SSE should change. */
const SSE_NOTE =
  'MCP may remove HTTP+SSE: if the server has a Streamable HTTP address, which is usually at /mcp, use that'

/** Milliseconds for a page of tools. */
const PAGE_WITHIN = 30_000

export interface DescribeOptions {
  /** Called with each page of the tools. */
  seen?: (page: Payload) => void
  /**
   * `required`: rejects if the tools cannot be listed. `attempted`: reports the failure in `toolsError`. `left out`:
   * lists none.
   */
  tools?: 'required' | 'attempted' | 'left out'
  /** What the configuration chooses of the server. */
  choice?: ServerChoice & {
    schemas?: unknown
    keepsNames?: boolean
    tools?: { approve?: AskedRules['approve'] | undefined } | undefined
  }
  /** The name of the server in the configuration. */
  name?: string
}

/** Asks a server for what describes it. Rejects with a Fault. */
export async function describeServer(
  server: UpstreamServer,
  { seen: given = () => {}, tools = 'required', choice: own = {}, name = '' }: DescribeOptions = {},
): Promise<ServerDescription> {
  const choice: ServerChoice & { schemas?: unknown } = { ...own, tools: choosing(own.tools) }
  const { approve } = own.tools ?? {}
  const asked = approve && askedNames(name, { ...own.tools, approve })
  const approved: string[] = []
  const simplified: Simplified[] = []
  const seen = (page: Payload) => {
    given(page)
    if (asked) approved.push(...asked(page))
    if (choice.schemas) simplified.push(...simplifiedIn(page, own.keepsNames))
  }
  const { result: discovered, server: named } = await ask(server, 'server/discover', EMPTY)
  const { verdict } = server
  if (!verdict) throw new Fault('internal', 'The server answered, but its era is unknown')
  // The answer is that of one of them.
  if (server.addresses) await server.warmUp().catch(() => {})
  const { addresses } = server
  const capabilities = (value(discovered, 'capabilities') ?? {}) as Record<string, unknown>
  return {
    era: verdict.era,
    revision: verdict.revision ?? 'unknown',
    transport: verdict.transport.kind,
    why: verdict.why,
    server: named === undefined ? undefined : (JSON.parse(named) as ServerDescription['server']),
    instructions: value(discovered, 'instructions') as string | undefined,
    capabilities,
    ...(tools !== 'left out' && 'tools' in capabilities
      ? await listTools(server, seen, tools, shownTools(choice))
      : { tools: [] }),
    ...(choice.schemas !== undefined && { simplified }),
    ...(asked && { approve: approved }),
    ...(addresses && { addresses }),
    ...((choice.tools ?? choice.prompts ?? choice.resources) && {
      left: await leftOf(choice, (method, option) => (option in capabilities ? all(pages(server, method)) : [])),
    }),
  }
}

/** What a server or group says of itself: the members of `Implementation` that are for people. */
export interface Identity {
  name?: string
  title?: string
  version?: string
  description?: string
  websiteUrl?: string
  icons?: unknown
}

/** Asks a server or group what it is, and what it has. Rejects with a Fault. */
export async function discovered(
  server: Pick<UpstreamServer, 'handle'>,
): Promise<{ server: Identity; capabilities: Record<string, unknown> }> {
  const { result, server: named } = await ask(server, 'server/discover', EMPTY)
  const said = named === undefined ? {} : (JSON.parse(named) as Record<string, unknown>)
  const texts = ['name', 'title', 'version', 'description', 'websiteUrl'].filter((key) => isText(said[key]))
  return {
    server: { ...Object.fromEntries(texts.map((key) => [key, said[key]])), icons: said['icons'] },
    capabilities: (value(result, 'capabilities') ?? {}) as Record<string, unknown>,
  }
}

const isText = (value: unknown): value is string => typeof value === 'string'

/** A tool in a list. What is not as MCP defines it is left out. */
function shownTool(listed: unknown): ServerDescription['tools'][number] {
  const { name, title, description } = (listed ?? {}) as Record<'name' | 'title' | 'description', unknown>
  return {
    name: isText(name) ? name : '(a tool without a name)',
    ...(isText(title) && { title }),
    ...(isText(description) && { description }),
  }
}

async function listTools(
  server: UpstreamServer,
  seen: (page: Payload) => void,
  needed: 'required' | 'attempted',
  shown: (page: Payload) => Payload,
): Promise<Pick<ServerDescription, 'tools' | 'toolBytes' | 'toolsError'>> {
  const tools: ServerDescription['tools'] = []
  let toolBytes = 0
  try {
    for await (const page of pages(server, 'tools/list')) {
      seen(page)
      const given = shown(page)
      const listed = value(given, 'tools')
      if (!Array.isArray(listed)) throw new Fault('upstreamProtocol', 'The answer to tools/list has no array of tools')
      tools.push(...listed.map(shownTool))
      toolBytes += Buffer.byteLength(raw(given, 'tools') ?? '')
    }
    return { tools, toolBytes }
  } catch (error) {
    if (needed === 'required') throw error
    return { tools, toolBytes, toolsError: Fault.from(error).message }
  }
}

/** The pages of a list, as far as they are read. Rejects with a Fault. */
export async function* pages(server: Pick<UpstreamServer, 'handle'>, method: string): AsyncGenerator<Payload> {
  let cursor: string | undefined
  let bytes = 0
  for (let page = 0; page < MAX_PAGES && bytes < MAX_LIST_BYTES; page++) {
    const params = cursor === undefined ? EMPTY : edit(EMPTY, { cursor })
    const { result } = await ask(server, method, params, PAGE_WITHIN)
    bytes += weightOf(result.source)
    yield result
    cursor = nextCursor(result)
    if (cursor === undefined) return
  }
}

/** Asks a server or a group, as a client of the newest revision without capabilities. Rejects with a Fault. */
async function ask(
  { handle }: Pick<UpstreamServer, 'handle'>,
  method: string,
  params: Payload,
  within?: number,
): Promise<Final & { kind: 'result' }> {
  const hangUp = new HangUp()
  const late = () => hangUp.abort(new Fault('upstreamTimeout', `The server did not answer ${method} in ${within} ms`))
  const timer = within === undefined ? undefined : new Deadline(within, late)
  const call = ownCall(method, params, hangUp)
  let last: Final
  try {
    last = await handle(call)
  } catch (error) {
    throw hangUp.aborted ? hangUp.reason : error
  } finally {
    timer?.clear()
  }
  if (last.kind === 'result') return last
  const detail = last.kind === 'error' ? `: ${oneLine(last.error.message, 300)} (${last.error.code})` : ''
  throw new Fault('upstreamProtocol', `The server did not answer ${method} with a result${detail}`)
}

/** A call of the bridge itself, as the user of this machine. */
export function ownCall(method: string, params: Payload = EMPTY, hangUp = new HangUp()): Call {
  return { ...bridgeCall(method, LOCAL_USER, hangUp), params, patient: () => true }
}

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = []
  for await (const item of items) found.push(item)
  return found
}

/** The description as text for people. */
export function serverInWords(
  target: string,
  {
    era,
    revision,
    transport,
    why,
    server,
    capabilities,
    tools,
    toolBytes = 0,
    toolsError,
    left = [],
    simplified = [],
    approve,
    instructions,
    addresses = [],
  }: ServerDescription,
): string {
  const names = { stdio: 'stdio', http: 'Streamable HTTP', sse: 'HTTP+SSE' }
  const lines = [
    target,
    `  speaks     ${era} ${revision} over ${names[transport]}`,
    ...(transport === 'sse' ? [`  note       ${SSE_NOTE}`] : []),
    `  because    ${why}`,
    `  calls itself ${[server?.title ?? server?.name ?? 'nothing', server?.version].filter(Boolean).join(' ')}`,
    `  offers     ${Object.keys(capabilities).join(', ') || 'nothing'}`,
    ...(instructions === undefined ? [] : [`  says       ${oneLine(instructions, 100)}`]),
    ...addresses.map(({ address, state, era, revision, why }) => {
      const said = state === 'down' && why !== undefined ? `: ${oneLine(why, 300)}` : ''
      return `  address    ${address} ${[state, era, revision].filter(Boolean).join(' ')}${said}`
    }),
  ]
  if (tools.length > 0) lines.push(`  tools      ${tools.length}`)
  const many = manyTokens(toolBytes)
  if (many) lines.push(`  large      ${many.message}`)
  lines.push(...left.flatMap(leftInWords), ...simplifiedInWords(simplified))
  if (approve) lines.push(`  approved   by a person before each call: ${oneLine(approve.join(', ') || 'none', 1_000)}`)
  if (toolsError !== undefined)
    lines.push(`  tools      could not be listed${tools.length > 0 ? ' all' : ''}: ${oneLine(toolsError, 300)}`)
  const width = Math.min(Math.max(0, ...tools.map(({ name }) => name.length)), 40)
  for (const { name, description = '' } of tools) lines.push(`    ${name.padEnd(width)}  ${oneLine(description, 80)}`)
  return textOf(lines)
}

function leftInWords({ option, shown, of, unmatched, displaced, error }: Left): string[] {
  if (error !== undefined) return [`  for clients  ${option} could not be listed: ${oneLine(error, 300)}`]
  return [
    `  for clients  ${shown} of ${of} ${option}`,
    ...unmatched.map((what) => `    ${option}.${what} matches nothing`),
    ...displaced.map((name) => `    ${name} is hidden, because another tool has this name for clients`),
  ]
}

function simplifiedInWords(simplified: readonly Simplified[]): string[] {
  if (simplified.length === 0) return []
  const tools = simplified.map((one) => `    ${one.tool}: ${oneLine(simplifiedTool(one), MAX_SAID_OF_TOOL)}`)
  return [`  for models  ${simplifiedTools(simplified)}`, ...tools]
}

/** A text of a server in one line. */
export function oneLine(text: string, most: number): string {
  return printable(text.replace(/\s+/g, ' ').trim(), most)
}

/** Lines as one text. They have names of servers and tools, which must not control the terminal. */
export function textOf(lines: readonly string[]): string {
  return lines.map((line) => printable(line, line.length)).join('\n')
}
