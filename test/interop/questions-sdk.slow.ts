import { Client as ModernClient, StreamableHTTPClientTransport as ModernHttp } from '@modelcontextprotocol/client'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
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
import { startEverything, WAYS } from './legacy-servers.js'
import { startModern } from './modern-servers.js'

const INFO = { name: 'interop', version: '1' }
const QUICK = { timeouts: { drainTimeout: 100 } }
const CAPABILITIES = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} }
const SAMPLED = { role: 'assistant' as const, model: 'test', content: { type: 'text' as const, text: 'Paris' } }

const modern = await startModern(t, 'conformance/modern-server')
const everything = await startEverything(t)

const fronts: Record<string, (t: Test, upstream: string) => Promise<Transport>> = {
  HTTP: async (t, upstream) => {
    const { url } = await startBridge(t, parseUpstream(upstream), QUICK)
    return new StreamableHTTPClientTransport(new URL(url)) as Transport
  },
  stdio: async (_t, upstream) => {
    const bridge = bridgeCommand('--log-level', 'silent', '--listen', 'stdio', '--upstream', upstream)
    return new StdioClientTransport({ ...bridge, stderr: 'ignore' })
  },
}

const rows: [tool: string, args: Record<string, unknown>, answer: RegExp, asked: string[]][] = [
  ['test_input_required_result_elicitation', {}, /Hello, Ada!/, ['form']],
  ['test_input_required_result_sampling', {}, /Paris/, ['model']],
  ['test_input_required_result_list_roots', {}, /file:\/\/\/workspace/, ['roots']],
  ['test_input_required_result_request_state', {}, /state-ok, and the answer is accept/, ['form']],
  ['test_input_required_result_multiple_inputs', {}, /Paris Ada, you have 1 roots/, ['form', 'model', 'roots']],
  ['test_input_required_result_multi_round', {}, /Ada likes blue/, ['form', 'form']],
  ['test_elicitation_sep1330_enums', {}, /action=accept/, ['form']],
  ['confirm_delete', { filename: 'x.txt' }, /Deleted x\.txt/, ['form']],
  ['multi_input', {}, /Answered with accept and accept/, ['form', 'form']],
  ['test_tool_with_task', {}, /Done for Ada/, ['form']],
]

for (const [way, { upstream }] of Object.entries(modern)) {
  for (const [front, reach] of Object.entries(fronts)) {
    t.test(`a legacy client over ${front} answers questions of a modern server of the SDK over ${way}`, async (t) => {
      const asked: string[] = []
      const client = new Client(INFO, { capabilities: CAPABILITIES })
      client.setRequestHandler(ElicitRequestSchema, () => {
        asked.push('form')
        return { action: 'accept', content: { name: 'Ada', color: 'blue', confirm: true } }
      })
      client.setRequestHandler(CreateMessageRequestSchema, () => {
        asked.push('model')
        return SAMPLED
      })
      client.setRequestHandler(ListRootsRequestSchema, () => {
        asked.push('roots')
        return { roots: [{ uri: 'file:///workspace' }] }
      })
      t.teardown(() => client.close())
      await client.connect(await reach(t, upstream))
      for (const [name, args, answer, expected] of rows) {
        asked.length = 0
        const result = await client.callTool({ name, arguments: args })
        t.match(JSON.stringify(result.content), answer, name)
        t.notOk(result.isError, name)
        t.same(asked.sort(), expected, name)
      }
    })
  }
}

t.jobs = 3
for (const way of WAYS.filter((one) => one !== 'HTTP+SSE found out')) {
  t.test(
    `a modern client answers questions of tasks of server-everything over ${way}`,
    { buffered: true },
    async (t) => {
      const client = new ModernClient(INFO, {
        capabilities: CAPABILITIES,
        versionNegotiation: { mode: { pin: '2026-07-28' } },
      })
      const asked: unknown[] = []
      client.setRequestHandler('elicitation/create', ({ params }) => {
        asked.push(params.mode === 'url' ? params.url : params.message)
        return { action: 'accept' as const, ...(params.mode !== 'url' && { content: { interpretation: 'snake' } }) }
      })
      client.setRequestHandler('sampling/createMessage', () => SAMPLED)
      client.setRequestHandler('roots/list', () => ({ roots: [] }))
      t.teardown(() => client.close())
      const { url } = await startBridge(t, parseUpstream(everything[way].upstream), QUICK)
      await client.connect(new ModernHttp(new URL(url)))

      const research = { name: 'simulate-research-query', arguments: { topic: 'python', ambiguous: true } }
      const found = await client.callTool(research)
      t.match(JSON.stringify(found.content), /snake/, 'the task has been told')
      t.equal(asked.length, 1)
      const page = { name: 'trigger-url-elicitation', arguments: { url: 'https://example.com/x' } }
      t.match(JSON.stringify((await client.callTool(page)).content), /accept|complet/i)
      t.same(asked.slice(1), ['https://example.com/x'])
    },
  )
}
