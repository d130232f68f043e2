/** HTTP+SSE of 2024-11-05: one server and one stream for each session. */
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { SSEServerTransport } from '@modelcontextprotocol/sdk/server/sse.js'
import { Changes } from '../shared/changes.js'
import { createServer } from './server.js'

const HOST = '127.0.0.1'
const STREAM = '/sse'
const MESSAGES = '/message'

/** Listens until the process ends; 0 stands for any free port. Resolves to the address of the stream. */
export async function serveSse(port: number): Promise<string> {
  const changes = new Changes()
  const sessions = new Map<string, SSEServerTransport>()

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://any')
    if (request.method === 'GET' && pathname === STREAM) {
      const transport = new SSEServerTransport(MESSAGES, response)
      sessions.set(transport.sessionId, transport)
      transport.onclose = () => sessions.delete(transport.sessionId)
      await createServer(changes).connect(transport)
      return
    }
    const session = sessions.get(searchParams.get('sessionId') ?? '')
    if (request.method === 'POST' && pathname === MESSAGES && session)
      return session.handlePostMessage(request, response)
    response.writeHead(pathname === STREAM ? 405 : 404).end()
  }

  const http = createHttpServer((request, response) => {
    handle(request, response).catch((error: unknown) => {
      process.stderr.write(`${String(error)}\n`)
      if (!response.headersSent) response.writeHead(500).end()
    })
  })
  await new Promise<void>((resolve, reject) => http.once('error', reject).listen(port, HOST, resolve))
  return `http://${HOST}:${(http.address() as AddressInfo).port}${STREAM}`
}
