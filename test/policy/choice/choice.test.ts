/** What clients see and can use of a scripted server, by `tools`, `prompts` and `resources`. */
import fc from 'fast-check'
import t from 'tap'
import { Fault } from '../../../src/base/fault/fault.js'
import { Memory, unlimited } from '../../../src/base/limits/memory.js'
import { write } from '../../../src/base/rpc/splice.js'
import { type Call, type Final, ignoreNotifications, type Reply } from '../../../src/mcp/protocol/call.js'
import { methods } from '../../../src/mcp/protocol/methods.js'
import { type ChoiceOptions, choice } from '../../../src/middle/policy/choice/choice.js'
import { callOf, Played, payload, result, toolCall } from '../../support/calls.js'

const TOOLS = [
  { name: 'get_x', description: 'Gets x' },
  { name: 'get_admin' },
  {
    name: 'search_code',
    title: 'Search code',
    annotations: { title: 'Old', openWorldHint: true },
    inputSchema: {
      type: 'object',
      properties: { q: { type: 'string' }, org: { type: 'string', 'x-mcp-header': 'Org' } },
      required: ['org', 'q'],
    },
  },
  { name: 'search' },
  { name: 'write_file' },
]
const PROMPTS = [{ name: 'greet' }, { name: 'secret' }]
const RESOURCES = ['docs://a', 'docs://secret', 'file:///a'].map((uri) => ({ uri, name: uri }))
const TEMPLATES = ['docs://{id}', 'file:///{path}'].map((uriTemplate) => ({ uriTemplate, name: uriTemplate }))
const LISTS: Record<string, object> = {
  'tools/list': { tools: TOOLS },
  'prompts/list': { prompts: PROMPTS },
  'resources/list': { resources: RESOURCES },
  'resources/templates/list': { resourceTemplates: TEMPLATES },
  'resources/directory/read': { resources: RESOURCES },
  'skills/list': { skills: RESOURCES },
}

type Plan = Partial<ChoiceOptions> & { lists?: Record<string, object | string> }

function setUp({ lists = {}, ...options }: Plan) {
  const now = { ms: 0 }
  const server = new Played(({ method }): Reply => result({ ...LISTS, ...lists }[method] ?? {}))
  const policy = choice({ server: 'github', memory: unlimited(), now: () => now.ms, ...options })
  const handle = policy(server.handle)
  const ask = async (call: Call) => {
    const last = await handle(call)
    return last.kind === 'result' ? (JSON.parse(write(last.result)) as Record<string, unknown>) : last
  }
  const listed = async (method = 'tools/list', key = 'tools', named = 'name') => {
    const list = (await ask(callOf({ method })))[key as never] as Record<string, unknown>[]
    return list.map((item) => item[named])
  }
  const refusal = async (call: Call) => {
    const error = await handle(call).then(
      () => undefined,
      (failed: unknown) => failed,
    )
    return error instanceof Fault ? error : undefined
  }
  return { server, now, handle, ask, listed, refusal }
}

const chosen: [what: string, rules: { allow?: string[]; deny?: string[] }, shown: string[]][] = [
  ['nothing is said', {}, TOOLS.map(({ name }) => name)],
  ['some are allowed', { allow: ['get_*', 'search'] }, ['get_x', 'get_admin', 'search']],
  ['some are denied', { deny: ['*_admin', 'w*'] }, ['get_x', 'search_code', 'search']],
  ['some of the allowed are denied', { allow: ['get_*'], deny: ['*_admin'] }, ['get_x']],
  ['none is allowed', { allow: [] }, []],
  ['all are denied', { deny: ['*'] }, []],
  ['a glob is no negation', { deny: ['!get_x'] }, TOOLS.map(({ name }) => name)],
]
for (const [what, { allow, deny = [] }, shown] of chosen)
  t.test(`if ${what}, clients see ${shown.join(', ') || 'nothing'}, and can call nothing else`, async (t) => {
    const { server, listed, handle, refusal } = setUp({ tools: { allow, deny, override: {} } })
    t.same(await listed(), shown)
    for (const { name } of TOOLS) {
      if (shown.includes(name)) await handle(toolCall(name))
      else t.match(await refusal(toolCall(name)), { fault: 'invalidParams', message: `Unknown tool: ${name}` })
    }
    t.same(server.called, shown)
  })

t.test('refuses a hidden item exactly like an unknown one', async (t) => {
  const { refusal } = setUp({
    tools: { deny: ['get_x'], override: {} },
    prompts: { deny: ['greet'] },
    resources: { deny: ['docs://a'] },
  })
  const alike = (a: Fault | undefined, b: Fault | undefined, name: string, other: string) => {
    t.ok(a && b)
    const text = (fault: Fault | undefined) => JSON.stringify([fault?.fault, fault?.toRpcError()])
    t.equal(text(a).replaceAll(name, '…'), text(b).replaceAll(other, '…'))
  }
  alike(await refusal(toolCall('get_x')), await refusal(toolCall('none')), 'get_x', 'none')
  const prompt = (name: string) => callOf({ method: 'prompts/get', params: { name } })
  alike(await refusal(prompt('greet')), await refusal(prompt('none')), 'greet', 'none')
  const read = await refusal(callOf({ method: 'resources/read', params: { uri: 'docs://a' } }))
  t.match(read?.toRpcError(), { code: -32602, message: 'Resource not found: docs://a', data: '{"uri":"docs://a"}' })
})

t.test('only listed names can be called, in no other spelling', async (t) => {
  const { server, refusal, now } = setUp({ tools: { deny: ['write_*'], override: {} } })
  for (const name of ['Write_File', 'write_file ', ' write_file', 'write_file\n', 'write\u200b_file', 'ｗrite_file'])
    t.match(await refusal(toolCall(name)), { message: /^Unknown tool/ }, JSON.stringify(name))
  for (const name of ['write-file', 'github.write_file', './write_file', 'unlisted', '__proto__', 'constructor', ''])
    t.match(await refusal(toolCall(name)), { message: /^Unknown tool/ }, JSON.stringify(name))
  t.same(server.called, [])
  t.same(server.methods, ['tools/list'], 'the list is not read for each of them')
  now.ms += 1_001
  await refusal(toolCall('other'))
  t.same(server.methods, ['tools/list', 'tools/list'])
})

const ambiguous: [what: string, params: string][] = [
  ['a name twice', '{"name":"get_x","name":"write_file"}'],
  ['a name twice, the other way round', '{"name":"write_file","name":"get_x"}'],
  ['a name with an escape as well', '{"name":"get_x","n\\u0061me":"write_file"}'],
  ['a name in another case as well', '{"name":"get_x","Name":"write_file"}'],
  ['only a name in another case', '{"NAME":"get_x"}'],
  ['a number', '{"name":1}'],
  ['a list', '{"name":["get_x"]}'],
  ['null', '{"name":null}'],
  ['nothing', '{}'],
]
t.test('does not send a call with a missing or ambiguous name', async (t) => {
  const { server, refusal } = setUp({
    tools: { deny: ['write_*'], override: {} },
    prompts: { deny: ['secret'] },
    resources: { deny: ['docs://secret'] },
  })
  for (const [what, params] of ambiguous) {
    t.match(await refusal(callOf({ method: 'tools/call', params })), { fault: 'invalidParams' }, what)
    const prompt = params.replaceAll('get_x', 'greet').replaceAll('write_file', 'secret')
    t.match(await refusal(callOf({ method: 'prompts/get', params: prompt })), { fault: 'invalidParams' }, what)
    const uri = params
      .replaceAll('get_x', 'docs://a')
      .replaceAll('write_file', 'docs://secret')
      .replaceAll(/n(\\u0061|a)me/gi, (name) => ({ name: 'uri', Name: 'Uri', NAME: 'URI' })[name] ?? '\\u0075ri')
    for (const method of ['resources/read', 'skills/get', 'resources/directory/read'])
      t.match(await refusal(callOf({ method, params: uri })), { fault: 'invalidParams' }, `${what} ${method}`)
  }
  t.notOk(
    server.methods.some((method) => !method.endsWith('/list')),
    server.methods.join(),
  )
})

t.test('translates the name of a renamed tool, and refuses the original name', async (t) => {
  const override = { search_code: { name: 'search' }, get_x: { name: 'write_file' }, write_file: { name: 'get_x' } }
  const { server, listed, handle, refusal } = setUp({ tools: { deny: [], override } })
  t.same(await listed(), ['write_file', 'get_admin', 'search', 'get_x'], 'the one called search is another one')
  for (const name of ['search', 'get_x', 'write_file', 'get_admin']) await handle(toolCall(name))
  t.same(server.called, ['search_code', 'write_file', 'get_x', 'get_admin'])
  t.match(await refusal(toolCall('search_code')), { message: 'Unknown tool: search_code' })
})

t.test('the new name of a hidden tool hides no other tool', async (t) => {
  const { listed } = setUp({ tools: { deny: ['search_code'], override: { search_code: { name: 'search' } } } })
  t.same(await listed(), ['get_x', 'get_admin', 'search', 'write_file'])
})

t.test('replaces the description of a configured tool, and keeps others byte for byte', async (t) => {
  const other = '{ "name":"get_x" ,"n":1.0,"inputSchema":{"type":"object","x":9007199254740993} }'
  const text = `{ "tools" : [ ${other} , ${JSON.stringify(TOOLS[2])},{"name":"write_file"} ] , "nextCursor":"2" }`
  const { handle } = setUp({
    tools: {
      deny: ['write_*'],
      override: {
        search_code: {
          title: 'Find',
          description: 'Finds "code"',
          annotations: { readOnlyHint: true },
          set: { org: 'acme' },
        },
      },
    },
    lists: { 'tools/list': text },
  })
  const last = (await handle(callOf({}))) as Final & { kind: 'result' }
  const shown = write(last.result)
  t.ok(shown.startsWith(`{"tools" : [ ${other} , {"name":"search_code"`), shown)
  t.ok(shown.endsWith('} ],"nextCursor":"2"}'), shown)
  t.same((JSON.parse(shown) as { tools: unknown[] }).tools[1], {
    name: 'search_code',
    title: 'Find',
    annotations: { title: 'Find', openWorldHint: true, readOnlyHint: true },
    inputSchema: { type: 'object', properties: { q: { type: 'string' } }, required: ['q'] },
    description: 'Finds "code"',
  })
})

t.test('edits a list once, however often it is returned', async (t) => {
  const kept = result({ tools: TOOLS })
  const server = new Played(() => kept)
  const policy = choice({ server: 'x', memory: unlimited(), tools: { deny: ['w*'], override: {} } })
  const handle = policy(server.handle)
  const [one, two] = [await handle(callOf({})), await handle(callOf({ principal: 'bob' }))]
  t.equal(one.kind === 'result' && one.result, two.kind === 'result' && two.result)
})

t.test('sends the configured value of a fixed argument', async (t) => {
  const set = { org: 'acme', limits: { max: 3 } }
  const { server, handle, refusal } = setUp({ tools: { deny: [], override: { search_code: { set } } } })
  const call = (params: string) => callOf({ method: 'tools/call', params })
  await handle(call('{"name":"search_code","arguments":{"q": 1.0}}'))
  await handle(call('{"name":"search_code"}'))
  await handle(call('{"name":"search_code","arguments":null}'))
  t.same(
    server.seen.filter(({ method }) => method === 'tools/call').map(({ params }) => write(params)),
    [
      '{"name":"search_code","arguments":{"q": 1.0,"org":"acme","limits":{"max":3}}}',
      '{"name":"search_code","arguments":{"org":"acme","limits":{"max":3}}}',
      '{"name":"search_code","arguments":{"org":"acme","limits":{"max":3}}}',
    ],
  )
  const tried = [
    '{"name":"search_code","arguments":{"org":"evil"}}',
    '{"name":"search_code","arguments":{"org":"acme"}}',
    '{"name":"search_code","arguments":{"\\u006frg":"evil"}}',
    '{"name":"search_code","arguments":{"ORG":"evil"}}',
    '{"name":"search_code","arguments":{"limitſ":{}}}',
    '{"name":"search_code","arguments":{"q":1,"q":2,"org":null}}',
    '{"name":"search_code","arguments":{"q":1},"arguments":{"org":"evil"}}',
    '{"name":"search_code","arguments":{"q":1},"Arguments":{"org":"evil"}}',
    '{"name":"search_code","argumentſ":{"org":"evil"}}',
    '{"name":"search_code","arguments":[{"org":"evil"}]}',
    '{"name":"search_code","arguments":"{\\"org\\":\\"evil\\"}"}',
  ]
  for (const params of tried) t.match(await refusal(call(params)), { fault: 'invalidParams' }, params)
  t.equal(server.called.length, 3)
  t.equal((await refusal(call(tried[3] as string)))?.message, 'The tool has no argument "ORG"')
})

t.test('sends the fixed value in the header that mirrors the argument', async (t) => {
  const tools = { deny: [], override: { search_code: { name: 'find', set: { org: 'acme é' } } } }
  const { server, handle } = setUp({ tools })
  const headers = new Map([
    ['mcp-param-org', 'evil'],
    ['mcp-param-q', '1'],
  ])
  await handle(callOf({ paramHeaders: headers }))
  await handle(toolCall('find', { paramHeaders: headers }))
  await handle(toolCall('find'))
  const calls = server.seen.filter(({ method }) => method === 'tools/call')
  t.same(
    calls.map(({ paramHeaders }) => paramHeaders && [...paramHeaders]),
    [
      [
        ['mcp-param-org', '=?base64?YWNtZSDDqQ==?='],
        ['mcp-param-q', '1'],
      ],
      undefined,
    ],
  )
})

t.test('hidden prompts and resources are neither listed, used, completed nor notified', async (t) => {
  const { server, listed, handle, refusal } = setUp({
    prompts: { deny: ['secret'] },
    resources: { allow: ['docs://*'], deny: ['docs://secret*'] },
  })
  t.same(await listed('prompts/list', 'prompts'), ['greet'])
  t.same(await listed('resources/list', 'resources', 'uri'), ['docs://a'])
  t.same(await listed('resources/templates/list', 'resourceTemplates', 'uriTemplate'), ['docs://{id}'])
  t.same(await listed('skills/list', 'skills', 'uri'), ['docs://a'])
  const inside = callOf({ method: 'resources/directory/read', params: { uri: 'docs://a' } })
  t.match(await handle(inside), { kind: 'result' })
  server.seen.length = 0

  const complete = (ref: object | string) =>
    callOf({
      method: 'completion/complete',
      params: `{"argument":{"name":"a","value":""},"ref":${typeof ref === 'string' ? ref : JSON.stringify(ref)}}`,
    })
  await handle(callOf({ method: 'prompts/get', params: { name: 'greet' } }))
  await handle(callOf({ method: 'resources/read', params: { uri: 'docs://a' } }))
  await handle(complete({ type: 'ref/prompt', name: 'greet' }))
  await handle(complete({ type: 'ref/resource', uri: 'docs://{id}' }))
  const allowed = [...server.methods]
  t.same(allowed, ['prompts/get', 'resources/read', 'completion/complete', 'completion/complete'])
  const refused = [
    callOf({ method: 'prompts/get', params: { name: 'secret' } }),
    callOf({ method: 'resources/read', params: { uri: 'docs://secret' } }),
    callOf({ method: 'resources/read', params: { uri: 'file:///a' } }),
    callOf({ method: 'skills/get', params: { uri: 'docs://x/../secret' } }),
    complete({ type: 'ref/prompt', name: 'secret' }),
    complete({ type: 'ref/prompt', name: 'greet', uri: 'docs://secret' }),
    complete({ type: 'ref/resource', uri: 'file:///{path}' }),
    complete({ type: 'ref/resource', uri: 'docs://{id}', name: 'secret' }),
    complete({ type: 'ref/resource', uri: 'docs://{id}', Name: 'secret' }),
    complete({ type: 'ref/tool', name: 'get_x' }),
    complete('{"type":"ref/prompt","name":"greet","name":"secret"}'),
    complete('{"type":"ref/resource","uri":"docs://{id}","URI":"docs://secret"}'),
    complete('{"type":"ref/prompt","type":"ref/resource","name":"greet","uri":"file:///a"}'),
    complete('{"type":"ref/prompt","name":"greet"},"ref":{"type":"ref/prompt","name":"secret"}'),
    complete('{"type":"ref/prompt","name":"greet"},"Ref":{"type":"ref/prompt","name":"secret"}'),
    complete('["ref/prompt","secret"]'),
    complete('null'),
  ]
  for (const call of refused)
    t.match(await refusal(call), { fault: 'invalidParams' }, `${call.method} ${write(call.params)}`)
  t.same(
    server.methods.filter((method) => !method.endsWith('/list')),
    allowed,
  )
})

t.test('a subscription includes only visible resources, and their notifications', async (t) => {
  const { server, handle, refusal } = setUp({ resources: { deny: ['docs://secret*'] } })
  const filter = '{"toolsListChanged": true,"resourceSubscriptions":["docs://a" , "docs://SECRET",7,"docs://b"]}'
  const updated = (uri: unknown) =>
    ({ kind: 'notification', method: 'notifications/resources/updated', params: payload({ uri }) }) as const
  const changed = { kind: 'notification', method: 'notifications/tools/list_changed', params: payload({}) } as const
  server.answer = () => [
    updated('docs://a'),
    updated('docs://secret/1'),
    updated(7),
    updated('docs://x/../secret'),
    changed,
    result({}),
  ]
  const heard: string[] = []
  await handle(
    callOf({
      method: 'subscriptions/listen',
      params: `{"notifications":${filter}}`,
      notify: ({ method, params }) => {
        heard.push(`${method} ${write(params)}`)
        return undefined
      },
    }),
  )
  t.equal(
    write(server.seen[0]?.params as Call['params']),
    '{"notifications":{"toolsListChanged": true,"resourceSubscriptions":["docs://a","docs://b"]}}',
  )
  t.same(heard, ['notifications/resources/updated {"uri":"docs://a"}', 'notifications/tools/list_changed {}'])
  const tried = [
    '{"notifications":{"resourceSubscriptions":"docs://secret"}}',
    '{"notifications":{"resourceSubscriptions":[],"resourceSubscriptions":["docs://secret"]}}',
    '{"notifications":{"resourceSubscriptionſ":["docs://secret"]}}',
    '{"notifications":{},"notifications":{"resourceSubscriptions":["docs://secret"]}}',
    '{"notifications":{},"Notifications":{"resourceSubscriptions":["docs://secret"]}}',
  ]
  for (const params of tried)
    t.match(await refusal(callOf({ method: 'subscriptions/listen', params })), { fault: 'invalidParams' }, params)
  t.equal(server.seen.length, 1)
})

t.test('decides on every known method, and refuses all others', async (t) => {
  const { server, handle, refusal } = setUp({ prompts: { deny: [] } })
  const naming = {
    params: { name: 'greet', uri: 'docs://a', ref: { type: 'ref/prompt', name: 'greet' } },
  }
  for (const [method, { eras }] of Object.entries(methods)) {
    server.seen.length = 0
    if (eras === 'legacy') t.match(await refusal(callOf({ method, ...naming })), { fault: 'methodNotFound' }, method)
    else {
      await handle(callOf({ method, ...naming }))
      t.ok(server.methods.includes(method), method)
    }
  }
  for (const method of ['ping', 'logging/setLevel', 'resources/subscribe', 'resources/unsubscribe', 'tasks/list']) {
    server.seen.length = 0
    await handle({ ...callOf({ method, ...naming }), link: { ask: () => Promise.reject(new Error('not asked here')) } })
    t.same(server.methods, [method], 'in a session of the legacy era')
  }
  server.seen.length = 0
  for (const ref of [{ type: 'ref/tool', name: 'get_x' }, 'greet', ['greet'], undefined])
    t.match(await refusal(callOf({ method: 'completion/complete', params: { ref } })), { fault: 'invalidParams' })
  for (const method of ['vendor/call', 'TOOLS/CALL', 'tools/call ', '__proto__', 'toString'])
    t.match(await refusal(callOf({ method, ...naming })), { fault: 'methodNotFound' }, method)
  t.same(server.methods, [])
})

t.test(
  'all passes if it says that it hides nothing: methods that it does not know, and tools that are not listed',
  async (t) => {
    const all = { allow: ['*'], deny: [] }
    const capabilities = { tools: {}, experimental: { x: {} }, vendor: {}, extensions: { 'com.acme/x': {} } }
    const lists = { 'server/discover': { capabilities } }
    const rows: [name: string, options: object, passes: boolean][] = [
      ['all tools', { tools: { ...all, override: {} } }, true],
      ['all of each kind', { tools: { ...all, override: {} }, prompts: all, resources: all }, true],
      ['a denied tool', { tools: { ...all, deny: ['x'], override: {} } }, false],
      ['a tool in other words', { tools: { ...all, override: { x: { title: 'X' } } } }, false],
      ['some prompts', { tools: { ...all, override: {} }, prompts: { allow: ['a*'], deny: [] } }, false],
    ]
    for (const [name, options, passes] of rows) {
      const server = new Played(({ method }) => result(lists[method as keyof typeof lists] ?? {}))
      const handle = choice({ server: 'x', memory: unlimited(), ...options })(server.handle)
      const asked = handle(callOf({ method: 'vendor/call' })).then(
        () => true,
        () => false,
      )
      t.equal(await asked, passes, name)
      const called = handle(toolCall('not listed')).then(
        () => true,
        () => false,
      )
      t.equal(await called, passes, name)
      const discovered = (await handle(callOf({ method: 'server/discover' }))) as { result: Call['params'] }
      const said = JSON.parse(write(discovered.result)) as { capabilities: object }
      t.same(said.capabilities, passes ? capabilities : { tools: {} }, name)
    }
  },
)

t.test('drops members that could be mistaken for the list', async (t) => {
  const texts: [text: string, names: string[]][] = [
    ['{"tools":[{"name":"write_file"}],"tools":[{"name":"get_x"}]}', ['get_x']],
    ['{"Tools":[{"name":"write_file"}],"tools":[{"name":"get_x"}]}', ['get_x']],
    ['{"toolſ":[{"name":"write_file"}],"tools":[{"name":"get_x"}]}', ['get_x']],
    [
      '{"tools":[{"name":"get_x"},{"name":"get_x","name":"write_file"},{"Name":"write_file"},"write_file",7]}',
      ['get_x'],
    ],
    ['{"tools":{"0":{"name":"write_file"}}}', []],
    ['{"tools":"write_file"}', []],
  ]
  for (const [text, names] of texts) {
    const { handle } = setUp({ tools: { deny: ['write_*'], override: {} }, lists: { 'tools/list': text } })
    const last = (await handle(callOf({}))) as Final & { kind: 'result' }
    t.notMatch(write(last.result), 'write_file', text)
    t.same(
      (JSON.parse(write(last.result)) as { tools: { name: string }[] }).tools.map(({ name }) => name),
      names,
      text,
    )
  }
})

t.test('accepts the names listed to each caller, on all pages', async (t) => {
  const pages: Record<string, object> = {
    '': { tools: [{ name: 'one' }], nextCursor: '2' },
    '2': { tools: [{ name: 'two' }] },
  }
  const server = new Played(({ method, params, principal }) => {
    if (method !== 'tools/list') return result({})
    if (principal === 'bob') return result({ tools: [{ name: 'three' }] })
    return result(pages[(JSON.parse(write(params)) as { cursor?: string }).cursor ?? ''] as object)
  })
  const policy = choice({ server: 'x', memory: unlimited(), tools: { deny: [], override: {} } })
  const handle = policy(server.handle)
  const may = (name: string, principal: string) =>
    handle(toolCall(name, { principal })).then(
      () => true,
      () => false,
    )
  t.same(await Promise.all(['one', 'two', 'three'].map((name) => may(name, 'alice'))), [true, true, false])
  t.same(await Promise.all(['one', 'two', 'three'].map((name) => may(name, 'bob'))), [false, false, true])
  t.equal(server.methods.filter((method) => method === 'tools/list').length, 3, 'calls wait for the same list')
})

t.test('a new tool can be called as soon as the client has listed it', async (t) => {
  const lists = { 'tools/list': { tools: [{ name: 'old' }] } as object }
  const { handle, refusal } = setUp({ tools: { deny: [], override: {} }, lists })
  t.ok(await refusal(toolCall('new')))
  lists['tools/list'] = { tools: [{ name: 'new' }] }
  t.ok(await refusal(toolCall('new')), 'the list is current')
  await handle(callOf({}))
  t.notOk(await refusal(toolCall('new')))
})

t.test('reads the list for each call without memory, and for very many tools', async (t) => {
  const many = { tools: Array.from({ length: 2_500 }, (_, at) => ({ name: `tool_${at}` })) }
  for (const memory of [new Memory({ max: 0 }), unlimited()]) {
    const { server, handle } = setUp({ tools: { deny: [], override: {} }, memory, lists: { 'tools/list': many } })
    for (const name of ['tool_0', 'tool_2499', 'tool_1200']) await handle(toolCall(name))
    t.same(server.called, ['tool_0', 'tool_2499', 'tool_1200'])
  }
})

t.test('a cancelled call does not wait for the list', async (t) => {
  const { server, refusal } = setUp({ tools: { deny: [], override: {} } })
  let answer: (list: Final) => void = () => {}
  server.answer = () =>
    new Promise((resolve) => {
      answer = resolve
    })
  const hangUp = new AbortController()
  const refused = refusal(toolCall('get_x', { signal: hangUp.signal }))
  hangUp.abort(new Fault('upstreamTimeout', 'Given up'))
  t.match(await refused, { message: 'Given up' })
  answer(result({ tools: [] }))
})

t.test("logs the server's name of a renamed tool", async (t) => {
  const { handle } = setUp({ tools: { deny: [], override: { search_code: { name: 'find' } } } })
  const noted: object[] = []
  const log = { note: (fields: object) => noted.push(fields), warn() {} }
  await handle(toolCall('find', { log }))
  await handle(toolCall('get_x', { log }))
  t.same(noted, [{ original: 'search_code' }])
})

t.test('treats a server without lists as empty', async (t) => {
  const { server, refusal } = setUp({ tools: { deny: [], override: {} } })
  const answers: (() => Reply)[] = [
    () => ({ kind: 'error', error: { code: -32601, message: 'Method not found' } }),
    () => {
      throw new Fault('methodNotFound', 'Method not found')
    },
  ]
  for (const answer of answers) {
    server.answer = answer
    t.match(await refusal(toolCall('get_x')), { message: 'Unknown tool: get_x' })
  }
  server.answer = () => ({ kind: 'error', error: { code: -32000, message: 'Busy' } })
})

t.test('a call fails with the failure of its list', async (t) => {
  const { server, refusal } = setUp({ tools: { deny: [], override: {} } })
  server.answer = () => ({ kind: 'error', error: { code: -32000, message: 'Busy' } })
  t.match(await refusal(toolCall('get_x')), {
    fault: 'upstreamRefused',
    message: 'github refused to answer tools/list: Busy',
  })
})

const WORDS = ['get', 'set', 'admin', 'x']
const word = fc.constantFrom(...WORDS)
const name = fc.array(word, { minLength: 1, maxLength: 3 }).map((words) => words.join('_'))
const glob = fc.oneof(
  name,
  word.map((one) => `${one}_*`),
  word.map((one) => `*_${one}`),
  fc.constant('*'),
)
const rules = fc.record({
  allow: fc.option(fc.array(glob, { maxLength: 3 }), { nil: undefined }),
  deny: fc.array(glob, { maxLength: 3 }),
})
const uriOf = (one: string) => `test://${one.replaceAll('_', '/')}`
/** Spellings of a name with which an attacker may try to pass. */
const spelling = fc.constantFrom<(text: string) => string>(
  (text) => text,
  (text) => text.toUpperCase(),
  (text) => ` ${text}`,
  (text) => `${text}\u0000`,
  (text) => text.replace('a', 'а'),
  (text) => text.replace('s', 'ſ'),
  (text) => text.replace(/[a-z]$/, (last) => `%${last.charCodeAt(0).toString(16)}`),
  (text) => text.replace(':', ':/../'),
  (text) => `${text}#x`,
)

t.test('no method can name a denied item, and visible ones can be used', async () => {
  const configured = fc.record({
    tools: rules,
    prompts: rules,
    resources: rules,
    renamed: fc.uniqueArray(fc.tuple(name, name), { selector: ([, to]) => to, maxLength: 2 }),
    names: fc.uniqueArray(name, { maxLength: 8 }),
    spelled: fc.array(fc.tuple(name, spelling), { maxLength: 4 }),
  })
  await fc.assert(
    fc.asyncProperty(configured, async ({ tools, prompts, resources, renamed, names, spelled }) => {
      const lists = {
        'tools/list': { tools: names.map((one) => ({ name: one })) },
        'prompts/list': { prompts: names.map((one) => ({ name: one })) },
        'resources/list': { resources: names.map((one) => ({ name: one, uri: uriOf(one) })) },
      }
      const kinds = [tools, prompts, resources]
      fc.pre(renamed.length > 0 || !kinds.every(({ allow, deny }) => allow?.includes('*') && deny.length === 0))
      const uris = (patterns: string[]) => patterns.map((one) => (one === '*' ? '*' : uriOf(one)))
      const { server, handle, listed } = setUp({
        lists,
        tools: { ...tools, override: Object.fromEntries(renamed.map(([from, to]) => [from, { name: to }])) },
        prompts,
        resources: { allow: resources.allow && uris(resources.allow), deny: uris(resources.deny) },
      })
      const shown = {
        tools: (await listed()) as string[],
        prompts: (await listed('prompts/list', 'prompts')) as string[],
        uris: (await listed('resources/list', 'resources', 'uri')) as string[],
      }
      server.seen.length = 0
      const asked = [
        ...names,
        ...names.map(uriOf),
        ...spelled.flatMap(([one, spell]) => [spell(one), spell(uriOf(one))]),
      ]
      const isDenied = ({ allow, deny }: { allow?: string[] | undefined; deny: string[] }, one: string) => {
        const fits = (pattern: string) => new RegExp(`^${pattern.replaceAll('*', '.*')}$`).test(one)
        return deny.some(fits) || (allow !== undefined && !allow.some(fits))
      }
      let used = 0
      for (const one of asked)
        for (const method of [...Object.keys(methods), 'vendor/x']) {
          const before = server.seen.length
          const params = {
            ...{ name: one, uri: one, taskId: one, arguments: { name: one } },
            ref: one.includes(':') ? { type: 'ref/resource', uri: one } : { type: 'ref/prompt', name: one },
            notifications: { resourceSubscriptions: [one] },
          }
          const isUsed = await handle(callOf({ method, params, notify: ignoreNotifications })).then(
            () => true,
            () => false,
          )
          for (const call of server.seen.slice(before)) {
            const { name: named, uri, ref, notifications } = JSON.parse(write(call.params)) as typeof params
            if (call.method === 'tools/call' && (!names.includes(named) || isDenied(tools, named))) return false
            if (call.method === 'prompts/get' && (!names.includes(named) || isDenied(prompts, named))) return false
            const isHidden = (each: string) => isOurs(each) && isDenied(resources, nameIn(each))
            if (['resources/read', 'skills/get'].includes(call.method) && isHidden(uri)) return false
            if (call.method === 'completion/complete')
              if (ref.uri !== undefined ? isHidden(ref.uri) : isDenied(prompts, ref.name ?? '')) return false
            if (call.method === 'subscriptions/listen' && notifications.resourceSubscriptions.some(isHidden))
              return false
            if (call.method === 'vendor/x') return false
          }
          if (method === 'tools/call' && isUsed !== shown.tools.includes(one)) return false
          if (method === 'prompts/get' && isUsed !== shown.prompts.includes(one)) return false
          if (method === 'resources/read' && shown.uris.includes(one) && !isUsed) return false
          used += isUsed ? 1 : 0
        }
      return used >= 0
    }),
    { numRuns: 100 },
  )
})

/** Whether a careless server reads a text as one of its URIs. */
function isOurs(uri: string): boolean {
  return /^\s*test:/i.test(uri)
}

/** The URI as which it reads the text. */
function nameIn(uri: string): string {
  const plain = decodeURIComponent(uri).replace(/#.*$/, '').toLowerCase().trim()
  const path: string[] = []
  for (const step of plain.replace(/^test:/, '').split('/')) {
    if (step === '..') path.pop()
    else if (step !== '') path.push(step)
  }
  return path.join('_')
}
