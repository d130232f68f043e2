/** A server over HTTP, of either era, that answers each method with what a test says. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'

type Json = Record<string, unknown>
export type Era = 'legacy' | 'modern'

export interface Answering {
  /** The entry of `mcpServers`. */
  server: { url: string }
  /** The requests and notifications that it got. */
  got: { method: string; params?: Json }[]
}

/** `answers` has results by method. Notifications in `told` precede the answer to a tool call. */
export async function answering(
  t: Test,
  era: Era,
  answers: Record<string, Json>,
  told: readonly Json[] = [],
): Promise<Answering> {
  const got: Answering['got'] = []
  const capabilities = { tools: {}, prompts: {}, resources: {}, logging: {} }
  const own: Record<string, Json> =
    era === 'legacy'
      ? { initialize: { protocolVersion: '2025-11-25', capabilities, serverInfo: { name: 's', version: '1' } } }
      : { 'server/discover': { supportedVersions: ['2026-07-28'], capabilities } }
  const results: Record<string, Json> = { ping: {}, 'logging/setLevel': {}, ...own, ...answers }
  const http = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      if (request.method !== 'POST') return void response.writeHead(405).end()
      const message = JSON.parse(Buffer.concat(chunks).toString()) as { id?: unknown; method: string; params?: Json }
      got.push(message)
      if (message.id === undefined) return void response.writeHead(202).end()
      const result = results[message.method]
      const answer = {
        jsonrpc: '2.0',
        id: message.id,
        ...(result
          ? { result: era === 'modern' ? { resultType: 'complete', ...result } : result }
          : { error: { code: -32601, message: 'Method not found' } }),
      }
      const first = message.method === 'tools/call' ? told : []
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.end([...first, answer].map((one) => `event: message\ndata: ${JSON.stringify(one)}\n\n`).join(''))
    })
  })
  http.listen(0, '127.0.0.1')
  await new Promise((resolve) => http.once('listening', resolve))
  t.teardown(() => {
    http.closeAllConnections()
    http.close()
  })
  return { server: { url: `http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp` }, got }
}
