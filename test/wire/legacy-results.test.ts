/** Results of a modern server as legacy clients get them. Numbers are those of test/invariants.md. */
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import t, { type Test } from 'tap'
import { startBridge } from '../support/bridge.js'
import { besideTheQuestion, LegacyClient } from '../support/legacy-client.js'
import { type HttpPlan, ModernHttp } from '../support/modern-http.js'
import { modernStdio } from '../support/modern-stdio.js'
import { problems, type SchemaRevision } from '../support/schema.js'

type Json = Record<string, unknown>

const REVISIONS: SchemaRevision[] = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25']
const OF_MODERN_RESULTS = ['resultType', 'ttlMs', 'cacheScope']

async function start(t: Test, plan: HttpPlan = {}) {
  const modern = await ModernHttp.start(t, plan)
  const { url } = await startBridge(t, { url: modern.url })
  return { modern, url, open: (revision: string) => LegacyClient.open(url, { revision }) }
}

/** Answers a method with a result, in place of the script. */
function answering(method: string, result: string): HttpPlan {
  return {
    override: ({ message }, response) => {
      if (message?.['method'] !== method) return false
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end(`{"jsonrpc":"2.0","id":${JSON.stringify(message['id'])},"result":${result}}`)
      return true
    },
  }
}

const RESULTS: [method: string, params: Json, definition: string][] = [
  ['tools/list', {}, 'ListToolsResult'],
  ['tools/call', { name: 'echo', arguments: {} }, 'CallToolResult'],
  ['prompts/list', {}, 'ListPromptsResult'],
  ['prompts/get', { name: 'greet', arguments: { who: 'Ada' } }, 'GetPromptResult'],
  ['resources/list', {}, 'ListResourcesResult'],
  ['resources/templates/list', {}, 'ListResourceTemplatesResult'],
  ['resources/read', { uri: 'test://static' }, 'ReadResourceResult'],
  [
    'completion/complete',
    { ref: { type: 'ref/prompt', name: 'greet' }, argument: { name: 'who', value: 'A' } },
    'CompleteResult',
  ],
]

t.test('removes modern members from the top of a result, which matches the schema of the revision', async (t) => {
  const { open, modern } = await start(t, { ttlMs: 5_000, cacheScope: 'public', answers: 'json' })
  const stdio = modernStdio(t, { ttlMs: 5_000 })
  const other = await startBridge(t, stdio.server)
  for (const revision of REVISIONS) {
    for (const client of [await open(revision), await LegacyClient.open(other.url, { revision })]) {
      for (const [method, params, definition] of RESULTS) {
        const { text, message } = await client.request(method, params)
        const name = `${revision} ${method}`
        t.same(problems(revision, definition, message.result), [], name)
        for (const key of OF_MODERN_RESULTS) t.notOk(key in (message.result ?? {}), `${name}: ${key}`)
        t.notMatch(text, /io\.modelcontextprotocol\/(?:serverInfo|subscriptionId)/, name)
        t.notOk('_meta' in (message.result ?? {}), `${name}: nothing is left of _meta`)
      }
    }
  }
  t.same(besideTheQuestion(modern.violations()), [])
})

t.test('leaves members of the same names further inside, and vendor keys', async (t) => {
  const inside =
    '{"resultType":"x","ttlMs":1.0,"cacheScope":"y","_meta":{"io.modelcontextprotocol/serverInfo":{"a":1}}}'
  const content = `[{"type":"text","text":"t","_meta":{"resultType":1,"v/k":2}}]`
  const result = `{"resultType":"complete","content":${content},"structuredContent":${inside},"ttlMs":9,"cacheScope":"public","vendor":{"ttlMs":1},"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"a","version":"1"},"v/k":[1],"io.modelcontextprotocol/subscriptionId":7}}`
  const { open } = await start(t, answering('tools/call', result))
  const client = await open('2025-11-25')
  const { text, message } = await client.call('any')
  t.same(Object.keys(message.result ?? {}).sort(), ['_meta', 'content', 'structuredContent', 'vendor'])
  t.ok(text.includes(`"structuredContent":${inside}`))
  t.ok(text.includes(`"content":${content}`))
  t.same(message.result?.['_meta'], { 'v/k': [1] })
  t.same(message.result?.['vendor'], { ttlMs: 1 })
})

t.test('a result without a type is complete', async (t) => {
  const { open } = await start(t, answering('tools/call', '{"content":[]}'))
  const client = await open('2025-11-25')
  t.same((await client.call('any')).message.result, { content: [] })
})

t.test('notifications have no member of the modern era', async (t) => {
  const meta = { 'io.modelcontextprotocol/subscriptionId': 3, 'io.modelcontextprotocol/serverInfo': {}, 'v/k': 1 }
  const override: HttpPlan['override'] = ({ message }, response) => {
    if (message?.['method'] !== 'tools/call') return false
    const params = {
      progressToken: (message['params'] as { _meta: Json })._meta['progressToken'],
      progress: 1,
      _meta: meta,
    }
    const progress = { jsonrpc: '2.0', method: 'notifications/progress', params }
    const result = { jsonrpc: '2.0', id: message['id'], result: { resultType: 'complete', content: [] } }
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.end([progress, result].map((each) => `data: ${JSON.stringify(each)}\n\n`).join(''))
    return true
  }
  const { open } = await start(t, { override })
  const client = await open('2025-11-25')
  const { messages } = await client.call('any', {}, { meta: { progressToken: 'p' } })
  t.same((messages[0]?.['params'] as Json)['_meta'], { 'v/k': 1 })
})

t.test('replaces content that a revision does not know by content that it knows', async (t) => {
  const { open } = await start(t)
  const types = async (revision: string) => {
    const client = await open(revision)
    const { result } = (await client.call('contents')).message
    t.same(problems(revision as SchemaRevision, 'CallToolResult', result), [], revision)
    return (result?.['content'] as { type: string }[]).map(({ type }) => type)
  }
  t.same(await types('2024-11-05'), ['resource', 'text'])
  t.same(await types('2025-03-26'), ['audio', 'text'])
  t.same(await types('2025-06-18'), ['audio', 'resource_link'])
  t.same(await types('2025-11-25'), ['audio', 'resource_link'])
})

t.test('converts blocks in prompts, and on a pipe', async (t) => {
  const audio = '{"type":"audio","data":"UklGRiQAAABXQVZF","mimeType":"audio/wav"}'
  const link = '{"type":"resource_link","uri":"test://static","name":"static"}'
  const messages = [audio, link].map((content) => `{"role":"user","content":${content}}`).join(',')
  const { open } = await start(t, answering('prompts/get', `{"resultType":"complete","messages":[${messages}]}`))
  const client = await open('2024-11-05')
  const prompt = (await client.request('prompts/get', { name: 'greet' })).message.result
  t.same(problems('2024-11-05', 'GetPromptResult', prompt), [])
  t.notMatch(JSON.stringify(prompt), /"type":"(?:audio|resource_link)"/)

  const stdio = modernStdio(t)
  const { url } = await startBridge(t, stdio.server)
  const { text } = await (await LegacyClient.open(url, { revision: '2024-11-05' })).call('contents')
  t.notMatch(text, /"type":"(?:audio|resource_link)"/)
})

t.test('wraps a list as a result, and its schema, for clients that know only objects', async (t) => {
  const { open } = await start(t)
  for (const revision of REVISIONS) {
    const client = await open(revision)
    const list = await listed(client)
    const schema = list.find(({ name }) => name === 'array')?.['outputSchema'] as Json | undefined
    const result = (await client.call('array')).message.result ?? {}
    if (revision < '2025-06-18') {
      t.equal(schema, undefined, revision)
      t.notOk('structuredContent' in result, revision)
    } else {
      t.match(schema, { type: 'object', required: ['result'] }, revision)
      t.same((schema?.['properties'] as Json)['result'], { type: 'array', items: { type: 'integer' } })
      t.same(result['structuredContent'], { result: [1] }, revision)
    }
    t.same(result['content'], [{ type: 'text', text: '[1]' }])
  }
})

t.test('removes what would make a list unreadable, and keeps every tool', async (t) => {
  const { open } = await start(t)
  for (const revision of REVISIONS) {
    const tools = await listed(await open(revision))
    const names = tools.map(({ name }) => name)
    for (const name of ['uncompilable', 'untitled', 'anything', 'array'])
      t.ok(names.includes(name), `${revision} ${name}`)
    const find = (wanted: string) => tools.find(({ name }) => name === wanted) ?? {}
    t.notOk('title' in find('untitled'), revision)
    t.notOk('outputSchema' in find('uncompilable'), revision)
    t.notMatch(JSON.stringify(find('anything')), /"(?:anything|nothing)":(?:true|false)/, revision)
    t.notOk(
      tools.some((tool) => 'execution' in tool),
      revision,
    )
  }
})

const TRANSPORTS: Record<string, (url: string) => Transport> = {
  'Streamable HTTP': (url) => new StreamableHTTPClientTransport(new URL(url)) as Transport,
  'HTTP+SSE': (url) => new SSEClientTransport(new URL('sse', url)),
}

for (const [name, transport] of Object.entries(TRANSPORTS)) {
  t.test(`the client of the first SDK lists and calls all tools over ${name}`, async (t) => {
    const { url, modern } = await start(t)
    const client = new Client({ name: 'first', version: '1' })
    await client.connect(transport(url))
    t.teardown(() => client.close())
    const tools: Awaited<ReturnType<typeof client.listTools>>['tools'] = []
    let cursor: string | undefined
    do {
      const page = await client.listTools(cursor === undefined ? {} : { cursor })
      tools.push(...page.tools)
      cursor = page.nextCursor
    } while (cursor !== undefined)
    const names = tools.map((tool) => tool.name)
    for (const name of ['echo', 'array', 'uncompilable', 'untitled', 'anything', 'contents'])
      t.ok(names.includes(name), name)
    t.notOk(names.includes('badly-mirrored'))
    t.match(await client.callTool({ name: 'array', arguments: {} }), { structuredContent: { result: [1] } })
    t.match(await client.callTool({ name: 'contents', arguments: {} }), { content: [{ type: 'audio' }, {}] })
    for (const name of ['uncompilable', 'untitled', 'anything', 'mirrored'])
      t.ok((await client.callTool({ name, arguments: {} })).content, name)
    t.same(await client.ping(), {})
    t.same(await client.setLoggingLevel('info'), {})
    t.same(await client.subscribeResource({ uri: 'test://static' }), {})
    t.same(await client.unsubscribeResource({ uri: 'test://static' }), {})
    await t.rejects(client.readResource({ uri: 'test://missing' }), { code: -32002 })
    t.same(besideTheQuestion(modern.violations()), [])
  })
}

async function listed(client: LegacyClient): Promise<Json[]> {
  const pages = [await client.request('tools/list'), await client.request('tools/list', { cursor: 'page 2' })]
  return pages.flatMap(({ message }) => message.result?.['tools'] as Json[])
}
