/** A tool that clients cannot use does not cost them the others: output schemas that no validator compiles are left out. */
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import t, { type Test } from 'tap'
import { type Started, startBridge } from '../support/bridge.js'
import { LegacyClient } from '../support/legacy-client.js'
import { LegacyHttp } from '../support/legacy-http.js'
import { openPipe } from '../support/pipe.js'
import { askOn, shakeHands } from '../support/spelled.js'
import { SseClient } from '../support/sse-client.js'

type Json = Record<string, unknown>

const GOOD = { type: 'object', properties: { a: { $ref: '#/$defs/a' } }, $defs: { a: { type: 'string' } } }
const BAD = {
  dangling: { type: 'object', properties: { a: { $ref: '#/$defs/none' } }, $defs: {} },
  named: { type: 'object', properties: { a: { $ref: '#nothing' } } },
  remote: { type: 'object', properties: { a: { $ref: 'https://schemas.example/a.json' } } },
  nested: { type: 'object', $defs: { b: { items: { $ref: '#/definitions/c' } } } },
  pattern: { type: 'object', properties: { a: { type: 'string', pattern: '(' } } },
}
const inputSchema = { type: 'object', properties: { n: { const: 1 } } }
const tools = [
  { name: 'good', inputSchema, outputSchema: GOOD, extra: { kept: true } },
  ...Object.entries(BAD).map(([name, outputSchema]) => ({ name, inputSchema, outputSchema, extra: { kept: true } })),
  { name: 'plain', inputSchema },
]
const SOUND = tools.map(({ name, ...tool }) => ({
  name,
  ...tool,
  ...(name in BAD && { outputSchema: undefined }),
}))

const ANSWERS = { 'in JSON': 'application/json', 'in events': 'text/event-stream' } as const

function serverOf(t: Test, type: string, list: readonly object[] = tools): Promise<LegacyHttp> {
  return LegacyHttp.start(t, {
    sessions: true,
    override: ({ message }, response) => {
      if (message['method'] !== 'tools/list') return false
      const text = JSON.stringify({ jsonrpc: '2.0', id: message['id'], result: { tools: list, _meta: { n: 1 } } })
      response.writeHead(200, { 'content-type': type })
      response.end(type === 'application/json' ? text : `: hello\n\nid: 7\nevent: message\ndata: ${text}\n\n`)
      return true
    },
  })
}

type Opened = { list: () => Promise<Json>; log?: Started['log'] }
const fronts: Record<string, (t: Test, server: object, settings: object) => Promise<Opened>> = {
  'Streamable HTTP': async (t, server, settings) => {
    const { url, log } = await startBridge(t, server, settings)
    const client = await LegacyClient.open(url)
    return { list: async () => (await client.request('tools/list')).message, log }
  },
  'HTTP+SSE': async (t, server, settings) => {
    const { url, log } = await startBridge(t, server, settings)
    const client = await SseClient.open(url, '2025-11-25')
    return { list: () => client.request('tools/list'), log }
  },
  stdio: async (t, server, settings) => {
    const pipe = openPipe(t, server, settings)
    await shakeHands(pipe)
    return { list: () => askOn(pipe, 'tools/list', {}) }
  },
}

const listIn = (answer: Json) =>
  ((answer as { result: { tools: Json[] } }).result.tools ?? []).map((tool) => ({
    ...tool,
    ...(!('outputSchema' in tool) && String(tool['name']) in BAD && { outputSchema: undefined }),
  }))

for (const [front, open] of Object.entries(fronts))
  for (const [form, type] of Object.entries(ANSWERS))
    t.test(`a list with schemas that do not compile is mended over ${front}, ${form}`, async (t) => {
      const server = await serverOf(t, type)
      const { list, log } = await open(t, { url: server.url }, {})
      for (let times = 0; times < 3; times++) t.strictSame(listIn(await list()), SOUND)
      if (!log) return
      const lines = log.filter(({ event }) => event === 'output_schemas_omitted')
      t.match(lines, [{ tools: Object.keys(BAD), count: Object.keys(BAD).length }])
      t.equal(lines.length, 1, 'said once')
    })

t.test('the client of the first SDK can list the tools', async (t) => {
  const server = await serverOf(t, 'text/event-stream')
  const { url } = await startBridge(t, { url: server.url })
  const client = new Client({ name: 'test', version: '1' })
  await client.connect(new StreamableHTTPClientTransport(new URL(url)) as Transport)
  const listed = await client.listTools()
  t.strictSame(
    listed.tools.map(({ name }) => name),
    tools.map(({ name }) => name),
  )
  await client.close()
})

t.test('a list of more than 64 KiB is mended as well, and a sound one keeps its bytes', async (t) => {
  const many = Array.from({ length: 500 }, (_, n) => ({ name: `t${n}`, description: 'x'.repeat(400), inputSchema }))
  for (const type of Object.values(ANSWERS)) {
    const unsound = await serverOf(t, type, [...many, ...tools])
    const mended = await startBridge(t, { url: unsound.url })
    const answer = await (await LegacyClient.open(mended.url)).request('tools/list')
    t.strictSame(listIn(answer.message).slice(-tools.length), SOUND)
    t.equal(listIn(answer.message).length, many.length + tools.length)
    const sound = await serverOf(t, type, many)
    const { url } = await startBridge(t, { url: sound.url })
    const [through, direct] = [await LegacyClient.open(url), await LegacyClient.open(sound.url)]
    const [one, other] = [
      await through.request('tools/list', {}, { id: 9 }),
      await direct.request('tools/list', {}, { id: 9 }),
    ]
    t.equal(one.text, other.text)
  }
})
