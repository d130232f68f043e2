/**
 * The listener to which browsers are redirected, on this machine only. Its port is also a mutex between processes that
 * want the same sign-in: the one that has it tells the others that it is a sibling.
 */
import { createServer, get, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { Connections } from '../../../base/net/connections.js'
import { PAGE_HEADERS, type PageName, pages } from './pages.js'

/** What to listen for. */
export interface LoopbackOptions {
  port: number
  /** The path of the redirect URI. */
  path: string
  /** Identifies the account to siblings only. */
  name: string
  /** Handles a redirect. Resolves to the page for the browser. */
  onAnswer(params: URLSearchParams): Promise<PageName>
  /** Where the browser goes after a sign-in; by default it gets a page. */
  successUrl?: string | undefined
}

/** A running listener. */
export interface LoopbackListener {
  readonly port: number
  close(): Promise<void>
}

/** The program that has a port: another bridge with the same account, another program, or none. */
export type PortHolder = 'sibling' | 'stranger' | 'nobody'

/** Most connections of browsers and siblings. */
const MAX_LOOPBACK_CONNECTIONS = 64
const SIBLING_PATH = '/.well-known/mcp-bridge'
const HOSTS = ['127.0.0.1', '::1'] as const
/** Milliseconds for a sibling to answer; it may be starting on a busy machine. */
const ASK_TIMEOUT = 3_000
/** Milliseconds for pending answers when a listener closes. */
const LAST_ANSWERS = 1_000
const NOT_HERE: ReadonlySet<string> = new Set(['EADDRNOTAVAIL', 'EAFNOSUPPORT'])
const GONE: ReadonlySet<string> = new Set(['ECONNREFUSED', 'ECONNRESET', 'ENETUNREACH', ...NOT_HERE])

/** Listens on both loopback addresses; undefined if another program has the port. */
export async function listen(options: LoopbackOptions): Promise<LoopbackListener | undefined> {
  const servers: Server[] = []
  const connections = new Connections(MAX_LOOPBACK_CONNECTIONS)
  let { port } = options
  try {
    for (const host of HOSTS) {
      const server = createServer({ maxHeaderSize: 16 * 1024, requestTimeout: 10_000 }, (request, response) => {
        if (connections.requestBegins(request.socket, response)) answer(request, response, { ...options, port })
        else end(response, 503, 'Too many connections')
      })
      connections.watch(server)
      const bound = await bind(server, host, port)
      if (bound === undefined && servers.length === 0) throw new PortTaken()
      if (bound === undefined) continue
      port = bound
      servers.push(server)
    }
  } catch (error) {
    await closeAll(servers)
    if (error instanceof PortTaken) return undefined
    throw error
  }
  return { port, close: () => closeAll(servers) }
}

class PortTaken extends Error {}

/** Resolves to the port; undefined if this machine does not have the address. */
function bind(server: Server, host: string, port: number): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      if (NOT_HERE.has(error.code ?? '')) resolve(undefined)
      else reject(error.code === 'EADDRINUSE' || error.code === 'EACCES' ? new PortTaken() : error)
    })
    server.listen({ host, port, exclusive: true }, () => {
      const address = server.address()
      resolve(typeof address === 'object' ? address?.port : undefined)
    })
  })
}

/** Asks the program at a port of this machine whether it is a sibling. */
export async function holderOf(port: number, name: string): Promise<PortHolder> {
  for (const host of HOSTS) {
    const holder = await ask(host, port, name)
    if (holder !== 'nobody') return holder
  }
  return 'nobody'
}

function ask(host: string, port: number, name: string): Promise<PortHolder> {
  return new Promise((resolve) => {
    const headers = { host: `localhost:${port}` }
    const request = get({ host, port, path: SIBLING_PATH, timeout: ASK_TIMEOUT, headers, agent: false }, (response) => {
      let said = ''
      response.setEncoding('utf8').on('data', (chunk: string) => {
        said += chunk
        if (said.length > 256) request.destroy()
      })
      response.on('end', () => resolve(response.statusCode === 200 && said === name ? 'sibling' : 'stranger'))
      response.on('error', () => resolve('stranger'))
    })
    request.on('timeout', () => request.destroy())
    request.on('error', (error: NodeJS.ErrnoException) => resolve(GONE.has(error.code ?? '') ? 'nobody' : 'stranger'))
  })
}

function answer(request: IncomingMessage, response: ServerResponse, options: LoopbackOptions): void {
  const { method, url = '', headers } = request
  const { port, path, name, onAnswer, successUrl } = options
  // Requests with another Host are refused: a web page may have caused them by DNS rebinding.
  const hosts = [`localhost:${port}`, `127.0.0.1:${port}`, `[::1]:${port}`]
  const [asked, query] = split(url)
  if (!hosts.includes(headers.host ?? '')) return end(response, 421)
  if (asked !== path && asked !== SIBLING_PATH) return end(response, 404)
  if (method !== 'GET') return end(response, 405)
  if (asked === SIBLING_PATH) return end(response, 200, name)
  onAnswer(new URLSearchParams(query)).then(
    (shown) => {
      if (shown === 'signedIn' && successUrl !== undefined)
        response.writeHead(303, { ...PAGE_HEADERS, location: successUrl }).end()
      else show(response, shown)
    },
    () => show(response, 'failed'),
  )
}

function split(url: string): [string, string] {
  const at = url.indexOf('?')
  return at < 0 ? [url, ''] : [url.slice(0, at), url.slice(at + 1)]
}

function show(response: ServerResponse, shown: PageName): void {
  const { status, html } = pages[shown]
  response.writeHead(status, PAGE_HEADERS).end(html)
}

function end(response: ServerResponse, status: number, text = ''): void {
  response.writeHead(status, { ...PAGE_HEADERS, 'content-type': 'text/plain' }).end(text)
}

/** Closes after pending answers are sent. */
async function closeAll(servers: readonly Server[]): Promise<void> {
  await Promise.all(
    servers.map(
      (server) =>
        new Promise<void>((resolve) => {
          const late = setTimeout(() => server.closeAllConnections(), LAST_ANSWERS)
          server.close(() => {
            clearTimeout(late)
            resolve()
          })
          server.closeIdleConnections()
        }),
    ),
  )
}
