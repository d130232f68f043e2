import { Client as ModernClient, StreamableHTTPClientTransport as ModernHttp } from '@modelcontextprotocol/client'
import { StdioClientTransport as ModernStdio } from '@modelcontextprotocol/client/stdio'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
} from '@modelcontextprotocol/sdk/types.js'
import t, { type Test } from 'tap'
import { parseUpstream } from '../../src/config/settings.js'
import { startBridge } from '../support/bridge.js'
import { bridgeCommand } from '../support/cli.js'
import { ModernHttp as ScriptedHttp } from '../support/modern-http.js'
import { modernStdio } from '../support/modern-stdio.js'
import { startEverything, WAYS } from './legacy-servers.js'

const CAPABILITIES = { elicitation: { form: {} }, sampling: {}, roots: {} }
const INFO = { name: 'interop', version: '1' }
const FORM = { action: 'accept' as const, content: { name: 'Ada', check: true } }
const SAMPLED = { role: 'assistant' as const, model: 'test', content: { type: 'text' as const, text: 'Four' } }
const ROOTS = { roots: [{ uri: 'file:///workspace', name: 'workspace' }] }

/** As long as the bridge runs as a program of the client, it is started like this. */
const program = (upstream: string) =>
  bridgeCommand('--log-level', 'silent', '--listen', 'stdio', '--upstream', upstream)

const quick = { timeouts: { drainTimeout: 100 } }
const ways = await startEverything(t)

const fronts = {
  HTTP: async (t: Test, upstream: string) =>
    new ModernHttp(new URL((await startBridge(t, parseUpstream(upstream), quick)).url)),
  stdio: (_t: Test, upstream: string) => Promise.resolve(new ModernStdio({ ...program(upstream), stderr: 'ignore' })),
}

for (const way of WAYS.filter((one) => one !== 'HTTP+SSE found out')) {
  for (const [front, reach] of Object.entries(fronts)) {
    t.test(`server-everything over ${way} asks a modern client over ${front}`, async (t) => {
      const asked: string[] = []
      const client = new ModernClient(INFO, {
        capabilities: CAPABILITIES,
        versionNegotiation: { mode: { pin: '2026-07-28' } },
      })
      client.setRequestHandler('elicitation/create', () => {
        asked.push('form')
        return FORM
      })
      client.setRequestHandler('sampling/createMessage', ({ params }) => {
        asked.push(JSON.stringify(params.messages))
        return SAMPLED
      })
      client.setRequestHandler('roots/list', () => {
        asked.push('roots')
        return ROOTS
      })
      t.teardown(() => client.close())
      await client.connect(await reach(t, ways[way].upstream))

      const form = await client.callTool({ name: 'trigger-elicitation-request' })
      t.match(JSON.stringify(form.content), /Ada/, 'what was filled in has reached the server')
      const sampling = { name: 'trigger-sampling-request', arguments: { prompt: 'Two and two?', maxTokens: 10 } }
      t.match(JSON.stringify((await client.callTool(sampling)).content), /Four/, 'what the model said has reached it')
      t.match(JSON.stringify((await client.callTool({ name: 'get-roots-list' })).content), /workspace/)
      t.ok(asked.includes('form') && asked.includes('roots'))
      t.ok(asked.some((said) => said.includes('Two and two?')))
    })
  }
}

const servers = {
  'Streamable HTTP': async (t: Test) => (await ScriptedHttp.start(t)).url,
  stdio: async (t: Test) => {
    const { command, args } = modernStdio(t).server
    return `stdio:${[command, ...args].map((word) => `'${word}'`).join(' ')}`
  },
}

const legacyFronts: Record<string, (t: Test, upstream: string) => Promise<Transport>> = {
  'Streamable HTTP': async (t, upstream) => {
    const { url } = await startBridge(t, parseUpstream(upstream), quick)
    return new StreamableHTTPClientTransport(new URL(url)) as Transport
  },
  'HTTP+SSE': async (t, upstream) => {
    const { url } = await startBridge(t, parseUpstream(upstream), quick)
    return new SSEClientTransport(new URL(url.replace(/mcp$/, 'sse')))
  },
  stdio: async (_t, upstream) => new StdioClientTransport({ ...program(upstream), stderr: 'ignore' }),
}

for (const [way, start] of Object.entries(servers)) {
  for (const [front, reach] of Object.entries(legacyFronts)) {
    t.test(`a modern server over ${way} asks a legacy client over ${front}`, async (t) => {
      const client = new Client(INFO, { capabilities: CAPABILITIES })
      client.setRequestHandler(ElicitRequestSchema, () => ({ action: 'accept', content: { name: 'Ada' } }))
      client.setRequestHandler(CreateMessageRequestSchema, () => SAMPLED)
      client.setRequestHandler(ListRootsRequestSchema, () => ROOTS)
      t.teardown(() => client.close())
      await client.connect(await reach(t, await start(t)))

      const answers = async (name: string) => (await client.callTool({ name, arguments: {} })).structuredContent
      t.match(await answers('ask-name'), { name: { action: 'accept', content: { name: 'Ada' } } })
      t.match(await answers('ask-model'), { model: SAMPLED })
      t.match(await answers('ask-roots'), { roots: ROOTS })
      t.match(await answers('ask-two'), { name: { action: 'accept' }, model: SAMPLED })
      t.match(await answers('ask-thrice'), { name: { action: 'accept' }, model: SAMPLED, roots: ROOTS })
    })
  }
}
