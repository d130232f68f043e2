/** Legacy clients that write null, or an empty list, for what is absent; and servers that check each message by the schema. */
import t, { type Test } from 'tap'
import { type Client, connect, FRONTS } from '../support/asked-clients.js'
import { startAsker, WAYS } from '../support/asking.js'
import { startBridge } from '../support/bridge.js'
import { until } from '../support/eventually.js'
import { LegacyClient } from '../support/legacy-client.js'
import { LegacyHttp } from '../support/legacy-http.js'
import { ModernHttp } from '../support/modern-http.js'
import { modernStdio } from '../support/modern-stdio.js'
import { problems, type SchemaRevision } from '../support/schema.js'

type Json = Record<string, unknown>

interface Server {
  entry: object
  settings?: object
  prefix?: string
  revision: SchemaRevision
  /** All that it was sent. */
  messages(): Json[]
}

const SERVERS: Record<string, (t: Test) => Promise<Server>> = {
  ...Object.fromEntries(
    WAYS.filter((way) => !way.includes('session')).map((way) => [
      `a legacy server ${way}`,
      async (t: Test) => {
        const asker = await startAsker(t, way)
        return { entry: asker.server, revision: '2025-11-25' as const, messages: () => asker.messages() }
      },
    ]),
  ),
  'a modern server over HTTP': async (t) => {
    const modern = await ModernHttp.start(t)
    const messages = () => modern.received.flatMap(({ message }) => (message ? [message] : []))
    return { entry: { url: modern.url }, revision: '2026-07-28', messages }
  },
  'a modern program': async (t) => {
    const { server, messages } = modernStdio(t)
    return { entry: server, revision: '2026-07-28', messages }
  },
  'a group': async (t) => {
    const modern = await ModernHttp.start(t)
    const mcpServers = { it: { url: modern.url }, other: (await startAsker(t, 'over stdio')).server }
    const settings = { mcpServers, groups: { all: { servers: ['it', 'other'] } } }
    const messages = () => modern.received.flatMap(({ message }) => (message ? [message] : []))
    return { entry: {}, settings, prefix: 'it__', revision: '2026-07-28', messages }
  },
}

const DEFINITIONS: Readonly<Record<string, string>> = {
  'tools/list': 'ListToolsRequest',
  'tools/call': 'CallToolRequest',
  'prompts/list': 'ListPromptsRequest',
  'prompts/get': 'GetPromptRequest',
  'resources/list': 'ListResourcesRequest',
  'resources/templates/list': 'ListResourceTemplatesRequest',
  'completion/complete': 'CompleteRequest',
  ping: 'PingRequest',
}

const KEPT = { a: null, b: [], c: { d: null } }
const COMPLETED = { ref: { type: 'ref/prompt', name: 'greet' }, argument: { name: 'name', value: '' } }
/** Requests that mean what they mean without the members that are null or empty lists. */
const SENT: readonly [method: string, params: unknown][] = [
  ...['tools/list', 'prompts/list', 'resources/list', 'resources/templates/list'].flatMap((method) =>
    [null, [], { cursor: null }, { _meta: null }, { _meta: [] }, { cursor: null, _meta: { progressToken: null } }].map(
      (params) => [method, params] as [string, unknown],
    ),
  ),
  ['ping', null],
  ['ping', []],
  ['tools/call', { name: 'echo', arguments: null }],
  ['tools/call', { name: 'echo', arguments: [] }],
  ['tools/call', { name: 'echo', arguments: null, task: null, _meta: { progressToken: null } }],
  ['tools/call', { name: 'echo', arguments: KEPT }],
  ['tools/call', { name: 'echo', arguments: { text: 'x'.repeat(20_000) }, _meta: { progressToken: null } }],
  ['prompts/get', { name: 'greet', arguments: null }],
  ['prompts/get', { name: 'greet', arguments: [] }],
  ['completion/complete', { ...COMPLETED, context: null }],
  ['completion/complete', { ...COMPLETED, context: { arguments: null } }],
]

/** What a server that checks messages by the schema would refuse. */
function wrongIn({ messages, revision }: Server): unknown[] {
  return messages().flatMap((message) => {
    const definition = DEFINITIONS[String(message['method'])]
    const wrong = definition === undefined ? [] : problems(revision, definition, message)
    return wrong.length === 0 ? [] : [{ message: JSON.stringify(message).slice(0, 300), wrong }]
  })
}

async function sendAll(client: Client, prefix: string): Promise<void> {
  for (const [at, [method, params]] of SENT.entries()) {
    const named = params as { name?: string } | null
    const sent = named && 'name' in named ? { ...named, name: `${prefix}${named.name}` } : params
    await client.say({ id: `id ${at}`, method, params: sent })
  }
}

for (const [where, start] of Object.entries(SERVERS))
  for (const front of FRONTS)
    t.test(`null and empty lists for what is absent do not reach ${where} from clients over ${front}`, async (t) => {
      const server = await start(t)
      const { entry, settings, prefix = '', messages } = server
      const capabilities = { roots: null, sampling: {}, experimental: null }
      const client = await connect(t, front, entry, { capabilities, ...(settings && { settings }) })
      await sendAll(client, prefix)
      const calls = () => messages().filter(({ method }) => method === 'tools/call')
      await until(() => calls().length === 5, 'the calls at the server')
      const asked = () => messages().filter(({ method }) => method === 'completion/complete')
      await until(() => asked().length >= 2 || where === 'a group', 'the last requests at the server')
      t.same(wrongIn(server), [])
      const argumentsOf = calls().map(({ params }) => (params as Json)['arguments'])
      t.ok(
        argumentsOf.some((one) => JSON.stringify(one) === JSON.stringify(KEPT)),
        'what tools get is not changed',
      )
    })

t.test('what clients declare and answer is passed on to servers without null and empty lists', async (t) => {
  const legacy = await LegacyHttp.start(t, { asks: true })
  const client = await connect(
    t,
    'HTTP',
    { url: legacy.url },
    {
      capabilities: { roots: null, sampling: [], elicitation: { form: {} }, experimental: [], vendor: null },
    },
  )
  const [opened] = legacy.of('initialize').map(({ message }) => message['params'] as Json)
  t.same(opened?.['capabilities'], { sampling: {}, elicitation: { form: {} }, experimental: {}, vendor: null })
  await client.say({ id: 900, result: { action: 'decline', content: null, _meta: null } })
  await client.say({ id: 901, result: { action: 'accept', content: [] } })
  await client.say({
    id: 902,
    result: { role: 'assistant', model: 'm', content: { type: 'text', text: 'x' }, stopReason: null },
  })
  const answers = () => legacy.received.map(({ message }) => message).filter((message) => 'result' in message)
  await until(() => answers().length === 3, 'the answers at the server')
  t.same(
    answers().map(({ result }) => result),
    [
      { action: 'decline' },
      { action: 'accept' },
      { role: 'assistant', model: 'm', content: { type: 'text', text: 'x' } },
    ],
  )
})

t.test('in a batch, each message is passed on without what is absent', async (t) => {
  const legacy = await LegacyHttp.start(t, { asks: true })
  const { url } = await startBridge(t, { url: legacy.url })
  const client = await LegacyClient.open(url, { revision: '2025-03-26' })
  await client.post([
    { jsonrpc: '2.0', id: 1, method: 'tools/list', params: null },
    { jsonrpc: '2.0', id: 2, method: 'tools/call', params: { name: 'echo', arguments: null } },
    { jsonrpc: '2.0', id: 3, method: 'ping', params: [] },
    { jsonrpc: '2.0', method: 'notifications/roots/list_changed', params: null },
  ])
  const texts = legacy.received.map(({ message }) => JSON.stringify(message)).join()
  t.match(texts, /"tools\/call","params":\{"name":"echo"\}/)
  t.notMatch(texts, /null|"params":\[\]/)
})
