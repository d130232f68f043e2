/** A forward proxy as companies have them: CONNECT, and requests with a whole address. */
import { createServer, request as forward, type IncomingMessage, type Server } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { type AddressInfo, connect, type Socket } from 'node:net'
import type { Scope } from './scope.js'

export interface ProxyOptions {
  /** Credentials that a request needs, as `user:password`. */
  credentials?: string
  /** The media type of its answer 407, which repeats what it was sent. */
  asks?: string
  /** The status with which every CONNECT is refused. */
  refuse?: number
  /** Shown to clients: then the proxy itself is reached over TLS. */
  tls?: { key: string; cert: string }
  /** Where hosts are, by the name server of the proxy; by default on the loopback, whatever their name. */
  resolve?: (host: string) => string
  /** Where targets of CONNECT are on the loopback, by `host:port`. */
  ports?: Readonly<Record<string, number>>
}

export class ForwardProxy {
  /** Targets of CONNECT, as `host:port`. */
  readonly tunnels: string[] = []
  /** Addresses of requests that were passed on. */
  readonly passed: string[] = []
  /** All requests as they came. */
  readonly received: IncomingMessage[] = []
  readonly #server: Server
  readonly #options: ProxyOptions

  private constructor(options: ProxyOptions) {
    this.#options = options
    const { tls } = options
    this.#server = tls ? createTlsServer(tls) : createServer()
    this.#server.on('tlsClientError', () => {})
    this.#server.on('connect', (request, socket: Socket, head) => this.#connect(request, socket, head))
    this.#server.on('request', (request, response) => {
      this.received.push(request)
      if (!this.#knows(request)) {
        const { 'proxy-authorization': shown = '' } = request.headers
        const given = Buffer.from(shown.replace('Basic ', ''), 'base64').toString()
        const headers = {
          'content-type': this.#options.asks ?? 'text/plain',
          'proxy-authenticate': `Basic realm="${given}"`,
        }
        const text = `${shown} is ${given}, which is wrong`
        const isJson = headers['content-type'] === 'application/json'
        const error = { jsonrpc: '2.0', id: 1, error: { code: -32000, message: text } }
        return response.writeHead(407, text, headers).end(isJson ? JSON.stringify(error) : text)
      }
      const target = new URL(request.url ?? '')
      this.passed.push(target.href)
      const { 'proxy-authorization': _own, ...headers } = request.headers
      const { method } = request
      const path = target.pathname + target.search
      const passed = forward(
        { host: this.#resolve(target.hostname), port: target.port, path, method, headers },
        (answer) => {
          response.writeHead(answer.statusCode ?? 502, answer.headers)
          response.flushHeaders()
          answer.pipe(response)
        },
      )
      passed.on('error', () => response.writeHead(502).end())
      request.pipe(passed)
    })
  }

  static async start(scope: Scope, options: ProxyOptions = {}): Promise<ForwardProxy> {
    const proxy = new ForwardProxy(options)
    const open = new Set<Socket>()
    proxy.#server.on('connection', (socket) => {
      open.add(socket)
      socket.on('error', () => {}).on('close', () => open.delete(socket))
    })
    await new Promise<void>((resolve) => proxy.#server.listen(0, '127.0.0.1', resolve))
    scope.teardown(() => {
      for (const socket of open) socket.destroy()
      proxy.#server.close()
    })
    return proxy
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  /** The address for the environment, with credentials if it needs them. */
  get url(): string {
    const { credentials, tls } = this.#options
    return `${tls ? 'https' : 'http'}://${credentials === undefined ? '' : `${credentials}@`}127.0.0.1:${this.port}`
  }

  #resolve(host: string): string {
    return this.#options.resolve?.(host) ?? '127.0.0.1'
  }

  #knows({ headers }: IncomingMessage): boolean {
    const { credentials } = this.#options
    if (credentials === undefined) return true
    return headers['proxy-authorization'] === `Basic ${Buffer.from(decodeURIComponent(credentials)).toString('base64')}`
  }

  #connect(request: IncomingMessage, socket: Socket, head: Buffer): void {
    this.received.push(request)
    const { url = '' } = request
    socket.on('error', () => {})
    const status = this.#knows(request) ? this.#options.refuse : 407
    if (status !== undefined) return void socket.end(`HTTP/1.1 ${status} Refused\r\ncontent-length: 2\r\n\r\nNo`)
    this.tunnels.push(url)
    const { hostname, port } = new URL(`tcp://${url}`)
    const there = connect(this.#options.ports?.[url] ?? Number(port), this.#resolve(hostname), () => {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n')
      there.write(head)
      there.pipe(socket).pipe(there)
    })
    there.on('error', () => socket.end('HTTP/1.1 502 Bad gateway\r\n\r\n'))
    there.on('close', () => socket.destroy())
    socket.on('close', () => there.destroy())
  }
}
