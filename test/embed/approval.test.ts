/** A person approves calls in a bridge that is part of a program: clients and servers of the SDKs, connected by transports in memory. */
import { Client as ModernClient, InMemoryTransport as ModernTransport } from '@modelcontextprotocol/client'
import { Client as LegacyClient } from '@modelcontextprotocol/sdk/client/index.js'
import { InMemoryTransport as LegacyTransport } from '@modelcontextprotocol/sdk/inMemory.js'
import { McpServer as LegacyServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js'
import { McpServer as ModernServer } from '@modelcontextprotocol/server'
import { serveStdio } from '@modelcontextprotocol/server/stdio'
import t from 'tap'
import { createBridge } from '../../src/embed/create.js'
import type { SdkTransport } from '../../src/embed/options.js'

const INFO = { name: 'in memory', version: '1.0.0' }
const OPTIONS = { capabilities: { elicitation: { form: {} } } }

/** What the person answers next, and what was asked. */
class Person {
  answer: string | undefined
  readonly asked: string[] = []

  readonly ask = ({ params }: { params: { message?: string | undefined } }) => {
    this.asked.push(params.message ?? '')
    return this.answer === undefined
      ? { action: 'cancel' as const }
      : { action: 'accept' as const, content: { answer: this.answer } }
  }
}

const CLIENTS = {
  'SDK v2': async (person: Person) => {
    const [near, far] = ModernTransport.createLinkedPair()
    const client = new ModernClient(INFO, { ...OPTIONS, versionNegotiation: { mode: { pin: '2026-07-28' } } })
    client.setRequestHandler('elicitation/create', person.ask)
    return { client, far: far as SdkTransport, connect: () => client.connect(near) }
  },
  'SDK v1': async (person: Person) => {
    const [near, far] = LegacyTransport.createLinkedPair()
    const client = new LegacyClient(INFO, OPTIONS)
    client.setRequestHandler(ElicitRequestSchema, person.ask)
    return { client, far: far as SdkTransport, connect: () => client.connect(near) }
  },
}

/** Servers that count how often their tool has run. */
const SERVERS = {
  'SDK v2': (ran: () => void) => ({
    serve: (transport: SdkTransport) =>
      serveStdio(
        () => {
          const server = new ModernServer(INFO, { capabilities: { tools: {} } })
          server.registerTool('wipe', {}, () => done(ran))
          return server
        },
        { transport, legacy: 'reject' },
      ),
  }),
  'SDK v1': (ran: () => void) => ({
    serve: (transport: SdkTransport) => {
      const server = new LegacyServer(INFO)
      server.registerTool('wipe', {}, () => done(ran))
      return server.connect(transport)
    },
  }),
}

function done(ran: () => void) {
  ran()
  return { content: [{ type: 'text' as const, text: 'wiped' }] }
}

for (const [ofClient, connectClient] of Object.entries(CLIENTS))
  for (const [ofServer, serverOf] of Object.entries(SERVERS))
    t.test(`a client of ${ofClient} asks its person before a tool of ${ofServer} runs`, async (t) => {
      let ran = 0
      const entry = { ...serverOf(() => ran++), tools: { approve: 'destructive', approveFor: '10m' } as const }
      const bridge = await createBridge({ mcpServers: { disk: entry } })
      t.teardown(() => bridge.close())
      const person = new Person()
      const { client, far, connect } = await connectClient(person)
      await bridge.connect(far)
      await connect()
      const wipe = () => client.callTool({ name: 'wipe', arguments: {} })
      t.match(await wipe(), { isError: true, content: [{ text: /the person has not approved it/ }] })
      person.answer = 'Do not run'
      t.match(await wipe(), { isError: true, content: [{ text: /the person has refused it/ }] })
      t.equal(ran, 0)
      person.answer = 'Run'
      t.match(await wipe(), { content: [{ text: 'wiped' }] })
      t.match(person.asked.at(-1), /^Run the tool "wipe" of the server "disk"\?/)
      person.answer = 'Run, and ask no more for 10 minutes'
      t.match(await wipe(), { content: [{ text: 'wiped' }] })
      t.match(await wipe(), { content: [{ text: 'wiped' }] })
      t.equal(person.asked.length, 4)
      t.equal(ran, 3)
      await client.close()
    })
