/** A server of the first SDK over Streamable HTTP that can be restarted at the same port, and what it has been sent. */
import { randomUUID } from 'node:crypto'
import { createServer, type Server as HttpServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import { SubscribeRequestSchema, UnsubscribeRequestSchema } from '@modelcontextprotocol/sdk/types.js'
import type { Test } from 'tap'
import { listenAtOwnPort } from './free-port.js'

type Json = Record<string, unknown>

/** A message that was posted, and how often the server had been started by then. */
export interface Posted {
  boot: number
  session: string | undefined
  message: Json
}

export type Register = (server: McpServer, boot: number) => void

export class RestartingServer {
  readonly posted: Posted[] = []
  /** Servers of the sessions since the last start. */
  readonly servers = new Set<McpServer>()
  readonly #register: Register
  readonly #sessions = new Map<string, StreamableHTTPServerTransport>()
  #http: HttpServer | undefined
  #port = 0
  #boot = 0

  private constructor(register: Register) {
    this.#register = register
  }

  static async start(t: Test, register: Register): Promise<RestartingServer> {
    const server = new RestartingServer(register)
    await server.start()
    t.teardown(() => server.stop())
    return server
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}/mcp`
  }

  /** Parameters of the messages with this method since the last start. */
  got(method: string, boot = this.#boot): unknown[] {
    return this.posted
      .filter((one) => one.boot === boot && one.message['method'] === method)
      .map(({ message }) => message['params'])
  }

  async start(): Promise<void> {
    this.#boot++
    const boot = this.#boot
    this.#http = createServer((request, response) => {
      this.#handle(request, response, boot).catch(() => response.destroy())
    })
    if (this.#port === 0) this.#port = await listenAtOwnPort(this.#http, '127.0.0.1')
    else await new Promise<void>((resolve) => this.#http?.listen(this.#port, '127.0.0.1', resolve))
  }

  /** Forgets all sessions and breaks all connections, as a server that is killed. */
  async stop(): Promise<void> {
    this.#sessions.clear()
    const closed = new Promise((resolve) => this.#http?.close(resolve))
    this.#http?.closeAllConnections()
    await closed
    // Else their requests to clients wait, with a timer of a minute each.
    await Promise.all([...this.servers].map((server) => server.close()))
    this.servers.clear()
  }

  async restart(): Promise<void> {
    await this.stop()
    await this.start()
  }

  /** Forgets all sessions, as when they expire: connections stay. */
  forget(): void {
    this.#sessions.clear()
    this.#boot++
  }

  async #handle(request: IncomingMessage, response: ServerResponse, boot: number): Promise<void> {
    const id = request.headers['mcp-session-id']
    let body: unknown
    if (request.method === 'POST') {
      body = JSON.parse(await text(request))
      this.posted.push({ boot: Math.max(boot, this.#boot), session: id as string | undefined, message: body as Json })
    }
    const session = id === undefined ? await this.#open() : this.#sessions.get(String(id))
    if (session) return session.handleRequest(request, response, body)
    response.writeHead(404, { 'content-type': 'application/json' })
    response.end('{"jsonrpc":"2.0","error":{"code":-32001,"message":"Session not found"},"id":null}')
  }

  async #open(): Promise<StreamableHTTPServerTransport> {
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => {
        this.#sessions.set(id, transport)
      },
    })
    const capabilities = { logging: {}, resources: { subscribe: true } }
    const server = new McpServer({ name: 'restarting', version: '1.0.0' }, { capabilities })
    server.server.setRequestHandler(SubscribeRequestSchema, () => ({}))
    server.server.setRequestHandler(UnsubscribeRequestSchema, () => ({}))
    this.#register(server, this.#boot)
    this.servers.add(server)
    // The SDK's own classes do not fit each other under `exactOptionalPropertyTypes`.
    await server.connect(transport as Transport)
    return transport
  }
}
