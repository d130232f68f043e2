/** Asks a group what its clients see: the part of `mcp-bridge probe` about groups. */

import { Fault } from '../../base/fault/fault.js'
import { objectIn, raw, value } from '../../base/rpc/splice.js'
import { printable } from '../../base/texts/printable.js'
import { OF_BRIDGE } from '../../mcp/protocol/meta.js'
import type { Upstream } from '../../mcp/protocol/upstream.js'
import type { Hidden } from '../group/list-log.js'
import { isTooLong, isUnusual } from '../group/names.js'
import { manyTokens } from '../group/tokens.js'
import { oneLine, pages, textOf } from './server.js'

export interface GroupDescription {
  servers: readonly string[]
  /** Servers that did not answer, and why. */
  unavailable: readonly { server: string; message: string }[]
  tools: readonly string[]
  prompts: readonly string[]
  resources: readonly string[]
  /** Bytes of the lists of tools as clients get them. */
  toolBytes: number
  /** The tools that `search_tools` finds, and the bytes of their definitions, if they are searched. */
  searched?: { tools: readonly string[]; toolBytes: number } | undefined
  /** Tools whose names are too long for some clients. */
  tooLong: readonly string[]
  /** Tools whose names have characters that APIs of models refuse. */
  unusual: readonly string[]
  /** What is left out of lists. */
  leftOut: readonly Omit<Hidden, 'method'>[]
}

const WHY = {
  taken: 'an earlier server has that name',
  twice: 'its server lists it twice',
  malformed: 'it is not as MCP defines it',
} as const satisfies Record<Hidden['why'], string>

/** A group, as far as it is described. */
export interface DescribedGroup {
  name: string
  upstream: Pick<Upstream, 'handle'>
  /** The same without a search for tools; undefined if they are not searched. */
  withoutSearch: Pick<Upstream, 'handle'> | undefined
  health: { servers: readonly string[] }
  hidden: readonly Omit<Hidden, 'method'>[]
}

interface Named {
  name: string
  uri: string
}

/** Asks for the lists of a group. Rejects with a Fault if it has none at all. */
export async function describeGroup(group: DescribedGroup): Promise<GroupDescription> {
  const unavailable = new Map<string, string>()
  const all = async (method: string, key: string, from: Pick<Upstream, 'handle'> = group.upstream) => {
    const items: Named[] = []
    let bytes = 0
    for await (const result of pages(from, method)) {
      const meta = objectIn(result, '_meta')
      const missing = (meta && value(meta, `${OF_BRIDGE}unavailable`)) as
        | { server: string; message: string }[]
        | undefined
      for (const { server, message } of missing ?? []) unavailable.set(server, message)
      bytes += Buffer.byteLength(raw(result, key) ?? '')
      const listed = value(result, key)
      if (!Array.isArray(listed)) throw new Fault('upstreamProtocol', `The answer to ${method} has no array of ${key}`)
      items.push(...(listed as Named[]))
    }
    return { items, bytes }
  }
  const { tools, toolBytes } = toolsOf(await all('tools/list', 'tools'))
  const { withoutSearch } = group
  const searched = withoutSearch && toolsOf(await all('tools/list', 'tools', withoutSearch))
  const prompts = await all('prompts/list', 'prompts')
  const resources = await all('resources/list', 'resources')
  return {
    servers: group.health.servers,
    unavailable: [...unavailable].map(([server, message]) => ({ server, message })),
    tools,
    prompts: prompts.items.map(({ name }) => name),
    resources: resources.items.map(({ uri }) => uri),
    toolBytes,
    searched,
    // What is found is called through call_tool.
    tooLong: tools.filter((name) => isTooLong(group.name, name)),
    unusual: tools.filter(isUnusual),
    leftOut: group.hidden,
  }
}

function toolsOf({ items, bytes }: { items: readonly Named[]; bytes: number }): { tools: string[]; toolBytes: number } {
  return { tools: items.map(({ name }) => name), toolBytes: bytes }
}

/** The description as text for people. */
export function groupInWords(name: string, description: GroupDescription): string {
  const { servers, unavailable, tools, prompts, resources, toolBytes, searched, tooLong, unusual, leftOut } =
    description
  const many = manyTokens(toolBytes)
  return textOf([
    `group ${name}`,
    `  servers    ${servers.join(', ')}`,
    ...unavailable.map(({ server, message }) => `  missing    ${server}: ${oneLine(message, 500)}`),
    `  lists      ${sizeOf({ tools, toolBytes })}, ${prompts.length} prompts, ${resources.length} resources`,
    ...(many ? [`  large      ${many.message}`] : []),
    ...(searched ? [`  searches   ${sizeOf(searched)}`] : []),
    ...leftOut.map(({ name, server, why }) => `  left out   ${printable(name)} of ${server}: ${WHY[why]}`),
    ...tooLong.map(
      (tool) => `  too long   ${tool}: some clients allow 64 characters, and put mcp__${name}__ before it`,
    ),
    ...unusual.map((tool) => `  unusual    ${printable(tool)}: APIs of models allow letters, digits, "_" and "-" only`),
    ...[...new Set([...tools, ...(searched?.tools ?? [])])].map((tool) => `    ${tool}`),
  ])
}

function sizeOf({ tools, toolBytes }: Pick<GroupDescription, 'tools' | 'toolBytes'>): string {
  return `${tools.length} tools (${toolBytes.toLocaleString('en')} bytes)`
}
