/** Servers and clients of the SDKs in the very process of the bridge, connected by transports in memory. */
import { Client as ModernClient, InMemoryTransport as ModernTransport } from '@modelcontextprotocol/client'
import { Client as LegacyClient } from '@modelcontextprotocol/sdk/client/index.js'
import { InMemoryTransport as LegacyTransport } from '@modelcontextprotocol/sdk/inMemory.js'
import { McpServer as LegacyServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { McpServer as ModernServer } from '@modelcontextprotocol/server'
import { serveStdio } from '@modelcontextprotocol/server/stdio'
import t from 'tap'
import { createBridge } from '../../src/app/embed/create.js'
import type { SdkTransport } from '../../src/app/embed/options.js'

const INFO = { name: 'in memory', version: '1.0.0' }

/** A server of SDK v1, with a tool that says who is there. */
function legacyServer(who: string): LegacyServer {
  const server = new LegacyServer(INFO)
  server.registerTool('who', {}, () => ({ content: [{ type: 'text', text: who }] }))
  return server
}

/** The same of SDK v2. */
function modernServer(who: string): ModernServer {
  const server = new ModernServer(INFO, { capabilities: { tools: {} } })
  server.registerTool('who', {}, () => ({ content: [{ type: 'text', text: who }] }))
  return server
}

const legacy = (who: string) => ({ serve: (transport: SdkTransport) => legacyServer(who).connect(transport) })
const modern = (who: string) => ({
  serve: (transport: SdkTransport) => serveStdio(() => modernServer(who), { transport, legacy: 'reject' }),
})

async function modernClient(): Promise<{ client: ModernClient; transport: SdkTransport; connect(): Promise<void> }> {
  const [near, far] = ModernTransport.createLinkedPair()
  const client = new ModernClient(INFO, { versionNegotiation: { mode: { pin: '2026-07-28' } } })
  return { client, transport: far, connect: () => client.connect(near) }
}

async function legacyClient(): Promise<{ client: LegacyClient; transport: SdkTransport; connect(): Promise<void> }> {
  const [near, far] = LegacyTransport.createLinkedPair()
  const client = new LegacyClient(INFO)
  return { client, transport: far, connect: () => client.connect(near) }
}

t.test('a client of SDK v2 uses a server of SDK v1 in the same process', async (t) => {
  const bridge = await createBridge({ mcpServers: { it: legacy('v1') } })
  t.teardown(() => bridge.close())
  const { client, transport, connect } = await modernClient()
  await bridge.connect(transport)
  await connect()
  t.equal(client.getProtocolEra(), 'modern')
  const { tools } = await client.listTools()
  t.same(
    tools.map(({ name }) => name),
    ['who'],
  )
  t.match(await client.callTool({ name: 'who', arguments: {} }), { content: [{ text: 'v1' }] })
})

t.test('a client of SDK v1 uses a server of SDK v2 in the same process', async (t) => {
  const bridge = await createBridge({ mcpServers: { it: modern('v2') } })
  t.teardown(() => bridge.close())
  const { client, transport, connect } = await legacyClient()
  await bridge.connect(transport)
  await connect()
  t.match(await client.callTool({ name: 'who', arguments: {} }), { content: [{ text: 'v2' }] })
})
