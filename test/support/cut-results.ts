/** Clients that get results of tools cut, and read the rest of them. The server is test/fixtures/lengthy.mjs. */
import { fileURLToPath } from 'node:url'
import type { Client, Json, Message } from '../matrix/client.js'
import { type ClientKind, connect, type Reachable } from '../matrix/clients.js'

export type Block = Json & { type: string; text?: string; uri?: string }

export const lengthy = (plan: Json = {}) => ({
  command: process.execPath,
  args: [fileURLToPath(new URL('../fixtures/lengthy.mjs', import.meta.url)), JSON.stringify(plan)],
})
export const LIMIT = 4_096
export const CUT = { results: { cut: LIMIT } }

export async function opened(kind: ClientKind, bridge: Reachable): Promise<Client> {
  const client = connect(kind, bridge)
  await client.open()
  return client
}

export const blocksOf = ({ result }: Message) => (result?.['content'] ?? []) as Block[]
export const callTool = async (client: Client, name: string, args: Json = {}) =>
  (await client.call('tools/call', { name, arguments: args })).message
/** The tools on each page of the list. */
export const toolPages = async (client: Client) => {
  const pages: string[][] = []
  let cursor: unknown
  do {
    const { result = {} } = (await client.call('tools/list', cursor === undefined ? {} : { cursor })).message
    pages.push((result['tools'] as { name: string }[]).map(({ name }) => name))
    cursor = result['nextCursor']
  } while (cursor !== undefined)
  return pages
}
export const toolNames = async (client: Client) => (await toolPages(client)).flat()

/** The URI that a text of the bridge names. */
export function uriIn(blocks: readonly Block[]): string | undefined {
  const said = blocks.flatMap(({ type, text = '' }) =>
    type === 'text' ? (/\{"uri":"([^"]+)"\}/.exec(text) ?? []) : [],
  )
  return said[1]
}

export const linkIn = (blocks: readonly Block[]) => blocks.find(({ type }) => type === 'resource_link')?.uri

/** All parts from a URI on, with the tool. */
export async function readByTool(client: Client, uri: string, tool = 'read_more'): Promise<string[]> {
  const parts: string[] = []
  for (let next: string | undefined = uri; next !== undefined; ) {
    const blocks = blocksOf(await callTool(client, tool, { uri: next }))
    parts.push(blocks[0]?.text ?? JSON.stringify(blocks))
    next = uriIn(blocks.slice(1))
  }
  return parts
}

/** All parts from a URI on, as resources. */
export async function readByResource(client: Client, uri: string): Promise<string[]> {
  const parts: string[] = []
  for (let next: string | undefined = uri; next !== undefined; ) {
    const { message } = await client.call('resources/read', { uri: next })
    if (!message.result) throw new Error(JSON.stringify(message))
    const [content, more] = message.result['contents'] as Json[]
    parts.push(String(content?.['text'] ?? content?.['blob'] ?? JSON.stringify(message)))
    if (more && content?.['uri'] !== next) throw new Error(`The content has another URI than ${next}`)
    next = more?.['uri'] as string | undefined
  }
  return parts
}
