/** What a client is told of what a server has, where their eras differ. */

import type { Era, Json } from './client.js'
import type { TransportKind } from './clients.js'

/** A client and a server, as far as it takes to say what comes of them. */
export interface Pair {
  client: { era: Era; transport: TransportKind }
  server: { era: Era; transport: TransportKind; revision: string; capabilities: Json }
}

export const crosses = ({ client, server }: Pair) => client.era !== server.era

/** Messages go from connection to connection as they are: what the server makes of them is its own affair. */
export const passesUnchanged = (pair: Pair) =>
  !crosses(pair) && pair.client.transport === 'HTTP' && pair.server.transport === 'HTTP'

/** All sessions of a client over HTTP are told of changes by one subscription with a modern server. */
export const sharesSubscription = ({ client, server }: Pair) =>
  client.era === 'legacy' && client.transport !== 'stdio' && server.era === 'modern'

/** A tool as it is told, by its name; undefined where it is not told at all. Others are told as they are. */
type Change = (tool: Json) => Json | undefined

/** What a legacy server says that no modern client may see, or that each of them needs. */
const TO_MODERN: Record<string, Change> = {
  crash: ({ execution, ...tool }) => tool,
  task: ({ execution, ...tool }) => tool,
  untyped: (tool) => ({ ...tool, inputSchema: { properties: {}, type: 'object' } }),
}

/** What strict clients of 2025-11-25 would reject a whole list for. */
const TO_LEGACY: Record<string, Change> = {
  array: (tool) => ({
    ...tool,
    outputSchema: { type: 'object', properties: { result: tool['outputSchema'] }, required: ['result'] },
  }),
  uncompilable: ({ outputSchema, ...tool }) => tool,
  untitled: ({ title, ...tool }) => tool,
  anything: (tool) => ({
    ...tool,
    inputSchema: { type: 'object', properties: { anything: {}, nothing: { not: {} } } },
  }),
}

/** Over HTTP, what has to be mirrored and cannot be is not to be called: by whoever writes the headers. */
const WITHOUT_MISANNOTATED: Record<string, Change> = { 'badly-mirrored': () => undefined }

export function toldTools(pair: Pair, tools: readonly Json[]): Json[] {
  const { client, server } = pair
  const writesHeaders = server.era === 'modern' && server.transport === 'HTTP' && !passesUnchanged(pair)
  const changes: Record<string, Change> = {
    ...(crosses(pair) && (client.era === 'modern' ? TO_MODERN : TO_LEGACY)),
    ...(writesHeaders && WITHOUT_MISANNOTATED),
  }
  return tools
    .map((tool) => {
      const change = changes[String(tool['name'])]
      return change ? change(tool) : tool
    })
    .filter((tool) => tool !== undefined)
}

/** Capabilities of a client as the server is told of them: what can be delivered, and nothing of the other era. */
export function toldCapabilities(pair: Pair, capabilities: Json): Json {
  if (!crosses(pair)) return capabilities
  const { tasks, ...others } = capabilities
  return { ...others, ...('roots' in others && { roots: {} }) }
}

/** Capabilities of a server as the client is told of them: tasks are an extension in one era, and a matter of peers in the other. */
export function toldOffer(pair: Pair): Json {
  const { capabilities } = pair.server
  if (!crosses(pair)) return capabilities
  const { tasks, extensions, ...others } = capabilities
  return { ...others, ...(tasks !== undefined && { extensions: { 'io.modelcontextprotocol/tasks': {} } }) }
}
