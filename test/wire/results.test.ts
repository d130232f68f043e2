/** What comes back of results, errors and headers. Numbers are those of test/invariants.md. */
import t, { type Test } from 'tap'
import { startBridge } from '../support/bridge.js'
import { LegacyHttp } from '../support/legacy-http.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { type Answer, type CallOptions, call, envelope, headersFor, post, SERVER_INFO } from '../support/modern.js'
import { problems } from '../support/schema.js'

const METHODS: [method: string, params: Record<string, unknown>, definition: string][] = [
  ['server/discover', {}, 'DiscoverResult'],
  ['tools/list', {}, 'ListToolsResult'],
  ['prompts/list', {}, 'ListPromptsResult'],
  ['resources/list', {}, 'ListResourcesResult'],
  ['resources/templates/list', {}, 'ListResourceTemplatesResult'],
  ['resources/read', { uri: 'test://x' }, 'ReadResourceResult'],
  ['prompts/get', { name: 'greet', arguments: { who: 'Ada' } }, 'GetPromptResult'],
  ['tools/call', { name: 'echo', arguments: {} }, 'CallToolResult'],
  [
    'completion/complete',
    { ref: { type: 'ref/prompt', name: 'greet' }, argument: { name: 'who', value: 'A' } },
    'CompleteResult',
  ],
  ['vendor/echo', { x: 1 }, 'Result'],
]

function error(t: Test, answer: Answer, status: number, expected: object, name?: string) {
  t.match({ status: answer.status, error: answer.message.error }, { status, error: expected }, name ?? answer.text)
}

t.test('results have the members that modern clients require', async (t) => {
  const legacy = await LegacyHttp.start(t)
  const { url } = await startBridge(t, { url: legacy.url })

  t.test('every result is marked complete, names its server, and matches the schema', async (t) => {
    for (const [method, params, definition] of METHODS) {
      const { status, message } = await call(url, method, params)
      t.equal(status, 200, method)
      t.equal(message.result?.['resultType'], 'complete', method)
      t.same(
        (message.result?.['_meta'] as Record<string, unknown>)?.[SERVER_INFO],
        { name: 'scripted', version: '1.0.0' },
        method,
      )
      t.same(problems('2026-07-28', definition, message.result), [], `${method} is valid`)
    }
  })

  t.test('the six cacheable results have hints, the others none', async (t) => {
    for (const [method, params] of METHODS) {
      const { message } = await call(url, method, params)
      const cacheable = method.endsWith('list') || method === 'server/discover' || method === 'resources/read'
      t.equal(message.result?.['ttlMs'], cacheable ? 0 : undefined, method)
      t.equal(message.result?.['cacheScope'], cacheable ? 'private' : undefined, method)
    }
    const second = await call(url, 'resources/list', { cursor: '' })
    t.match(second.message.result, { ttlMs: 0, cacheScope: 'private' }, 'on further pages as well')
  })

  t.test('tools have no execution, and an object as their schema', async (t) => {
    const { message } = await call(url, 'tools/list')
    const tools = message.result?.['tools'] as { name: string; execution?: unknown; inputSchema: { type: string } }[]
    t.ok(tools.every((tool) => !('execution' in tool) && tool.inputSchema.type === 'object'))
    t.ok(tools.some(({ name }) => name === 'crash') && tools.some(({ name }) => name === 'untyped'))
  })

  t.test('unknown things have the errors of the revision', async (t) => {
    const answer = await call(url, 'resources/read', { uri: 'test://missing' })
    error(t, answer, 200, { code: -32602, message: 'Resource not found', data: { uri: 'test://missing' } })
    const url42 = { code: -32042, message: 'm', data: { elicitations: [] } }
    error(t, await call(url, 'tools/call', { name: 'fail', arguments: { error: url42 } }), 200, {
      code: -32603,
      data: { upstreamCode: -32042 },
    })
  })

  t.test('reserved codes do not pass, those of applications do', async (t) => {
    const failing = (code: number) =>
      call(url, 'tools/call', { name: 'fail', arguments: { error: { code, message: 'm' } } })
    error(t, await failing(-32099), 200, { code: -32603, data: { upstreamCode: -32099 } })
    for (const code of [4711, -31000, -32001, -32602, -32603]) error(t, await failing(code), 200, { code })
  })

  t.test('every error has the id of its request, byte for byte', async (t) => {
    for (const id of ['0', '""', '"7"', '7', '9007199254740993', '-1', '"\\u00e9"']) {
      const requests: [method: string, params: Record<string, unknown>][] = [
        ['tools/call', { name: 'fail', arguments: { error: { code: 1, message: 'm' } } }],
        ['nope/x', {}],
      ]
      for (const [method, params] of requests) {
        const body = `{"jsonrpc":"2.0","id":${id},"method":"${method}","params":${JSON.stringify({ ...params, _meta: envelope() })}}`
        const { text } = await post(url, body, headersFor(method, params))
        t.ok(text.startsWith(`{"jsonrpc":"2.0","id":${id},"error":`), text)
      }
      const unreadable = await post(url, `{"jsonrpc":"2.0","id":${id},"method":7}`, headersFor('x'))
      t.ok(unreadable.text.startsWith(`{"jsonrpc":"2.0","id":${id},"error":{"code":-32600`), unreadable.text)
    }
  })

  t.test('an error of a tool is a result, and an unknown tool an error in-band', async (t) => {
    error(t, await call(url, 'tools/call', { name: 'no such tool', arguments: {} }), 200, { code: -32602 })
  })

  t.test('cursors pass unchanged, also an empty one, and lists keep their order', async (t) => {
    for (const cursor of ['', 'a b', '"]}', 'é']) {
      await call(url, 'resources/list', { cursor })
      t.equal((legacy.of('resources/list').at(-1)?.message['params'] as { cursor: string }).cursor, cursor)
    }
    const lists = [await call(url, 'tools/list'), await call(url, 'tools/list')]
    t.equal(lists[0]?.text, lists[1]?.text)
  })
})

t.test('does not declare capabilities that it cannot carry', async (t) => {
  const legacy = await LegacyHttp.start(t, { get: 405 })
  const { url } = await startBridge(t, { url: legacy.url })
  const { message } = await call(url, 'server/discover')
  t.notMatch(JSON.stringify(message.result?.['capabilities']), /listChanged|subscribe/)
})

t.test('a method of a capability that the server lacks is not found, and the server gets nothing', async (t) => {
  const legacy = await LegacyHttp.start(t, { capabilities: { tools: {} } })
  const { url } = await startBridge(t, { url: legacy.url })
  for (const method of ['prompts/list', 'resources/list', 'completion/complete']) {
    const answer = await call(url, method, { uri: 'x', name: 'x' })
    error(t, answer, 404, { code: -32601 }, method)
    t.same(legacy.of(method), [])
  }
  t.match(await call(url, 'tools/list'), { status: 200 })
})

t.test('checks headers against the body', async (t) => {
  const legacy = await LegacyHttp.start(t)
  const { url } = await startBridge(t, { url: legacy.url })
  const mirrored = (args: Record<string, unknown>, headers: CallOptions['headers'] = {}) =>
    call(url, 'tools/call', { name: 'mirrored', arguments: args }, { headers })

  t.test('a header that is missing or wrong is a mismatch', async (t) => {
    const cases: [method: string, params: Record<string, unknown>, headers: CallOptions['headers']][] = [
      ['tools/list', {}, { 'mcp-method': undefined }],
      ['tools/list', {}, { 'mcp-method': 'tools/call' }],
      ['tools/list', {}, { 'mcp-method': 'TOOLS/LIST' }],
      ['tools/call', { name: 'echo' }, { 'mcp-name': undefined }],
      ['tools/call', { name: 'echo' }, { 'mcp-name': 'Echo' }],
      ['prompts/get', { name: 'greet' }, { 'mcp-name': undefined }],
      ['resources/read', { uri: 'test://x' }, { 'mcp-name': undefined }],
      ['resources/read', { uri: 'test://x' }, { 'mcp-name': 'test://y' }],
    ]
    const before = legacy.received.length
    for (const [method, params, headers] of cases) {
      error(
        t,
        await call(url, method, params, { headers, id: 'h' }),
        400,
        { code: -32020 },
        `${method} ${JSON.stringify(headers)}`,
      )
    }
    t.equal(legacy.received.length, before, 'and the server hears nothing')
  })

  t.test('decodes a name in Base64, strictly', async (t) => {
    const named = (header: string) => call(url, 'prompts/get', { name: '日本' }, { headers: { 'mcp-name': header } })
    t.equal((await named('=?base64?5pel5pys?=')).status, 200)
    error(t, await named('=?base64?5pel5pys=?='), 400, { code: -32020 })
    error(t, await named('=?base64?5pel_pys?='), 400, { code: -32020 })
  })

  t.test('space around a value and the case of a name do not matter, the case of a value does', async (t) => {
    const headers = {
      'mcp-method': undefined,
      'MCP-METHOD': ' \ttools/list ',
      'mcp-protocol-version': undefined,
      'Mcp-Protocol-Version': ' 2026-07-28\t',
    }
    t.equal((await call(url, 'tools/list', {}, { headers })).status, 200)
  })

  t.test('mirrored parameters must match, by their type', async (t) => {
    t.equal((await mirrored({ count: 42 }, { 'mcp-param-count': '42.0' })).status, 200, 'accepted')
    error(t, await mirrored({ count: 42 }, { 'mcp-param-count': '43' }), 400, { code: -32020 })
    error(t, await mirrored({ region: 'eu' }), 400, { code: -32020 })
    t.equal((await mirrored({ region: null })).status, 200)
    t.equal((await mirrored({})).status, 200)
    error(t, await mirrored({ region: 'eu' }, { 'Mcp-Param-Region': ['eu', 'us'] }), 400, { code: -32020 })
  })

  t.test('refuses a second header of those that decide', async (t) => {
    const twice = await call(url, 'tools/list', {}, { headers: { 'mcp-method': ['tools/list', 'tools/call'] } })
    error(t, twice, 400, { code: -32020 })
    t.equal(
      (await call(url, 'tools/list', {}, { headers: { 'mcp-protocol-version': '2026-07-28, 2026-07-28' } })).status,
      200,
    )
    const many = Object.fromEntries(Array.from({ length: 101 }, (_, i) => [`x-${i}`, '1']))
    error(t, await call(url, 'tools/list', {}, { headers: many }), 431, { code: -32600 })
  })
})

t.test('on stdio there are no headers to validate, and the rest is the same', async (t) => {
  const stdio = legacyStdio(t)
  const { url } = await startBridge(t, stdio.server)
  for (const [method, params, definition] of METHODS) {
    const { message } = await call(url, method, params)
    t.same(problems('2026-07-28', definition, message.result), [], method)
  }
})
