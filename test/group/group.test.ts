/** A group of scripted servers: which server gets a call, and what clients see. */
import { setImmediate } from 'node:timers/promises'
import t from 'tap'
import { Fault } from '../../src/base/fault/fault.js'
import { type Payload, parseObject, raw, value, write } from '../../src/base/rpc/splice.js'
import { HangUp } from '../../src/base/time/hang-up.js'
import type { AskedClient } from '../../src/mcp/protocol/call.js'
import { until } from '../support/eventually.js'
import { ask, callOf, errorOf, FakeServer, faultOf, groupOf, inputOf, named, paramsOf, resultOf } from './fakes.js'

const content = (text: string) => ({ content: [{ type: 'text', text }] })
const names = (result: Record<string, unknown>, key = 'tools', id = 'name') =>
  (result[key] as Record<string, unknown>[]).map((one) => one[id])
const INVALID = -32602

t.test("sends a call to the server of its prefix, with the server's own name", async (t) => {
  const [a, b] = [new FakeServer({ 'tools/call': content('a') }), new FakeServer({ 'tools/call': content('b') })]
  const { group } = groupOf({ a, b })
  t.same(await ask(group, 'tools/call', { name: 'b__search__all', arguments: { q: 1 } }), content('b'))
  t.same(b.got('tools/call'), [{ name: 'search__all', arguments: { q: 1 } }])
  t.same(a.calls, [])
})

t.test('forwards arguments byte for byte', async (t) => {
  const a = new FakeServer({ 'tools/call': content('a') })
  const { group } = groupOf({ a, b: new FakeServer() })
  const text = '{ "name" : "a__x" , "arguments": {"n":1.0, "big":12345678901234567890,"e":"\\u00e9"} }'
  await group.handle({ ...callOf('tools/call'), params: parseObject(text) })
  const sent = a.calls[0]?.params ?? parseObject('{}')
  t.equal(raw(sent, 'arguments'), '{"n":1.0, "big":12345678901234567890,"e":"\\u00e9"}')
})

t.test('refuses an unknown name like a single server, without a request to any server', async (t) => {
  const servers = { a: new FakeServer({ 'tools/list': { tools: named('x') } }), b: new FakeServer() }
  const { group } = groupOf(servers)
  for (const name of ['x', 'c__x', 'A__x', '__x', 'a_x', '', 'a']) {
    const fault = await faultOf(group, 'tools/call', { name })
    t.match(fault.toRpcError(), { code: INVALID }, name)
  }
  t.match((await faultOf(group, 'prompts/get', { name: 5 })).toRpcError(), { code: INVALID })
  t.match((await faultOf(group, 'tasks/get', { taskId: 'x' })).toRpcError(), { code: INVALID })
  t.same([...servers.a.calls, ...servers.b.calls], [])
})

t.test('lists the items of all servers, in the order of the configuration', async (t) => {
  const a = new FakeServer({ 'tools/list': { tools: named('z', 'a') } })
  const b = new FakeServer({ 'tools/list': { tools: named('z') } })
  const { group } = groupOf({ b, none: new FakeServer(), a })
  t.same(names(await ask(group, 'tools/list')), ['b__z', 'a__z', 'a__a'])
  const reply = await group.handle(callOf('tools/list'))
  t.match(reply, { cache: { ttlMs: 0, scope: 'private' } })
  t.same(JSON.parse(reply.server ?? ''), { name: 'team', title: 'Team', version: '1.2.3' })
})

t.test('a merged list expires when its first part expires', async (t) => {
  const listing = (ttlMs: number, scope: 'public' | 'private') => () =>
    resultOf({ tools: named('x') }, { cache: { ttlMs, scope } })
  const [a, b] = [
    new FakeServer({ 'tools/list': listing(500, 'public') }),
    new FakeServer({ 'tools/list': listing(300, 'public') }),
  ]
  const { group } = groupOf({ a, b, none: new FakeServer() })
  t.match(await group.handle(callOf('tools/list')), { cache: { ttlMs: 300, scope: 'public' } })
  b.answers['tools/list'] = listing(300, 'private')
  t.match(await group.handle(callOf('tools/list')), { cache: { ttlMs: 300, scope: 'private' } })
})

/** A list of `count` tools in pages of `size`, whose cursors are numbers. */
const paged = (count: number, size: number) => (call: Parameters<typeof paramsOf>[0]) => {
  const at = Number(value(call.params, 'cursor') ?? 0)
  const all = Array.from({ length: count }, (_, i) => `t${i}`)
  const next = at + size < count ? { nextCursor: String(at + size) } : {}
  return resultOf({ tools: named(...all.slice(at, at + size)), ...next })
}

t.test('each page has the next page of each server, and all pages together are the lists of all servers', async (t) => {
  const servers = {
    a: new FakeServer({ 'tools/list': paged(5, 2) }),
    b: new FakeServer({ 'tools/list': paged(1, 1) }),
    c: new FakeServer({ 'tools/list': paged(4, 3) }),
  }
  for (const bareNames of [false, true]) {
    const { group } = groupOf(servers, { bareNames })
    const pages: unknown[][] = []
    for (let cursor: unknown; pages.length === 0 || cursor !== undefined; ) {
      const page = await ask(group, 'tools/list', cursor === undefined ? {} : { cursor })
      pages.push(names(page))
      cursor = page['nextCursor']
    }
    const expected = [['a__t0', 'a__t1', 'b__t0', 'c__t0', 'c__t1', 'c__t2'], ['a__t2', 'a__t3', 'c__t3'], ['a__t4']]
    // Without prefixes, all names are of the first server.
    t.same(pages, bareNames ? [['t0', 't1'], ['t2', 't3'], ['t4']] : expected)
  }
})

t.test('refuses a cursor of another list', async (t) => {
  const { group, planOf } = groupOf(
    { a: new FakeServer({ 'tools/list': paged(5, 2), 'prompts/list': { prompts: [] } }) },
    { bareNames: false },
  )
  const { nextCursor } = await ask(group, 'tools/list')
  const wrong = ['', 'x', 5, `${nextCursor as string}x`]
  for (const cursor of wrong) t.match((await faultOf(group, 'tools/list', { cursor })).toRpcError(), { code: INVALID })
  t.match(
    (await faultOf(group, 'prompts/list', { cursor: nextCursor })).toRpcError(),
    { code: INVALID },
    'of another list',
  )
  t.same(names(await ask(group, 'tools/list', { cursor: nextCursor })), ['a__t2', 'a__t3'])
  group.change(planOf({ a: new FakeServer(), b: new FakeServer() }))
  t.match(
    (await faultOf(group, 'tools/list', { cursor: nextCursor })).toRpcError(),
    { code: INVALID },
    'of other servers',
  )
})

t.test('a later page that fails does not end the list', async (t) => {
  const a = new FakeServer({ 'tools/list': paged(4, 2) })
  const { group } = groupOf({ a, b: new FakeServer({ 'tools/list': paged(2, 1) }) })
  const { nextCursor } = await ask(group, 'tools/list')
  a.down = new Fault('upstreamUnavailable', 'a is down')
  const page = await ask(group, 'tools/list', { cursor: nextCursor })
  t.same(names(page), ['b__t1'])
  t.match(page, { _meta: { 'io.github.mcp-bridge/unavailable': [{ server: 'a', reason: 'upstream_unavailable' }] } })
})

t.test(
  'a server that is down does not keep the others from being listed, and what was known of it stays',
  async (t) => {
    const a = new FakeServer({ 'tools/list': { tools: named('x') } })
    const { group, log } = groupOf({ a, b: new FakeServer({ 'tools/list': { tools: named('y') } }) })
    a.down = new Fault('upstreamUnavailable', 'a is down')
    const first = await ask(group, 'tools/list')
    t.same(names(first), ['b__y'])
    t.same(first['_meta'], {
      'io.github.mcp-bridge/unavailable': [{ server: 'a', reason: 'upstream_unavailable', message: 'a is down' }],
    })
    t.match(await group.handle(callOf('tools/list')), { cache: { ttlMs: 0 } })
    t.same([...group.missing], [['a', 'a is down']])
    a.down = undefined
    t.same(names(await ask(group, 'tools/list')), ['a__x', 'b__y'])
    a.down = new Fault('upstreamUnavailable', 'a is down')
    t.same(names(await ask(group, 'tools/list')), ['a__x', 'b__y'], 'it is known from before')
    t.same(names(await ask(group, 'tools/list', {}, { principal: 'bob' })), ['b__y'], 'not to somebody else')
    t.same(
      log.map(({ event }) => event),
      ['group_incomplete', 'group_complete', 'group_incomplete'],
    )
    const call = await faultOf(group, 'tools/call', { name: 'a__x' })
    t.match(JSON.parse(call.toRpcError().data ?? ''), { outcome: 'not_executed' }, 'its own fault')
  },
)

t.test('if all servers fail, a list returns the error of the first one', async (t) => {
  const [a, b] = [new FakeServer(), new FakeServer()]
  a.down = new Fault('upstreamUnavailable', 'a is down')
  b.down = new Fault('upstreamUnavailable', 'b is down')
  const { group } = groupOf({ a, b })
  t.equal((await faultOf(group, 'tools/list')).message, 'a is down')
})

t.test('without a required server, lists and discovery are an error', async (t) => {
  const [a, b] = [new FakeServer({ 'tools/list': { tools: [] } }), new FakeServer()]
  b.down = new Fault('upstreamUnavailable', 'b is down')
  const { group } = groupOf({ a, b }, { required: new Set(['b']) })
  t.equal((await faultOf(group, 'tools/list')).message, 'b is down')
  t.equal((await faultOf(group, 'server/discover')).message, 'b is down')
})

t.test(
  'a list does not wait longer for a slow server than it may, and then nobody does; what comes late is told',
  async (t) => {
    let answer = (_reply: ReturnType<typeof resultOf>) => {}
    const slow = new FakeServer({
      'tools/list': () => new Promise((resolve) => (answer = resolve)),
      'prompts/list': () => new Promise(() => {}),
    })
    const { group } = groupOf(
      { slow, b: new FakeServer({ 'tools/list': { tools: named('y') }, 'prompts/list': { prompts: named('p') } }) },
      { wait: { known: 50, first: 50 } },
    )
    const listening = callOf('subscriptions/listen', { notifications: { toolsListChanged: true } })
    const elsewhere = callOf(
      'subscriptions/listen',
      { notifications: { toolsListChanged: true } },
      { principal: 'bob' },
    )
    const ended = Promise.all([group.handle(listening), group.handle(elsewhere)].map((one) => one.catch(() => {})))
    t.same(names(await ask(group, 'tools/list')), ['b__y'])
    t.same(names(await ask(group, 'prompts/list'), 'prompts'), ['b__p'])
    t.equal(slow.got('tools/list').length, 1)
    t.same(names(await ask(group, 'tools/list')), ['b__y'])
    t.equal(slow.got('tools/list').length, 1, 'the question is still open, and is not asked twice')
    answer(resultOf({ tools: named('late') }))
    await untilTold(listening, 'notifications/tools/list_changed')
    t.notOk(
      elsewhere.told.some(({ method }) => method.endsWith('list_changed')),
      'nobody else hears of it',
    )
    slow.answers['tools/list'] = () => new Promise(() => {})
    t.same(names(await ask(group, 'tools/list')), ['slow__late', 'b__y'], 'what came late is known')
    listening.end.abort()
    elsewhere.end.abort()
    await ended
  },
)

async function untilTold(call: ReturnType<typeof callOf>, method: string): Promise<void> {
  while (!call.told.some((told) => told.method === method)) await new Promise((resolve) => setTimeout(resolve, 5))
}

t.test('does not remember the list of a replaced server', async (t) => {
  const gates: (() => void)[] = []
  const old = new FakeServer({
    'tools/list': async () => {
      await new Promise<void>((resolve) => gates.push(resolve))
      return resultOf({ tools: named('hidden') })
    },
  })
  const { group, planOf } = groupOf(
    { a: old, b: new FakeServer({ 'tools/list': { tools: named('b') } }) },
    { wait: { known: 1, first: 1 } },
  )
  t.same(names(await ask(group, 'tools/list')), ['b__b'])
  const fresh = new FakeServer({ 'tools/list': { tools: named('shown') } })
  group.change(
    planOf(
      { a: fresh, b: new FakeServer({ 'tools/list': { tools: named('b') } }) },
      { wait: { known: 60_000, first: 60_000 } },
    ),
  )
  for (const open of gates) open()
  await setImmediate()
  fresh.down = new Fault('upstreamUnavailable', 'down')
  t.same(names(await ask(group, 'tools/list')), ['b__b'])
  group.close()
})

t.test('a cancelled call cancels all of its parts', async (t) => {
  const slow = new FakeServer({
    'tools/list': (call) =>
      new Promise((_resolve, reject) =>
        call.signal.addEventListener('abort', () => reject(call.signal.reason as Error)),
      ),
  })
  const { group } = groupOf({ slow, other: new FakeServer() })
  const call = callOf('tools/list')
  const answer = group.handle(call)
  call.abort(new Fault('requestTimeout', 'gone'))
  await t.rejects(answer, { message: 'gone' })
  t.equal(slow.calls[0]?.signal.aborted, true)
})

t.test('without prefixes, a name of two servers belongs to the first one, which gets the calls', async (t) => {
  const first = new FakeServer({ 'tools/list': { tools: named('search', 'a') }, 'tools/call': content('first') })
  const second = new FakeServer({ 'tools/list': { tools: named('b', 'search') }, 'tools/call': content('second') })
  const { group, log } = groupOf({ first, second }, { bareNames: true })
  t.same(await ask(group, 'tools/call', { name: 'search' }), content('first'), 'also before anything was listed')
  t.same(names(await ask(group, 'tools/list')), ['search', 'a', 'b'])
  t.same(await ask(group, 'tools/call', { name: 'b' }), content('second'))
  t.match(log, [{ event: 'group_name_hidden', server: 'second', name: 'search' }])
  await ask(group, 'tools/list')
  t.equal(log.length, 1, 'it is said once')
  t.match((await faultOf(group, 'tools/call', { name: 'c' })).toRpcError(), { code: INVALID })
})

t.test(
  'without prefixes, a name that a slow server may have is not called unknown before it has answered',
  async (t) => {
    const gates: (() => void)[] = []
    const slow = new FakeServer({
      'tools/list': async () => {
        await new Promise<void>((resolve) => gates.push(resolve))
        return resultOf({ tools: named('late') })
      },
      'tools/call': content('slow'),
      'resources/list': () => new Promise(() => {}),
    })
    const quick = new FakeServer({ 'tools/list': { tools: named('x') }, 'tools/call': content('quick') })
    const dead = new FakeServer()
    dead.down = new Fault('upstreamUnavailable', 'dead')
    const { group } = groupOf({ quick, slow, dead }, { bareNames: true, bareUris: true, wait: { known: 1, first: 1 } })
    t.same(await ask(group, 'tools/call', { name: 'x' }), content('quick'))
    for (const [method, params] of [
      ['tools/call', { name: 'late' }],
      ['resources/read', { uri: 'x:late' }],
    ] as const) {
      const { message, fault, data } = await faultOf(group, method, params)
      t.equal(fault, 'upstreamBusy', method)
      t.match(message, /late\. Not answered yet: slow$/)
      t.same(data, {})
    }
    t.same(slow.got('tools/call'), [])
    t.match(
      (await faultOf(group, 'prompts/get', { name: 'late' })).toRpcError(),
      { code: INVALID },
      'it has no prompts',
    )
    for (const open of gates) open()
    await setImmediate()
    t.same(await ask(group, 'tools/call', { name: 'late' }), content('slow'))

    const caller = { revision: '2026-07-28', capabilities: '{"sampling":{}}' }
    t.same(await ask(group, 'tools/call', { name: 'late' }, { caller }), content('slow'), 'the same person knows it')
    t.equal((await faultOf(group, 'tools/call', { name: 'other' }, { caller })).fault, 'upstreamBusy')
    const stranger = await faultOf(group, 'tools/call', { name: 'late' }, { caller, principal: 'bob' })
    t.equal(stranger.fault, 'upstreamBusy', 'nobody else does')
    group.close()
  },
)

t.test('concurrent calls share a request for lists, and cancelling one cancels no other', async (t) => {
  const open: (() => void)[] = []
  const a = new FakeServer({
    'tools/list': async () => {
      await new Promise<void>((resolve) => open.push(resolve))
      return resultOf({ tools: named('x', 'y') })
    },
    'tools/call': content('a'),
  })
  const { group } = groupOf({ a, b: new FakeServer() }, { bareNames: true })
  const calls = ['x', 'y'].map((name) => ask(group, 'tools/call', { name }))
  await setImmediate()
  for (const one of open) one()
  t.same(await Promise.all(calls), [content('a'), content('a')])
  t.equal(a.got('tools/list').length, 1)

  const first = callOf('tools/call', { name: 'x' }, { principal: 'bob' })
  const given = group.handle(first)
  const other = ask(group, 'tools/call', { name: 'y' }, { principal: 'bob' })
  await setImmediate()
  first.end.abort(new Fault('upstreamTimeout', 'given up'))
  await t.rejects(given, { message: 'given up' })
  await setImmediate()
  for (const one of open) one()
  t.same(await other, content('a'))
})

t.test('requests for lists, made to find a name or URI, contain nothing of the call', async (t) => {
  const lists = { 'tools/list': { tools: named('x') }, 'resources/list': {}, 'resources/templates/list': {} }
  const [a, b] = [new FakeServer({ ...lists, 'tools/call': content('a') }), new FakeServer(lists)]
  const { group } = groupOf({ a, b }, { bareNames: true, bareUris: true })
  const paramHeaders = new Map([['mcp-param-key', 'secret']])
  await ask(group, 'tools/call', { name: 'x', arguments: { key: 'secret' } }, { paramHeaders })
  await faultOf(group, 'resources/read', { uri: 'secret://x' })
  for (const { method, params, paramHeaders: sent } of [...a.calls, ...b.calls])
    if (method !== 'tools/call') {
      t.same(JSON.parse(write(params)), {}, method)
      t.same([...(sent ?? [])], [], method)
    }
})

t.test('prefixes resources, templates and links, and reads them without the prefix', async (t) => {
  const a = new FakeServer({
    'resources/list': {
      resources: [
        { uri: 'file:///a', name: 'a' },
        { uri: 'ui://app', name: 'u' },
      ],
    },
    'resources/templates/list': { resourceTemplates: [{ uriTemplate: 'file:///{p}', name: 't' }] },
    'resources/read': (call) => resultOf({ contents: [{ uri: value(call.params, 'uri'), text: 'x' }] }),
    'tools/call': { content: [{ type: 'resource_link', uri: 'file:///linked', name: 'l' }] },
  })
  const { group } = groupOf({ a, b: new FakeServer() })
  t.same(names(await ask(group, 'resources/list'), 'resources', 'uri'), ['a+file:///a', 'ui://a+app'])
  t.same(names(await ask(group, 'resources/templates/list'), 'resourceTemplates', 'uriTemplate'), ['a+file:///{p}'])
  t.same(await ask(group, 'resources/read', { uri: 'a+file:///a' }), { contents: [{ uri: 'a+file:///a', text: 'x' }] })
  t.same(await ask(group, 'resources/read', { uri: 'ui://a+app' }), { contents: [{ uri: 'ui://a+app', text: 'x' }] })
  t.same(a.got('resources/read'), [{ uri: 'file:///a' }, { uri: 'ui://app' }])
  t.match(await ask(group, 'tools/call', { name: 'a__x' }), { content: [{ uri: 'a+file:///linked' }] })
})

t.test('accepts a URI without prefix if exactly one server has it', async (t) => {
  const reading = {
    'resources/read': (call: Parameters<typeof paramsOf>[0]) =>
      resultOf({ contents: [{ uri: value(call.params, 'uri') }] }),
  }
  const a = new FakeServer({
    ...reading,
    'resources/list': { resources: [{ uri: 'x:both' }, { uri: 'x:a' }] },
    'resources/templates/list': { resourceTemplates: [{ uriTemplate: 'a:{id}' }] },
    'tools/call': { content: [{ type: 'resource_link', uri: 'x:sent' }] },
  })
  const b = new FakeServer({ ...reading, 'resources/list': { resources: [{ uri: 'x:both' }] } })
  const { group } = groupOf({ a, b, c: new FakeServer() })
  t.same(await ask(group, 'resources/read', { uri: 'x:a' }), { contents: [{ uri: 'x:a' }] }, 'it was listed')
  t.same(await ask(group, 'resources/read', { uri: 'a:5' }), { contents: [{ uri: 'a:5' }] }, 'there is a template')
  await ask(group, 'tools/call', { name: 'a__x' })
  t.same(await ask(group, 'resources/read', { uri: 'x:sent' }), { contents: [{ uri: 'x:sent' }] }, 'it was sent')
  const fault = await faultOf(group, 'resources/read', { uri: 'x:both' })
  t.match(fault.toRpcError(), { code: INVALID, message: /a\+x:both or b\+x:both/ })
  t.same(JSON.parse(fault.toRpcError().data ?? ''), { uri: 'x:both' })
  t.match((await faultOf(group, 'resources/read', { uri: 'x:nobody' })).toRpcError(), { code: INVALID })
})

t.test('with original URIs, messages keep their URIs', async (t) => {
  const a = new FakeServer({
    'resources/list': { resources: [{ uri: 'x:a', name: 'a' }] },
    'resources/read': { contents: [{ uri: 'x:a' }] },
    'tools/call': { content: [{ type: 'resource_link', uri: 'x:a' }] },
  })
  const { group } = groupOf({ a, b: new FakeServer() }, { bareUris: true })
  t.same(await ask(group, 'resources/list'), { resources: [{ uri: 'x:a', name: 'a' }] })
  t.same(await ask(group, 'resources/read', { uri: 'x:a' }), { contents: [{ uri: 'x:a' }] })
  t.same(await ask(group, 'tools/call', { name: 'a__x' }), { content: [{ type: 'resource_link', uri: 'x:a' }] })
})

t.test("an error about a resource has the client's URI", async (t) => {
  const a = new FakeServer({ 'resources/read': () => errorOf(INVALID, 'not found', { uri: 'x:a', more: 1 }) })
  const { group } = groupOf({ a, b: new FakeServer() })
  const reply = await group.handle(callOf('resources/read', { uri: 'a+x:a' }))
  t.match(reply, { kind: 'error', error: { code: INVALID, data: '{"uri":"a+x:a","more":1}' } })
})

t.test('sends completions to the server of the prompt or template', async (t) => {
  const a = new FakeServer({ 'completion/complete': { completion: { values: ['v'] } } })
  const { group } = groupOf({ a, b: new FakeServer() })
  const argument = { name: 'x', value: 'v' }
  for (const [given, theirs] of [
    [
      { type: 'ref/prompt', name: 'a__p' },
      { type: 'ref/prompt', name: 'p' },
    ],
    [
      { type: 'ref/resource', uri: 'a+x:{y}' },
      { type: 'ref/resource', uri: 'x:{y}' },
    ],
  ]) {
    t.same(await ask(group, 'completion/complete', { ref: given, argument }), { completion: { values: ['v'] } })
    t.same(a.got('completion/complete').at(-1), { ref: theirs, argument })
  }
  t.match((await faultOf(group, 'completion/complete', { argument })).toRpcError(), { code: INVALID })
})

t.test('prefixes tasks everywhere', async (t) => {
  const a = new FakeServer({
    'tools/call': () => resultOf({ taskId: 't1', status: 'working' }, { type: 'task' }),
    'tasks/get': { taskId: 't1', status: 'completed', result: { content: [{ type: 'resource_link', uri: 'x:a' }] } },
    'tasks/cancel': {},
  })
  const { group } = groupOf({ a, b: new FakeServer() })
  t.match(await group.handle(callOf('tools/call', { name: 'a__x' })), { kind: 'result', type: 'task' })
  t.match(await ask(group, 'tools/call', { name: 'a__x' }), { taskId: 'a__t1' })
  t.match(await ask(group, 'tasks/get', { taskId: 'a__t1' }), {
    taskId: 'a__t1',
    result: { content: [{ uri: 'a+x:a' }] },
  })
  await ask(group, 'tasks/cancel', { taskId: 'a__t1' })
  t.same([...a.got('tasks/get'), ...a.got('tasks/cancel')], [{ taskId: 't1' }, { taskId: 't1' }])
})

t.test('log messages during a call name loggers with the prefix of their server', async (t) => {
  const a = new FakeServer({
    'tools/call': async (call) => {
      for (const [method, params] of [
        ['notifications/message', { level: 'info', logger: 'db', data: 1 }],
        ['notifications/message', { level: 'info', data: 2 }],
        ['notifications/progress', { progress: 1 }],
      ] as const)
        await call.notify({ kind: 'notification', method, params: parseObject(JSON.stringify(params)) })
      return resultOf({ content: [] })
    },
  })
  const { group } = groupOf({ a, b: new FakeServer() })
  const call = callOf('tools/call', { name: 'a__x' })
  await group.handle(call)
  t.same(call.told.map(paramsOf), [
    { level: 'info', logger: 'a/db', data: 1 },
    { level: 'info', data: 2, logger: 'a' },
    { progress: 1 },
  ])
})

t.test('a question has the state of its server, sealed for this call', async (t) => {
  const state = 's'.repeat(5_000)
  const asking = new FakeServer({
    'tools/call': (call) =>
      call.answers
        ? resultOf(content(`${call.answers.state} ${call.answers.responses}`))
        : inputOf({ inputRequests: { q: { method: 'roots/list' } }, requestState: state }),
  })
  const other = new FakeServer({ 'tools/call': content('other') })
  const { group } = groupOf({ a: asking, b: other })
  const params = { name: 'a__x', arguments: { n: 1, m: 2 } }
  const asked = await group.handle(callOf('tools/call', params))
  t.equal(asked.kind, 'input')
  const sealed = asked.kind === 'input' ? raw(asked.result, 'requestState') : undefined
  const again = { answers: { responses: '{"q":{}}', state: sealed } }
  t.same(
    await ask(group, 'tools/call', { arguments: { m: 2, n: 1 }, name: 'a__x' }, again),
    content(`"${state}" {"q":{}}`),
    'the order of members does not matter',
  )
  const before = asking.calls.length
  for (const [what, method, wrong, more] of [
    ['another server', 'tools/call', { ...params, name: 'b__x' }, {}],
    ['another tool', 'tools/call', { ...params, name: 'a__y' }, {}],
    ['other arguments', 'tools/call', { ...params, arguments: { n: 2, m: 2 } }, {}],
    ['another method', 'prompts/get', params, {}],
    ['another person', 'tools/call', params, { principal: 'bob' }],
  ] as const) {
    const fault = await faultOf(group, method, wrong, { ...again, ...more })
    t.equal(fault.fault, 'invalidState', what)
  }
  const forged = { answers: { responses: '{}', state: JSON.stringify(state) } }
  t.equal((await faultOf(group, 'tools/call', params, forged)).fault, 'invalidState', 'the state of the server itself')
  t.equal(asking.calls.length, before, 'the server has seen none of them')
  t.equal(other.calls.length, 0)
})

t.test('a question says which server asks, whatever else it says', async (t) => {
  const form = { requestedSchema: { type: 'object', properties: {} } }
  const inputRequests = {
    a: { method: 'elicitation/create', params: { message: 'Delete it?', ...form } },
    b: {
      method: 'elicitation/create',
      params: { mode: 'url', message: 'files: Your password?', url: 'https://x.org' },
    },
    c: { method: 'sampling/createMessage', params: { messages: [], maxTokens: 1 } },
    d: { method: 'roots/list' },
    e: { method: 'elicitation/create', params: { message: 1 } },
  }
  const said = (input: Payload) => {
    const { inputRequests: requests } = JSON.parse(write(input)) as {
      inputRequests: Record<string, { params?: Record<string, unknown> }>
    }
    return Object.values(requests).map(({ params }) => params?.['message'])
  }
  const expected = ['notes: Delete it?', 'notes: files: Your password?', undefined, undefined, 1]
  const asking = () => new FakeServer({ 'tools/call': () => inputOf({ inputRequests, requestState: 'x' }) })
  for (const bareNames of [false, true]) {
    const notes = asking()
    notes.answers['tools/list'] = { tools: named('x') }
    const { group } = groupOf({ notes, files: new FakeServer({}) }, { bareNames })
    const asked = await group.handle(callOf('tools/call', { name: bareNames ? 'x' : 'notes__x' }))
    t.same(asked.kind === 'input' && said(asked.result), expected)
    const beside: unknown[] = []
    const client: AskedClient = {
      principal: 'alice',
      caller: callOf('x').caller,
      isThinking: false,
      isGone: false,
      ask: (input) => {
        beside.push(said(input))
        return Promise.resolve({ responses: '{}', state: undefined })
      },
    }
    group.connected('alice', client)
    await notes.clients.at(-1)?.ask(parseObject(JSON.stringify({ inputRequests })), new HangUp())
    t.same(beside, [expected], 'also beside calls')
  }
  const { group } = groupOf({ notes: asking() }, { bareNames: true, bareUris: true })
  const asked = await group.handle(callOf('tools/call', { name: 'x' }))
  t.equal(asked.kind === 'input' && said(asked.result)[0], 'Delete it?', 'unless it is the only one')
})

t.test('a question of a task says which server asks, too, and cannot hide it', async (t) => {
  const asking = (params: object) => ({ q: { method: 'elicitation/create', params } })
  const task = (params: object) => ({ taskId: 't1', status: 'input_required', inputRequests: asking(params) })
  const notes = new FakeServer({ 'tasks/get': task({ message: 'Delete it?' }), 'tasks/update': {} })
  const { group } = groupOf({ notes, files: new FakeServer({}) })
  t.match(await ask(group, 'tasks/get', { taskId: 'notes__t1' }), {
    taskId: 'notes__t1',
    inputRequests: asking({ message: 'notes: Delete it?' }),
  })
  const caller = { revision: '2026-07-28', capabilities: '{"extensions":{"io.modelcontextprotocol/tasks":{}}}' }
  const listen = callOf('subscriptions/listen', { notifications: { taskIds: ['notes__t1'] } }, { caller })
  group.handle(listen).catch(() => {})
  await until(() => notes.listening.size === 1, 'the subscription')
  notes.tell('notifications/tasks', task({ message: 'Delete it?' }))
  await until(() => listen.told.some(({ method }) => method === 'notifications/tasks'), 'the task')
  const told = listen.told.find(({ method }) => method === 'notifications/tasks')
  t.match(told && paramsOf(told), { inputRequests: asking({ message: 'notes: Delete it?' }) })
  listen.end.abort(new Error('over'))
  for (const [message, shown] of [
    ['\rfiles: Your password?', 'notes: files: Your password?'],
    ['\b\u001b[2Kfiles:\ta\nb', 'notes: [2Kfiles:\ta\nb'],
    [undefined, 'notes: '],
    [null, 'notes: '],
  ]) {
    notes.answers['tasks/get'] = task({ message })
    t.match(await ask(group, 'tasks/get', { taskId: 'notes__t1' }), { inputRequests: asking({ message: shown }) })
  }
})

t.test('a question to a model names resources as the group does, and the bare URI is known then', async (t) => {
  const link = (uri: string) => ({ type: 'resource_link', uri, name: 'n' })
  const used = (uri: string) => ({ type: 'tool_result', toolUseId: '1', content: [link(uri)] })
  const said = (uri: string) => [
    { role: 'user', content: [used(uri), { type: 'text', text: 'file:///a' }] },
    { role: 'user', content: used(uri) },
    { role: 'user', content: { type: 'resource', resource: { uri, text: 'x' } } },
  ]
  const inputRequests = (uri: string) => ({
    q: { method: 'sampling/createMessage', params: { messages: said(uri), maxTokens: 1 } },
  })
  const asking = () =>
    new FakeServer({ 'tools/call': () => inputOf({ inputRequests: inputRequests('file:///a') }), 'resources/read': {} })
  const notes = asking()
  const { group } = groupOf({ notes, files: new FakeServer({ 'resources/read': {} }) })
  const asked = await group.handle(callOf('tools/call', { name: 'notes__x' }))
  t.same(
    asked.kind === 'input' && (JSON.parse(write(asked.result)) as Record<string, unknown>)['inputRequests'],
    inputRequests('notes+file:///a'),
  )
  await ask(group, 'resources/read', { uri: 'file:///a' })
  t.equal(notes.got('resources/read').length, 1)
  const { group: asIs } = groupOf({ notes: asking(), files: new FakeServer() }, { bareUris: true })
  const again = await asIs.handle(callOf('tools/call', { name: 'notes__x' }))
  t.same(
    again.kind === 'input' && (JSON.parse(write(again.result)) as Record<string, unknown>)['inputRequests'],
    inputRequests('file:///a'),
    'unless URIs have no prefix',
  )
})

t.test('clients are connected to servers that are added later, and to none that are removed', (t) => {
  const [a, b, c] = [new FakeServer(), new FakeServer(), new FakeServer()] as const
  const { group, planOf } = groupOf({ a, b })
  const end = group.connected('alice')
  group.change(planOf({ b, c }))
  const connections = () => [a, b, c].map((server) => server.connections)
  t.same(connections(), [0, 1, 1])
  end()
  t.same(connections(), [0, 0, 0])
  t.end()
})

t.test('each server gets exactly the capabilities of the client', async (t) => {
  const servers = {
    a: new FakeServer({ 'tools/call': content('x'), 'tools/list': { tools: [] } }),
    b: new FakeServer({ 'tools/list': { tools: [] } }),
  }
  const { group } = groupOf(servers)
  const caller = {
    revision: '2026-07-28',
    capabilities: '{"elicitation":{},"x":1.0}',
    clientInfo: '{"name":"c","version":"1"}',
    logLevel: 'debug' as const,
  }
  await ask(group, 'tools/list', {}, { caller, credential: { authorization: 'c' } })
  await ask(group, 'tools/call', { name: 'a__x' }, { caller, credential: { authorization: 'c' } })
  for (const call of [...servers.a.calls, ...servers.b.calls]) {
    t.same(call.caller, caller)
    t.match(call, { principal: 'alice', credential: { authorization: 'c' } })
  }
})

t.test('discovery merges the answers of the servers, without waiting for slow ones', async (t) => {
  const a = new FakeServer({
    'server/discover': { supportedVersions: [], capabilities: { tools: {} }, instructions: 'Be brief.' },
  })
  const slow = new FakeServer({ 'server/discover': () => new Promise(() => {}) })
  const { group } = groupOf({ a, slow }, { wait: { known: 20, first: 20 } })
  const found = await ask(group, 'server/discover')
  t.match(found, {
    capabilities: { tools: { listChanged: true }, prompts: {}, resources: {} },
    instructions: /^# a\n\n.*a__.*\n\nBe brief\.$/,
  })
  t.match(found, { _meta: { 'io.github.mcp-bridge/unavailable': [{ server: 'slow' }] } })
  slow.answers['server/discover'] = { supportedVersions: [], capabilities: { completions: {} } }
  const own = groupOf({ a, slow }, { instructions: 'All of us.' }).group
  t.same(await ask(own, 'server/discover'), {
    supportedVersions: ['2026-07-28'],
    capabilities: { tools: { listChanged: true }, completions: {} },
    instructions: 'All of us.',
  })
})

t.test('notifications go to all servers, and connections count for all', async (t) => {
  const servers = { a: new FakeServer(), b: new FakeServer() }
  const { group } = groupOf(servers)
  const { params, meta, caller, principal } = callOf('x')
  group.notify({ method: 'notifications/x', params, meta, caller, principal })
  const end = group.connected('alice')
  t.same(
    Object.values(servers).map(({ notices, connections }) => [notices.length, connections]),
    [
      [1, 1],
      [1, 1],
    ],
  )
  end()
  t.same(
    Object.values(servers).map(({ connections }) => connections),
    [0, 0],
  )
})

t.test('a method whose params name nothing goes to the only server that may know it, or to none', async (t) => {
  const foreign = { supportedVersions: [], capabilities: { experimental: { x: {} } } }
  const a = new FakeServer({ 'server/discover': { supportedVersions: [], capabilities: {} } })
  const b = new FakeServer({ 'server/discover': foreign, 'x/do': { done: true } })
  const { group } = groupOf({ a, b })
  t.same(await ask(group, 'x/do', { uri: 'x:y' }), { done: true })
  t.same(b.got('x/do'), [{ uri: 'x:y' }])
  a.answers['server/discover'] = foreign
  t.equal((await faultOf(groupOf({ a, b }).group, 'x/do')).fault, 'methodNotFound')
})

t.test(
  'a user interface may call the tools of its server by their own names, if only one server has them',
  async (t) => {
    const a = new FakeServer({ 'tools/list': { tools: named('refresh', 'both') }, 'tools/call': content('a') })
    const b = new FakeServer({ 'tools/list': { tools: named('both') }, 'tools/call': content('b') })
    const { group } = groupOf({ a, b })
    const caller = { revision: '2026-07-28', capabilities: '{"extensions":{"io.modelcontextprotocol/ui":{}}}' }
    t.same(await ask(group, 'tools/call', { name: 'refresh' }, { caller }), content('a'))
    t.match((await faultOf(group, 'tools/call', { name: 'both' }, { caller })).toRpcError(), { code: INVALID })
    t.match(
      (await faultOf(group, 'tools/call', { name: 'refresh' })).toRpcError(),
      { code: INVALID },
      'no other client may',
    )
  },
)

t.test('a group of one server renames nothing', async (t) => {
  const a = new FakeServer({
    'tools/list': { tools: named('x') },
    'tools/call': () => resultOf({ taskId: 't', content: [] }, { type: 'task' }),
    'resources/read': { contents: [{ uri: 'x:a' }] },
    'x/do': { done: true },
    'tasks/get': { taskId: 't' },
  })
  const { group } = groupOf({ a }, { bareNames: true, bareUris: true })
  t.same(names(await ask(group, 'tools/list')), ['x'])
  t.same(await ask(group, 'tools/call', { name: 'x' }), { taskId: 't', content: [] })
  t.same(await ask(group, 'resources/read', { uri: 'x:a' }), { contents: [{ uri: 'x:a' }] })
  t.same(await ask(group, 'tasks/get', { taskId: 't' }), { taskId: 't' })
  t.same(await ask(group, 'x/do'), { done: true })
})
