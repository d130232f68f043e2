/** A client of MCP for the page of the inspector: of either era, over anything that sends a request of Streamable HTTP. */
import { isModern } from '../../mcp/protocol/eras.js'
import { isRecord } from '../record.js'
import { connectLegacy } from './legacy.js'
import { connectModern } from './modern.js'
import type { JsonRecord, TryClient, TryClientOptions } from './types.js'

/** Most pages of a list that are read. */
const MAX_TRY_PAGES = 100

/** Connects as a client of the revision. */
export function connectTry(options: TryClientOptions): Promise<TryClient> {
  return isModern(options.revision) ? connectModern(options) : connectLegacy(options)
}

/** The lists of servers: method, member of the result, required capability. */
const LISTED = {
  tools: ['tools/list', 'tools', 'tools'],
  prompts: ['prompts/list', 'prompts', 'prompts'],
  resources: ['resources/list', 'resources', 'resources'],
  templates: ['resources/templates/list', 'resourceTemplates', 'resources'],
} as const

/** All pages of a list. `cut`: there were more than are read. */
export async function listOf(
  client: TryClient,
  kind: keyof typeof LISTED,
  signal?: AbortSignal,
): Promise<{ items: JsonRecord[]; cut: boolean }> {
  const [method, member, capability] = LISTED[kind]
  const items: JsonRecord[] = []
  if (!(capability in client.server.capabilities)) return { items, cut: false }
  let cursor: unknown
  for (let page = 0; page < MAX_TRY_PAGES; page++) {
    const result = await client.call(method, cursor === undefined ? {} : { cursor }, { signal })
    const listed = result[member]
    if (Array.isArray(listed)) items.push(...listed.filter(isRecord))
    cursor = result['nextCursor']
    if (typeof cursor !== 'string') return { items, cut: false }
  }
  return { items, cut: true }
}

/** Completions of an argument of a prompt or of a variable of a template; none if the server has none. */
export async function completionsOf(
  client: TryClient,
  params: {
    ref: JsonRecord
    argument: { name: string; value: string }
    context?: { arguments: Record<string, string> }
  },
  signal?: AbortSignal,
): Promise<string[]> {
  if (!('completions' in client.server.capabilities)) return []
  const { completion } = await client.call('completion/complete', params, { signal })
  const values = isRecord(completion) ? completion['values'] : undefined
  return Array.isArray(values) ? values.filter((value): value is string => typeof value === 'string') : []
}
