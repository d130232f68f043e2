/**
 * Clients of all kinds that come, list tools, call one, and go, in front of a bridge with servers of several kinds: afterwards there is
 * what there was before. The bridge is a process of its own, which counts what it holds.
 */
import { Client as ModernClient, StreamableHTTPClientTransport as ModernHttp } from '@modelcontextprotocol/client'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import { ResultSchema } from '@modelcontextprotocol/sdk/types.js'
import type { Test } from 'tap'
import { z } from 'zod'
import { type BridgeProcess, startBridgeProcess } from './bridge-process.js'
import { programsOf } from './built-bridge.js'
import { bridgeCommand } from './cli.js'
import { until } from './eventually.js'
import { TRANSLATED } from './lanes.js'
import { LegacyClient } from './legacy-client.js'
import { legacyStdio } from './legacy-stdio.js'
import { call } from './modern.js'
import { modernStdio } from './modern-stdio.js'
import { startFixture } from './process.js'
import { SseClient } from './sse-client.js'

type Json = Record<string, unknown>

/** Where a client goes: an address, and what names of tools begin with there. */
interface Place {
  url: string
  prefix: string
}

/** What the bridge holds. */
export interface Held {
  processes: number
  sockets: number
  files: number
  heap: number
}

/** Connections that are kept for the next request at one time and not at the other: fewer than the clients of a kind. */
export const KEPT = 5

const INFO = { name: 'short', version: '1' }

/** A client of the first SDK; it closes its connections without a word. */
async function sdk1({ prefix }: Place, transport: Transport): Promise<void> {
  const client = new Client(INFO)
  await client.connect(transport)
  await client.request({ method: 'tools/list' }, ResultSchema)
  await client.callTool({ name: `${prefix}echo`, arguments: { x: 1 } })
  if (transport instanceof StreamableHTTPClientTransport) await transport.terminateSession()
  await client.close()
}

async function sdk2({ url, prefix }: Place, options: object = {}): Promise<void> {
  const client = new ModernClient(INFO, options)
  await client.connect(new ModernHttp(new URL(url)))
  await client.request({ method: 'tools/list' }, z.looseObject({}))
  await client.request(
    { method: 'tools/call', params: { name: `${prefix}echo`, arguments: { x: 1 } } },
    z.looseObject({}),
  )
  await client.close()
}

async function raw({ url, prefix }: Place, leave: (client: LegacyClient) => Promise<unknown>): Promise<void> {
  const client = await LegacyClient.open(url)
  await client.request('tools/list')
  await client.call(`${prefix}echo`, { x: 1 })
  await leave(client)
}

/** Kinds of clients, by their names. */
export const KINDS: Readonly<Record<string, (place: Place) => Promise<unknown>>> = {
  'SDK 1 over HTTP': (place) => sdk1(place, new StreamableHTTPClientTransport(new URL(place.url)) as Transport),
  'SDK 1 over HTTP+SSE': (place) => sdk1(place, new SSEClientTransport(new URL('sse', place.url))),
  'SDK 2 as it likes': sdk2,
  'SDK 2 of 2026-07-28': (place) => sdk2(place, { versionNegotiation: { mode: { pin: '2026-07-28' } } }),
  'a client that ends its session': (place) => raw(place, (client) => client.end()),
  'a client whose stream is lost': (place) => raw(place, async (client) => (await client.listen()).leave()),
  'a client that says nothing more': (place) => raw(place, () => Promise.resolve()),
  'a client with a subscription whose stream is lost': (place) =>
    raw(place, async (client) => {
      const stream = await client.listen()
      await client.request('resources/subscribe', { uri: `${place.prefix.replace('__', '+')}test://x` })
      stream.leave()
    }),
  'a client without sessions': async ({ url, prefix }) => {
    await call(url, 'tools/list', {})
    await call(url, 'tools/call', { name: `${prefix}echo`, arguments: { x: 1 } })
  },
  'a client of HTTP+SSE': async ({ url, prefix }) => {
    const client = await SseClient.open(url, '2024-11-05')
    await client.request('tools/call', { name: `${prefix}echo`, arguments: { x: 1 } } as Json)
    client.stream.leave()
  },
}

/** Programs that a client on stdio leaves: its bridge, and the program behind that. */
export async function visitOnStdio(t: Test): Promise<number[]> {
  const program = legacyStdio(t)
  const { command, args } = program.server
  const transport = new StdioClientTransport({
    ...bridgeCommand('--listen', 'stdio', '--', command, ...args),
    stderr: 'ignore',
  })
  const client = new Client(INFO)
  await client.connect(transport)
  const bridge = transport.pid ?? 0
  await client.callTool({ name: 'echo', arguments: { x: 1 } })
  await client.close()
  return [bridge, ...program.pids().map(Number)]
}

export function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

export interface Visited {
  places: readonly Place[]
  bridge: BridgeProcess
  /** What the bridge holds when nothing is needed any more; waits for connections to end, down to what it was `before`. */
  held(before?: Held): Promise<Held>
}

/** Starts a bridge in front of servers of each kind, alone, behind a policy, and in a group. */
export async function startVisited(t: Test): Promise<Visited> {
  const http = await startFixture(t, 'legacy-http.mjs', '{}')
  const bridge = await startBridgeProcess(t, {
    listen: 'http://127.0.0.1:0/mcp',
    mcpServers: {
      direct: legacyStdio(t).server,
      translated: { ...legacyStdio(t).server, ...TRANSLATED },
      modern: modernStdio(t).server,
      http: { url: http.url },
      lazy: { ...legacyStdio(t).server, start: 'lazy' },
    },
    limits: { startsPerMinute: 100_000 },
    // Long enough for a client that is slow, short enough to be waited for.
    timeouts: { idle: 3_000, clientIdle: 3_000, clientGone: 3_000, reuse: 500, keepAlive: 100, drainTimeout: 100 },
  })
  const place = (name: string, prefix = '') => ({ url: String(bridge.urls[name]), prefix })
  const places = [...['direct', 'translated', 'modern', 'http'].map((name) => place(name))]
  const { href } = new URL('/mcp', bridge.urls['direct'])
  places.push({ url: href, prefix: 'translated__' }, { url: href, prefix: 'lazy__' })
  const processes = () => programsOf(bridge.pid).length
  const held = async (before?: Held) => {
    await until(() => processes() === 0, 'the end of all programs').catch(async (error: Error) => {
      error.message += `: ${JSON.stringify({ programs: programsOf(bridge.pid), busy: await bridge.busy() })}`
      throw error
    })
    let now = await bridge.memory()
    const isOver = async () => {
      now = await bridge.memory()
      return !before || (now.sockets <= before.sockets + KEPT && now.files <= before.files + KEPT)
    }
    // What is more than before is seen by the test.
    await until(isOver, 'the end of connections').catch(() => {})
    return { ...now, processes: processes() }
  }
  return { places, bridge, held }
}
