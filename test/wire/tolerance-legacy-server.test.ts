/** What servers of the first SDK and of extensions answer, as modern clients get it. */
import { CreateMessageResultSchema, ElicitResultSchema } from '@modelcontextprotocol/sdk/types.js'
import t, { type Test } from 'tap'
import { startBridge } from '../support/bridge.js'
import { until } from '../support/eventually.js'
import { initialize } from '../support/legacy-client.js'
import { LegacyHttp, type Plan } from '../support/legacy-http.js'
import { LegacySse, PATHS } from '../support/legacy-sse.js'
import { CAPABILITIES, call } from '../support/modern.js'
import { openPipe } from '../support/pipe.js'
import { startSdkV1 } from '../support/sdk-v1.js'

type Json = Record<string, unknown>

/** Answers these methods, in place of the script, with what stands in the row. */
function answering(rows: Record<string, Json>): Plan['override'] {
  return ({ message }, response) => {
    const row = rows[String(message['method'])]
    if (!row) return false
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ jsonrpc: '2.0', id: message['id'], ...row }))
    return true
  }
}

async function start(t: Test, rows: Record<string, Json>, settings: Json = {}) {
  const override = answering(rows)
  const legacy = await LegacyHttp.start(t, override ? { override } : {})
  return { legacy, ...(await startBridge(t, { url: legacy.url, ...settings })) }
}

const SKILL = { uri: 'skill://a/SKILL.md', frontmatter: { name: 'a', description: 'd' }, resources: 'dynamic' }
const FILE = { uri: 'skill://a/SKILL.md', name: 'SKILL.md' }

t.test('results of the skills extension have caching hints', async (t) => {
  const { url } = await start(t, {
    'skills/list': { result: { skills: [SKILL], nextCursor: null } },
    'skills/get': { result: { skill: SKILL, ttlMs: 60_000, cacheScope: 'public' } },
    'resources/directory/read': { result: { resources: [FILE], nextCursor: null } },
  })
  const rows: [method: string, params: Json, rest: Json][] = [
    ['skills/list', {}, { skills: [SKILL] }],
    ['skills/get', { uri: SKILL.uri }, { skill: SKILL }],
    ['resources/directory/read', { uri: 'skill://a' }, { resources: [FILE] }],
  ]
  for (const [method, params, rest] of rows) {
    const { status, message } = await call(url, method, params)
    const { _meta, ...result } = message.result ?? {}
    t.equal(status, 200, method)
    t.same(result, { resultType: 'complete', ttlMs: 0, cacheScope: 'private', ...rest }, method)
  }
  t.notOk('ttlMs' in ((await call(url, 'vendor/echo')).message.result ?? {}), 'what nobody knows gets none')
})

t.test('a cached skill is dropped when its file has changed, and the list with the resources', async (t) => {
  const rows = { 'skills/list': { result: { skills: [SKILL] } }, 'skills/get': { result: { skill: SKILL } } }
  const { url, legacy } = await start(t, rows, { cache: 60_000 })
  const ask = async () => {
    await call(url, 'skills/list')
    await call(url, 'skills/get', { uri: SKILL.uri })
  }
  const asked = () => [legacy.of('skills/list').length, legacy.of('skills/get').length]
  await ask()
  await ask()
  t.same(asked(), [1, 1], 'both are kept')
  const changed = (method: string, params?: Json) => legacy.push({ jsonrpc: '2.0', method, ...(params && { params }) })
  const subscribed = () => legacy.of('resources/subscribe').some(({ body }) => body.includes(SKILL.uri))
  await until(subscribed, 'a subscription to the file')
  changed('notifications/resources/updated', { uri: SKILL.uri })
  await until(async () => {
    await ask()
    return asked()[1] === 2
  }, 'another question for the skill')
  t.equal(asked()[0], 1, 'the list is not about that file alone')
  changed('notifications/resources/list_changed')
  await until(async () => {
    await ask()
    return asked()[0] === 2
  }, 'another question for the list')
})

t.test('a core method that the server does not have is 404, an unknown thing is not', async (t) => {
  const error = { error: { code: -32601, message: 'Method not found' } }
  const methods = ['prompts/list', 'resources/templates/list', 'completion/complete', 'vendor/x']
  const { url } = await start(t, Object.fromEntries([...methods, 'tools/call'].map((method) => [method, error])))
  const about = { ref: { type: 'ref/prompt', name: 'greet' }, argument: { name: 'who', value: '' } }
  for (const method of methods) {
    const { status, message } = await call(url, method, method === 'completion/complete' ? about : {})
    t.same({ status, error: message.error }, { status: 404, ...error }, method)
  }
  const { status, message } = await call(url, 'tools/call', { name: 'no such tool', arguments: {} })
  t.same({ status, error: message.error }, { status: 200, ...error })
})

t.test('an error about a resource names it, whatever its code', async (t) => {
  const uri = 'test://missing'
  const read = async (error: Json) => {
    const { url } = await start(t, { 'resources/read': { error } })
    return (await call(url, 'resources/read', { uri })).message.error
  }
  const wrong = { code: -32602, message: `Resource ${uri} not found` }
  t.same(await read(wrong), { ...wrong, data: { uri } })
  t.same(await read({ ...wrong, data: { why: 1 } }), { ...wrong, data: { why: 1, uri } })
  t.same(await read({ ...wrong, data: 'gone' }), { ...wrong, data: { uri, data: 'gone' } })
  t.same(await read({ ...wrong, data: { uri: 'test://other' } }), { ...wrong, data: { uri: 'test://other' } })
  t.same(await read({ ...wrong, code: -32603 }), { ...wrong, code: -32603 }, 'others stay')
  const real = await startSdkV1(t, (server) => {
    server.registerResource('known', 'test://known', {}, () => ({ contents: [] }))
  })
  const { url } = await startBridge(t, { url: real })
  const { status, message } = await call(url, 'resources/read', { uri })
  t.match({ status, error: message.error }, { status: 200, error: { code: -32602, data: { uri } } })
})

const FORM = { message: 'Your name?', requestedSchema: { type: 'object' as const, properties: {} } }
const PROMPT = { messages: [{ role: 'user' as const, content: { type: 'text' as const, text: 'Hi' } }], maxTokens: 5 }

t.test('a tool of the first SDK that fails because it may not ask is -32021, with its message', async (t) => {
  const real = await startSdkV1(t, (server) => {
    server.registerTool('sample', {}, async () => {
      await server.server.createMessage(PROMPT)
      return { content: [] }
    })
    server.registerTool('sample_here', {}, async (extra) => {
      await extra.sendRequest({ method: 'sampling/createMessage', params: PROMPT }, CreateMessageResultSchema)
      return { content: [] }
    })
    server.registerTool('form_here', {}, async (extra) => {
      await extra.sendRequest({ method: 'elicitation/create', params: FORM }, ElicitResultSchema)
      return { content: [] }
    })
    server.registerTool('copes', {}, async () => {
      await server.server.createMessage(PROMPT).catch(() => {})
      return { content: [{ type: 'text', text: 'without a model' }] }
    })
    server.registerTool('fails', {}, () => ({ isError: true, content: [{ type: 'text', text: 'no' }] }))
  })
  const { url } = await startBridge(t, { url: real })
  const use = (name: string, declared: Json = {}) =>
    call(url, 'tools/call', { name, arguments: {} }, { meta: { [CAPABILITIES]: declared } })
  const rows: [name: string, requiredCapabilities: Json][] = [
    ['sample', { sampling: {} }],
    ['sample_here', { sampling: {} }],
    ['form_here', { elicitation: { form: {} } }],
  ]
  for (const [name, requiredCapabilities] of rows) {
    const { status, message } = await use(name)
    t.same({ status, code: message.error?.code }, { status: 400, code: -32021 }, name)
    const { content, ...data } = message.error?.data as Json
    t.same(data, { requiredCapabilities }, name)
    t.match(content, [{ type: 'text', text: /Method not found/ }], name)
  }
  t.match((await use('copes')).message.result, { content: [{ text: 'without a model' }] }, 'a tool that copes succeeds')
  t.match((await use('fails')).message.result, { isError: true }, 'and one that was refused nothing has failed')
  t.match((await use('sample', { sampling: {} })).message.result, { resultType: 'input_required' })
})

t.test('a modern client gets what a tool returns in place of blocks', async (t) => {
  const block = { type: 'text', text: 'It is 3 degrees' }
  for (const content of ['It is 3 degrees', block, ['It is 3 degrees']]) {
    const { url } = await start(t, { 'tools/call': { result: { content } } })
    const { message } = await call(url, 'tools/call', { name: 'echo', arguments: {} })
    t.same(message.result?.['content'], [block], JSON.stringify(content))
  }
})

const OPEN = { protocolVersion: '2025-06-18', serverInfo: { name: 'shy', version: '1' } }
const UNKNOWN = { error: { code: -32601, message: 'Method not found' } }

t.test('a server that declares nothing is asked once for its lists, and its answers count', async (t) => {
  const spellings: unknown[] = [{}, undefined, null, [], { tools: null, prompts: false }, { experimental: {} }]
  for (const capabilities of spellings) {
    const what = JSON.stringify(capabilities) ?? 'nothing'
    const { url, legacy } = await start(t, {
      initialize: { result: { ...OPEN, capabilities } },
      'prompts/list': UNKNOWN,
      'resources/list': { result: {} },
      'resources/templates/list': { result: { resourceTemplates: [] } },
    })
    const offer = await call(url, 'server/discover')
    t.same((offer.message.result?.['capabilities'] as Json)['tools'], {}, what)
    const listed = await call(url, 'tools/list')
    t.match(listed.message.result?.['tools'], [{ name: 'echo' }], what)
    const called = await call(url, 'tools/call', { name: 'echo', arguments: {} })
    t.match(called.message.result, { content: [{ type: 'text' }] }, what)
    for (const [method, named] of [
      ['prompts/list', 'prompts'],
      ['resources/templates/list', 'resources'],
    ] as const) {
      t.notOk(named in (offer.message.result?.['capabilities'] as Json), `${what}: ${named} is no list`)
      t.equal((await call(url, method)).status, 404, `${what}: ${method}`)
    }
    t.equal(legacy.of('tools/list').length, 2, `${what}: once by the bridge, once by the client`)
    t.equal(legacy.of('prompts/list').length, 1, what)
    t.equal(legacy.of('resources/list').length, 1, what)
  }
})

t.test('a capability that is not an object counts as declared', async (t) => {
  for (const declared of [true, [], 1]) {
    const { url, legacy } = await start(t, { initialize: { result: { ...OPEN, capabilities: { tools: declared } } } })
    t.match((await call(url, 'tools/list')).message.result?.['tools'], [{ name: 'echo' }], JSON.stringify(declared))
    t.equal((await call(url, 'prompts/list')).status, 404)
    t.equal(legacy.of('tools/list').length, 1, 'nothing is asked')
    t.equal(legacy.of('prompts/list').length, 0)
  }
})

t.test('does not wait for a server that declares nothing and answers only its tools', async (t) => {
  const legacy = await LegacyHttp.start(t, {
    override: ({ message }, response) => {
      const { id, method } = message
      if (method === 'prompts/list' || method === 'resources/list') return true
      if (method !== 'initialize') return false
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end(JSON.stringify({ jsonrpc: '2.0', id, result: { ...OPEN, capabilities: {} } }))
      return true
    },
  })
  const { url } = await startBridge(t, { url: legacy.url }, { timeouts: { call: 3_600_000 } })
  t.match((await call(url, 'tools/list')).message.result?.['tools'], [{ name: 'echo' }])
})

for (const inPost of ['json', 'events', 'batch'] as const)
  t.test(`over HTTP+SSE, accepts an answer in the response to the POST alone (${inPost})`, async (t) => {
    const server = await LegacySse.start(t, { inPost })
    const { url } = await startBridge(t, { url: server.url })
    const params = { name: 'echo', arguments: { n: 1 } }
    t.match((await call(url, 'tools/call', params)).message.result, { structuredContent: { n: 1 } })
    const pipe = openPipe(t, { url: server.url })
    const ask = async (id: string, method: string, params: Json) => {
      pipe.line(JSON.stringify({ jsonrpc: '2.0', id, method, params }))
      const answer = () => pipe.messages().find((message) => message['id'] === id)
      await until(() => answer() !== undefined, method)
      return answer()
    }
    const opening = JSON.parse(initialize('2025-06-18')) as { params: Json }
    t.match(await ask('open', 'initialize', opening.params), { result: { protocolVersion: '2025-06-18' } })
    t.match(await ask('call', 'tools/call', params), { result: { structuredContent: { n: 1 } } })
  })

t.test('over HTTP+SSE, ignores a response to the POST that is not an answer', async (t) => {
  const bodies = ['{"ok":true}', '"Accepted"', 'null', '{"jsonrpc":"2.0","id":99,"result":{}}', '{', '[]']
  for (const body of bodies) {
    let sse: LegacySse | undefined
    const server = await LegacySse.start(t, {
      override: ({ method, path, message }, response) => {
        if (method !== 'POST' || path === PATHS.stream || message['id'] === undefined) return false
        response.writeHead(200, { 'content-type': 'application/json' }).end(body)
        sse?.answer(message)
        return true
      },
    })
    sse = server
    const { url, log } = await startBridge(t, { url: server.url })
    t.equal((await call(url, 'tools/list')).status, 200, body)
    t.notOk(
      log.some(({ event }) => event === 'message_dropped' || event === 'invalid_messages'),
      body,
    )
  }
})
