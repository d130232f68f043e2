/** A server of the first SDK, made with its high-level class, over Streamable HTTP inside the test. */
import { randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import type { Test } from 'tap'
import { listenUntilEnd } from './listen-until-end.js'

/** Starts it with what `register` gives each session's server, and resolves to its address. */
export async function startSdkV1(t: Test, register: (server: McpServer) => void): Promise<string> {
  const sessions = new Map<string, StreamableHTTPServerTransport>()

  async function open(): Promise<StreamableHTTPServerTransport> {
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => {
        sessions.set(id, transport)
      },
    })
    const server = new McpServer({ name: 'sdk-v1', version: '1.0.0' })
    register(server)
    // The SDK's own classes do not fit each other under `exactOptionalPropertyTypes`.
    await server.connect(transport as Transport)
    return transport
  }

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const id = request.headers['mcp-session-id']
    const session = id === undefined ? await open() : sessions.get(String(id))
    if (session) await session.handleRequest(request, response)
    else response.writeHead(404).end()
  }

  const http = createServer((request, response) => {
    handle(request, response).catch(() => response.destroy())
  })
  await listenUntilEnd(t, http)
  return `http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp`
}
