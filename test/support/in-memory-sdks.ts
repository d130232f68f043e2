/** Clients and servers of the SDKs of both eras, connected by transports in memory. */
import { Client as ModernClient, InMemoryTransport as ModernTransport } from '@modelcontextprotocol/client'
import { Client as LegacyClient } from '@modelcontextprotocol/sdk/client/index.js'
import { InMemoryTransport as LegacyTransport } from '@modelcontextprotocol/sdk/inMemory.js'
import { McpServer as LegacyServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js'
import { McpServer as ModernServer } from '@modelcontextprotocol/server'
import { serveStdio } from '@modelcontextprotocol/server/stdio'
import type { SdkTransport } from '../../src/app/embed/options.js'

const INFO = { name: 'in memory', version: '1.0.0' }
const OPTIONS = { capabilities: { elicitation: { form: {} } } }
type Ask = (question: { params: { message?: string | undefined } }) => Answer
type Answer = { action: 'cancel' } | { action: 'accept'; content: { answer: string } }

/** What the person answers next, and what was asked. */
export class Person {
  answer: string | undefined
  readonly asked: string[] = []

  readonly ask: Ask = ({ params }) => {
    this.asked.push(params.message ?? '')
    return this.answer === undefined ? { action: 'cancel' } : { action: 'accept', content: { answer: this.answer } }
  }
}

export const SDK_CLIENTS = {
  'SDK v2': async (person = new Person()) => {
    const [near, far] = ModernTransport.createLinkedPair()
    const client = new ModernClient(INFO, { ...OPTIONS, versionNegotiation: { mode: { pin: '2026-07-28' } } })
    client.setRequestHandler('elicitation/create', person.ask)
    return { client, far: far as SdkTransport, connect: () => client.connect(near) }
  },
  'SDK v1': async (person = new Person()) => {
    const [near, far] = LegacyTransport.createLinkedPair()
    const client = new LegacyClient(INFO, OPTIONS)
    client.setRequestHandler(ElicitRequestSchema, person.ask)
    return { client, far: far as SdkTransport, connect: () => client.connect(near) }
  },
}

/** A server with one tool, which returns a text. */
export const SDK_SERVERS = {
  'SDK v2': (tool: string, run: () => string) => ({
    serve: (transport: SdkTransport) =>
      serveStdio(
        () => {
          const server = new ModernServer(INFO, { capabilities: { tools: {} } })
          server.registerTool(tool, {}, () => textOf(run()))
          return server
        },
        { transport, legacy: 'reject' },
      ),
  }),
  'SDK v1': (tool: string, run: () => string) => ({
    serve: (transport: SdkTransport) => {
      const server = new LegacyServer(INFO)
      server.registerTool(tool, {}, () => textOf(run()))
      return server.connect(transport)
    },
  }),
}

function textOf(text: string) {
  return { content: [{ type: 'text' as const, text }] }
}
