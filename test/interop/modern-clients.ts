/** Clients of the modern era: those of the SDK, connected to a server through the bridge. */
import process from 'node:process'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import {
  Client,
  type JSONRPCMessage,
  StreamableHTTPClientTransport,
  type Transport,
  type VersionNegotiationMode,
} from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import type { Test } from 'tap'
import { parseUpstream } from '../../src/config/settings.js'
import { startBridge } from '../support/bridge.js'
import { bridgeCommand, environmentFlags } from '../support/cli.js'
import { PATIENCE } from '../support/eventually.js'
import type { Named } from './legacy-servers.js'

export interface Connected {
  client: Client
  /** Every message that has come in since, as the transport has read it. */
  received: JSONRPCMessage[]
  /** Every line that the bridge has logged since. */
  log: Record<string, unknown>[]
}

/** A bridge that can be connected to. */
interface Front {
  transport: Transport
  log: Record<string, unknown>[]
}

const MODES = { 'pinned client': { pin: '2026-07-28' }, 'client on auto': 'auto' } satisfies Record<
  string,
  VersionNegotiationMode
>
const FRONTS = { HTTP: overHttp, stdio: overStdio }

/** Every client on every front of the bridge. */
export const clients = Object.entries(MODES).flatMap(([who, mode]) =>
  Object.entries(FRONTS).map(([front, reach]) => ({
    /** The beginning of a sentence. */
    name: `a ${who} over ${front}`,
    /** Starts a bridge in front of a server and connects to it. All of that ends with the test. */
    connect: async (t: Test, server: Named) => connect(t, await reach(t, server), mode),
  })),
)

/** Connects a client of the legacy era to a program without any bridge: what it sees is what there is to see. */
export function connectDirectly(t: Test, args: string[]): Promise<Connected> {
  const transport = new StdioClientTransport({ command: process.execPath, args, stderr: 'ignore' })
  return connect(t, { transport, log: [] }, 'legacy')
}

async function connect(t: Test, { transport, log }: Front, mode: VersionNegotiationMode): Promise<Connected> {
  // When its probe takes too long on a pipe, a client on auto connects as a legacy client.
  const versionNegotiation = { mode, probe: { timeoutMs: PATIENCE } }
  const client = new Client({ name: 'interop', version: '1' }, { versionNegotiation })
  t.teardown(() => client.close())
  await client.connect(transport)
  const era = client.getProtocolEra()
  if (era !== (mode === 'legacy' ? 'legacy' : 'modern')) throw new Error(`The client has connected as a ${era} client`)
  const received: JSONRPCMessage[] = []
  const read = transport.onmessage
  transport.onmessage = (message, extra) => {
    received.push(message)
    read?.(message, extra)
  }
  return { client, received, log }
}

async function overHttp(t: Test, { upstream, env }: Named): Promise<Front> {
  const server = { ...parseUpstream(upstream), ...(env && { env }) }
  // Connections that a client keeps in reserve would hold up the end of a test for the usual time.
  const { url, log } = await startBridge(t, server, { timeouts: { drainTimeout: 100 } })
  return { transport: new StreamableHTTPClientTransport(new URL(url)), log }
}

async function overStdio(_t: Test, { upstream, env = {} }: Named): Promise<Front> {
  const transport = new StdioClientTransport({
    ...bridgeCommand('--listen', 'stdio', '--upstream', upstream, ...environmentFlags(env)),
    stderr: 'pipe',
  })
  const log: Front['log'] = []
  createInterface(transport.stderr as Readable).on('line', (line) => {
    if (line.startsWith('{')) log.push(JSON.parse(line) as Record<string, unknown>)
  })
  return { transport, log }
}
