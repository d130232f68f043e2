import type { Client } from '@modelcontextprotocol/sdk/client/index.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import type { JSONRPCMessage } from '@modelcontextprotocol/sdk/types.js'
import type { Test } from 'tap'
import { parseUpstream } from '../../src/config/settings.js'
import { startBridge } from '../support/bridge.js'
import { bridgeCommand, environmentFlags } from '../support/cli.js'
import type { Named } from './legacy-servers.js'

const FRONTS = ['stdio', 'HTTP+SSE', 'Streamable HTTP'] as const
type Front = (typeof FRONTS)[number]

/** A bridge in front of a server, for clients on every front. */
export interface Bridged {
  server: Named
  /** Where it listens. On stdio each client has a bridge of its own. */
  url: URL
}

export interface Connected {
  client: Client
  /** Every message that has come in, from the answer to `initialize` on, as the transport has read it. */
  received: JSONRPCMessage[]
  /** What was negotiated. */
  revision: unknown
}

const EVERYWHERE: readonly Front[] = FRONTS
/** The last version that spoke each revision; of the first revision one more, from before there was Streamable HTTP. */
const SDKS = [
  { sdk: 'sdk-1.4', revision: '2024-11-05', fronts: ['stdio', 'HTTP+SSE'] as readonly Front[] },
  { sdk: 'sdk-1.10', revision: '2024-11-05', fronts: EVERYWHERE },
  { sdk: 'sdk-1.12', revision: '2025-03-26', fronts: EVERYWHERE },
  { sdk: 'sdk-1.22', revision: '2025-06-18', fronts: EVERYWHERE },
  { sdk: '@modelcontextprotocol/sdk', revision: '2025-11-25', fronts: EVERYWHERE },
] as const

/** Every client on every front that it knows. */
export const clients = SDKS.flatMap(({ sdk, revision, fronts }) =>
  fronts.map((front) => ({
    /** The beginning of a sentence. */
    name: `the client of ${sdk}, which speaks ${revision}, over ${front}`,
    revision,
    /** Connects to a bridge, and starts it before if it is on stdio. All of that ends with the test. */
    connect: (t: Test, bridged: Bridged) => connect(t, sdk, front, bridged),
  })),
)

/** Starts a bridge in front of a server, for the clients that do not start one themselves. */
export async function bridge(t: Test, server: Named): Promise<Bridged> {
  const { upstream, env } = server
  // Connections that a client keeps in reserve would hold up the end of a test for the usual time.
  const settings = { timeouts: { drainTimeout: 100 }, limits: { processes: clients.length } }
  const { url } = await startBridge(t, { ...parseUpstream(upstream), ...(env && { env }) }, settings)
  return { server, url: new URL(url) }
}

async function connect(t: Test, sdk: string, front: Front, bridged: Bridged): Promise<Connected> {
  const types = await load<typeof import('@modelcontextprotocol/sdk/types.js')>(sdk, 'types.js')
  const { Client } = await load<typeof import('@modelcontextprotocol/sdk/client/index.js')>(sdk, 'client/index.js')
  const client = new Client({ name: sdk, version: '1' }, { capabilities: { sampling: {} } })
  client.setRequestHandler(types.CreateMessageRequestSchema, () => ({
    role: 'assistant',
    model: 'none',
    content: { type: 'text', text: `I am ${sdk}.` },
  }))
  t.teardown(() => client.close())
  const transport = await reach[front](sdk, bridged)
  const received = listenIn(transport)
  await client.connect(transport)
  const [opening] = received
  return { client, received, revision: opening && 'result' in opening && opening.result['protocolVersion'] }
}

const reach: Readonly<Record<Front, (sdk: string, bridged: Bridged) => Promise<Transport>>> = {
  async stdio(sdk, { server: { upstream, env = {} } }) {
    type Stdio = typeof import('@modelcontextprotocol/sdk/client/stdio.js')
    const { StdioClientTransport } = await load<Stdio>(sdk, 'client/stdio.js')
    const bridge = bridgeCommand('--listen', 'stdio', '--upstream', upstream, ...environmentFlags(env))
    return new StdioClientTransport({ ...bridge, stderr: 'ignore' })
  },
  async 'HTTP+SSE'(sdk, { url }) {
    type Sse = typeof import('@modelcontextprotocol/sdk/client/sse.js')
    const { SSEClientTransport } = await load<Sse>(sdk, 'client/sse.js')
    return new SSEClientTransport(new URL('sse', url))
  },
  async 'Streamable HTTP'(sdk, { url }) {
    type StreamableHttp = typeof import('@modelcontextprotocol/sdk/client/streamableHttp.js')
    const { StreamableHTTPClientTransport } = await load<StreamableHttp>(sdk, 'client/streamableHttp.js')
    // The SDK's own classes do not fit each other under `exactOptionalPropertyTypes`.
    return new StreamableHTTPClientTransport(url) as Transport
  },
}

/** A module of a version of the SDK. What is used of it here has the same types in all of them. */
async function load<Module>(sdk: string, path: string): Promise<Module> {
  return (await import(`${sdk}/${path}`)) as Module
}

/** Keeps what a transport reads before it hands it to the client, who has yet to be connected. */
function listenIn(transport: Transport): JSONRPCMessage[] {
  const received: JSONRPCMessage[] = []
  let read: Transport['onmessage']
  const both: Transport['onmessage'] = (message, extra) => {
    received.push(message)
    read?.(message, extra)
  }
  Object.defineProperty(transport, 'onmessage', {
    get: () => read && both,
    set: (given: Transport['onmessage']) => {
      read = given
    },
  })
  return received
}
