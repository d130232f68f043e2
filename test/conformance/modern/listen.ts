/** Serves requests of the web, which is what the SDK answers, with what Node.js has. */
import { once } from 'node:events'
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import {
  hostHeaderValidationResponse,
  localhostAllowedHostnames,
  localhostAllowedOrigins,
  originValidationResponse,
} from '@modelcontextprotocol/server'

const HOST = '127.0.0.1'
const PATH = '/mcp'

/** Has the handler answer until the process ends; 0 stands for any free port. Resolves to the address of the endpoint. */
export async function listen(handler: { fetch(request: Request): Promise<Response> }, port: number): Promise<string> {
  async function answer(request: Request): Promise<Response> {
    if (new URL(request.url).pathname !== PATH) return new Response(null, { status: 404 })
    const refused =
      hostHeaderValidationResponse(request, localhostAllowedHostnames()) ??
      originValidationResponse(request, localhostAllowedOrigins())
    if (refused) return refused
    if (request.method !== 'POST') return new Response(null, { status: 405, headers: { allow: 'POST' } })
    return handler.fetch(request)
  }

  const http = createHttpServer((incoming, response) => {
    answer(requestOf(incoming, response))
      .then((answered) => write(answered, response))
      .catch((error: unknown) => {
        // Whoever has gone away is not to be answered.
        if (!response.destroyed) report(error)
        response.destroy()
      })
  })
  http.listen(port, HOST)
  await once(http, 'listening')
  return `http://${HOST}:${(http.address() as AddressInfo).port}${PATH}`
}

function requestOf(incoming: IncomingMessage, response: ServerResponse): Request {
  const headers = new Headers()
  for (const [name, values = []] of Object.entries(incoming.headersDistinct)) {
    for (const value of values) headers.append(name, value)
  }
  const gone = new AbortController()
  response.once('close', () => gone.abort())
  const { method = 'GET', url = '/' } = incoming
  const hasBody = method !== 'GET' && method !== 'HEAD'
  return new Request(new URL(url, `http://${HOST}`), {
    method,
    headers,
    signal: gone.signal,
    ...(hasBody && { body: Readable.toWeb(incoming) as ReadableStream, duplex: 'half' }),
  })
}

/** Writes an answer piece by piece, so that events go out when they happen. */
async function write(answered: Response, response: ServerResponse): Promise<void> {
  response.writeHead(answered.status, Object.fromEntries(answered.headers))
  response.flushHeaders()
  const reader = answered.body?.getReader()
  response.once('close', () => {
    reader?.cancel().catch(() => {})
  })
  for (let part = await reader?.read(); part && !part.done; part = await reader?.read()) {
    if (!response.write(part.value)) await Promise.race([once(response, 'drain'), once(response, 'close')])
  }
  response.end()
}

export function report(error: unknown): void {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
}
