/** Extracts from a list of tools what trust depends on: their descriptions and hints. */

import { digest } from '../../base/crypto/digest.js'
import { Fault } from '../../base/fault/fault.js'
import { MAX_TOOLS } from '../../base/limits/constants.js'
import { canonical } from '../../base/rpc/canonical.js'
import { duplicateKey, keys, objectIn, objectsIn, type Payload, raw, value, write } from '../../base/rpc/splice.js'
import type { ToolFact, ToolList } from '../../mcp/ports/trust-status.js'
import { withoutMisannotated } from '../../mcp/protocol/annotations.js'
import type { Pages } from './pages.js'

/** Members of a tool that a model or a person reads. */
const TELLING: readonly string[] = ['name', 'title', 'description', 'inputSchema', 'outputSchema', 'annotations']

/** Reads all pages of the list of tools. Rejects with a Fault if there are more than MAX_TOOLS. */
export async function fetchTools(pages: Pages): Promise<ToolList> {
  const tools = new Map<string, ToolFact>()
  for await (const page of pages) addTools(page, tools)
  return listOf(tools)
}

/** The tools in these pages. Throws a Fault if there are more than MAX_TOOLS. */
export function toolList(pages: readonly Payload[]): ToolList {
  const tools = new Map<string, ToolFact>()
  for (const page of pages) addTools(page, tools)
  return listOf(tools)
}

function addTools(page: Payload, tools: Map<string, ToolFact>): void {
  // Clients over HTTP must drop tools with invalid annotations, so nobody can call them through the bridge.
  for (const tool of objectsIn(withoutMisannotated(page), 'tools')) {
    const name = value(tool, 'name')
    if (typeof name !== 'string') continue
    const before = tools.get(name)
    tools.set(name, before ? both(before, factOf(tool)) : factOf(tool))
    if (tools.size > MAX_TOOLS) throw new Fault('upstreamProtocol', `The server lists more than ${MAX_TOOLS} tools`)
  }
}

/** The list with some tools replaced or added. */
export function withTools({ tools }: ToolList, others: ToolList): ToolList {
  return listOf(new Map([...tools, ...others.tools]))
}

function listOf(tools: ReadonlyMap<string, ToolFact>): ToolList {
  const lines = [...tools].map(([name, { digest }]) => JSON.stringify([name, digest]))
  return { digest: digest(lines.sort().join('\n')), tools }
}

function factOf(tool: Payload): ToolFact {
  // Programs disagree about which of two duplicate members counts, so no hint of such a tool counts.
  if (duplicateKey(tool) !== undefined) return { digest: digest(canonical(write(tool))), hints: {} }
  const telling = TELLING.flatMap((key) => {
    const text = raw(tool, key)
    return text === undefined ? [] : [`${key} ${canonical(text)}`]
  })
  return { digest: digest(telling.join('\n')), hints: hintsOf(objectIn(tool, 'annotations')) }
}

function hintsOf(annotations: Payload | undefined): ToolFact['hints'] {
  if (!annotations || duplicateKey(annotations) !== undefined) return {}
  const hints = keys(annotations).map((key) => [key, raw(annotations, key)] as const)
  const said = hints.filter(([, text]) => text === 'true' || text === 'false')
  return Object.fromEntries(said.map(([key, text]) => [key, text === 'true']))
}

/** Two tools of the same name. Only the server knows which one is called, so only hints that both have count. */
function both(one: ToolFact, other: ToolFact): ToolFact {
  const agreed = Object.entries(one.hints).filter(([key, says]) => other.hints[key] === says)
  return { digest: digest([one.digest, other.digest].sort().join('\n')), hints: Object.fromEntries(agreed) }
}
