/** Servers on hosts of the test's own, to be found over TLS, and what finds them. */
import { readFileSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { join } from 'node:path'
import { env } from 'node:process'
import { McpServer as LegacyServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server'
import { pino } from 'pino'
import type { Test } from 'tap'
import { Bridge } from '../../src/app/bridge.js'
import type { BridgeContext } from '../../src/app/context.js'
import { discoveryHost } from '../../src/app/discovery-host.js'
import { parseListen } from '../../src/config/settings.js'
import { Discovery, type DiscoveryOptions } from '../../src/services/discovery/discovery.js'
import { FoundServers } from '../../src/services/discovery/found-servers.js'
import { Metrics } from '../../src/services/telemetry/metrics.js'
import { settingsOf } from './bridge.js'
import { temporaryFolder } from './folder.js'
import { type Ca, makeCa, serveTls, type TlsServer } from './tls.js'
import { DAY } from './trust.js'

export const HOST = 'mcp.acme.test'

/** What a server says of itself and has. Tests change it while it runs. */
export interface Offered {
  name: string
  version: string
  tools: { name: string; description?: string; annotations?: { readOnlyHint?: boolean; destructiveHint?: boolean } }[]
  /** Names of the tools that have been called. */
  called: string[]
}

export function offers(changes: Partial<Offered> = {}): Offered {
  const tools = [{ name: 'read', description: 'Reads', annotations: { readOnlyHint: true } }, { name: 'delete_all' }]
  return { name: 'weather', version: '1.2.0', tools, called: [], ...changes }
}

type Answer = (request: IncomingMessage, response: ServerResponse) => void

/** A server of 2026-07-28, by the SDK for it. */
export function modernServer(offered: Offered): Answer {
  const handler = createMcpHandler(
    () => {
      const { name, version, tools, called } = offered
      const server = new McpServer({ name, version })
      for (const { name, ...about } of tools)
        server.registerTool(name, about, () => {
          called.push(name)
          return { content: [{ type: 'text' as const, text: `${name} done` }] }
        })
      return server
    },
    { legacy: 'reject' },
  )
  return (incoming, response) => {
    answer(incoming, response).catch(() => response.destroy())
  }
  async function answer(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = '', headers } = incoming
    const chunks = (await incoming.toArray()) as Buffer[]
    const told = Object.entries(headers).map(([name, value]) => [name, String(value)] as [string, string])
    const body = method === 'POST' ? Buffer.concat(chunks) : null
    const answered = await handler.fetch(new Request(`https://${HOST}/mcp`, { method, headers: told, body }))
    response.writeHead(answered.status, Object.fromEntries(answered.headers))
    for await (const piece of answered.body ?? []) response.write(piece)
    response.end()
  }
}

/** A server of the revisions before, by the SDK for these, without sessions. */
export function legacyServer(offered: Offered): Answer {
  return (request, response) => {
    const { name, version, tools, called } = offered
    const server = new LegacyServer({ name, version })
    for (const { name, ...about } of tools)
      server.registerTool(name, about, () => {
        called.push(name)
        return { content: [{ type: 'text', text: `${name} done` }] }
      })
    const transport = new StreamableHTTPServerTransport({})
    server
      .connect(transport as never)
      .then(() => transport.handleRequest(request, response))
      .catch(() => response.destroy())
  }
}

/** A manifest for a server at this address, that holds now. */
export function manifestFor(url: string, changes: object = {}, server: object = {}): Record<string, unknown> {
  return {
    manifest: 1,
    publisher: 'acme.test',
    serial: 7,
    issued: new Date(Date.now() - DAY).toISOString(),
    expires: new Date(Date.now() + DAY).toISOString(),
    servers: [
      {
        name: 'weather',
        version: '1.2.0',
        transports: [{ type: 'streamable-http', url }],
        protocolRevisions: ['2026-07-28', '2025-11-25'],
        ...server,
      },
    ],
    ...changes,
  }
}

/** Options of discovery and of the bridge that serves what it finds. */
export interface FoundWorldOptions extends Omit<DiscoveryOptions, 'host'> {
  context: BridgeContext
}

export interface World {
  ca: Ca
  /** What answers, by path; documents as they are, or as JSON. */
  pages: Record<string, Answer | string | Uint8Array | object>
  server: TlsServer
  origin: string
  url: string
  /** Where hosts are, by the name server of the test. */
  resolve: { current: (host: string) => readonly string[] }
  options(settings?: object, more?: Partial<FoundWorldOptions>): FoundWorldOptions
  discovery(settings?: object, more?: Partial<FoundWorldOptions>): Discovery
}

/** One host with TLS, at any name. */
export async function makeWorld(t: Test, names: readonly string[] = [HOST]): Promise<World> {
  const ca = await makeCa()
  const pages: World['pages'] = {}
  const server = await serveTls(t, await ca.serverOptions(names), (request, response) => {
    const page = pages[new URL(request.url ?? '', `https://${HOST}`).pathname]
    if (page === undefined) response.writeHead(404).end()
    else if (typeof page === 'function') (page as Answer)(request, response)
    else response.end(typeof page === 'string' || page instanceof Uint8Array ? page : JSON.stringify(page))
  })
  const resolve: World['resolve'] = { current: () => ['127.0.0.1'] }
  const trustStore = join(temporaryFolder(t), 'trust.json')
  const options = (settings: object = {}, more: Partial<FoundWorldOptions> = {}): FoundWorldOptions => ({
    settings: settingsOf({
      discover: [`https://${names[0]}:${server.port}`],
      discoverAllow: ['127.0.0.1'],
      trustStore,
      ...settings,
    }),
    context: { log: pino({ level: 'silent' }), version: '0.0.0', env: {} },
    sources: { env, read: (path) => readFileSync(path, 'utf8') },
    network: { ca: ca.cert, resolve: async (host) => resolve.current(host) },
    timing: { sleep: async () => {} },
    ...more,
  })
  const origin = `https://${names[0]}:${server.port}`
  const discovery = (settings?: object, more?: Partial<FoundWorldOptions>) => {
    const { context, ...all } = options(settings, more)
    return new Discovery({ ...all, host: discoveryHost(context) })
  }
  return { ca, pages, server, origin, url: `${origin}/mcp`, resolve, options, discovery }
}

/** A bridge that serves what it finds. */
export async function serveFound(t: Test, options: FoundWorldOptions) {
  const log: Record<string, unknown>[] = []
  const metrics = new Metrics({ version: '0' })
  const sink = { write: (line: string) => void log.push(JSON.parse(line) as Record<string, unknown>) }
  const context = { ...options.context, log: pino({ level: 'debug' }, sink), metrics }
  const found = new FoundServers({ ...options, host: discoveryHost(context), every: 3_600_000 })
  t.teardown(() => found.close())
  await found.look()
  const bridge = new Bridge(found.with(options.settings), { ...context, lead: found.lead })
  t.teardown(() => bridge.close(true))
  let reloading: Promise<unknown> = Promise.resolve()
  const listen = parseListen('http://127.0.0.1:0/mcp')
  const urls = await bridge.listen(listen as never)
  const origin = [...urls.values()][0] === undefined ? '' : new URL([...urls.values()][0] as string).origin
  found.follow(() => {
    reloading = bridge.reload(found.with(options.settings))
  })
  /** Looks again, and waits for what follows from it. */
  const look = async () => {
    await found.look()
    await reloading
  }
  return { bridge, found, log, metrics, origin, urls, look, url: (name: string) => `${origin}/${name}/mcp` }
}
