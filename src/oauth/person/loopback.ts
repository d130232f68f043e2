/**
 * Where the browser comes back to: a listener on this machine alone. Its port is also what keeps several processes apart that
 * want the same sign-in: one of them has it, and tells the others that it is a sibling.
 */
import { createServer, get, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { PAGE_HEADERS, type PageName, pages } from './pages.js'

export interface ListenerOptions {
  port: number
  /** Of the redirect URI. */
  path: string
  /** Names the account, to siblings and to nobody else. */
  name: string
  /** What the browser brought back. Resolves to what it is shown. */
  onAnswer(params: URLSearchParams): Promise<PageName>
}

export interface Listener {
  readonly port: number
  close(): Promise<void>
}

/** Who has a port. */
export type Holder = 'sibling' | 'stranger' | 'nobody'

const SIBLING_PATH = '/.well-known/mcp-bridge'
const HOSTS = ['127.0.0.1', '::1'] as const
/** Milliseconds that a sibling has to say who it is: it may be starting, on a machine that is busy. */
const ASK_TIMEOUT = 3_000
/** Milliseconds for what is being answered when a listener closes. */
const LAST_ANSWERS = 1_000
const NOT_HERE: ReadonlySet<string> = new Set(['EADDRNOTAVAIL', 'EAFNOSUPPORT'])
const GONE: ReadonlySet<string> = new Set(['ECONNREFUSED', 'ECONNRESET', 'ENETUNREACH', ...NOT_HERE])

/** Listens on this machine, by both of its addresses; undefined where somebody else has the port. */
export async function listen(options: ListenerOptions): Promise<Listener | undefined> {
  const servers: Server[] = []
  let { port } = options
  try {
    for (const host of HOSTS) {
      const server = createServer({ maxHeaderSize: 16 * 1024, requestTimeout: 10_000 }, (request, response) =>
        answer(request, response, { ...options, port }),
      )
      server.maxConnections = 64
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

/** Gives the port; undefined where this machine has no such address. */
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

/** Asks whoever has a port on this machine whether it is a sibling. */
export async function holderOf(port: number, name: string): Promise<Holder> {
  for (const host of HOSTS) {
    const holder = await ask(host, port, name)
    if (holder !== 'nobody') return holder
  }
  return 'nobody'
}

function ask(host: string, port: number, name: string): Promise<Holder> {
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

function answer(request: IncomingMessage, response: ServerResponse, options: ListenerOptions): void {
  const { method, url = '', headers } = request
  const { port, path, name, onAnswer } = options
  // Nobody comes here by another name: what a web page has been made to ask for is not answered.
  const hosts = [`localhost:${port}`, `127.0.0.1:${port}`, `[::1]:${port}`]
  const [asked = '', query = ''] = split(url)
  if (!hosts.includes(headers.host ?? '')) return end(response, 421)
  if (asked !== path && asked !== SIBLING_PATH) return end(response, 404)
  if (method !== 'GET') return end(response, 405)
  if (asked === SIBLING_PATH) return end(response, 200, name)
  onAnswer(new URLSearchParams(query)).then(
    (shown) => show(response, shown),
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

/** What is being answered is answered still. */
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
