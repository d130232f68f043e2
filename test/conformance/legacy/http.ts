/** Streamable HTTP with sessions: one server and one transport for each. */
import { randomUUID } from 'node:crypto'
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import { Changes } from '../shared/changes.js'
import { createServer } from './server.js'

const HOST = '127.0.0.1'
const PATH = '/mcp'

/** Listens until the process ends; 0 stands for any free port. Resolves to the address of the endpoint. */
export async function serveHttp(port: number): Promise<string> {
  const changes = new Changes()
  const sessions = new Map<string, StreamableHTTPServerTransport>()
  let allowedHosts: string[] = []

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (new URL(request.url ?? '/', 'http://any').pathname !== PATH) return refuse(response, 404, -32600, 'Not found')
    const id = request.headers['mcp-session-id']
    if (id === undefined) return (await open()).handleRequest(request, response)
    const session = sessions.get(String(id))
    if (!session) return refuse(response, 404, -32001, 'Session not found')
    return session.handleRequest(request, response)
  }

  /** The beginning of a session; if the request is no `initialize`, the transport refuses it and nothing comes of it. */
  async function open(): Promise<StreamableHTTPServerTransport> {
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => {
        sessions.set(id, transport)
      },
      enableDnsRebindingProtection: true,
      allowedHosts,
    })
    transport.onclose = () => {
      if (transport.sessionId !== undefined) sessions.delete(transport.sessionId)
    }
    // The SDK's own classes do not fit each other under `exactOptionalPropertyTypes`.
    await createServer(changes).connect(transport as Transport)
    return transport
  }

  const http = createHttpServer((request, response) => {
    handle(request, response).catch((error: unknown) => {
      process.stderr.write(`${String(error)}\n`)
      if (!response.headersSent) refuse(response, 500, -32603, 'Internal error')
    })
  })
  await new Promise<void>((resolve, reject) => http.once('error', reject).listen(port, HOST, resolve))
  const address = http.address() as AddressInfo
  allowedHosts = [HOST, 'localhost'].map((name) => `${name}:${address.port}`)
  return `http://${HOST}:${address.port}${PATH}`
}

function refuse(response: ServerResponse, status: number, code: number, message: string): void {
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(JSON.stringify({ jsonrpc: '2.0', id: null, error: { code, message } }))
}
