/** Lists of servers that do not end, or are no lists: their server is named, and the others are served. */
import t from 'tap'
import { MAX_LIST_TIME, MAX_MEMBER_CURSOR, MAX_PAGES } from '../../src/base/limits/constants.js'
import { Memory } from '../../src/base/limits/memory.js'
import { MAX_SCANNED } from '../../src/base/rpc/scan.js'
import { parseObject, value } from '../../src/base/rpc/splice.js'
import type { Call } from '../../src/mcp/protocol/call.js'
import type { Parts } from '../../src/middle/group/member-lists.js'
import { WholeLists } from '../../src/middle/group/whole-lists.js'
import { ask, callOf, FakeServer, faultOf, groupOf, named, resultOf } from './fakes.js'

type Json = Record<string, unknown>
const MEBIBYTE = 1024 * 1024
const UNAVAILABLE = 'io.github.mcp-bridge/unavailable'
const LISTS = [
  ['tools/list', 'tools', { name: 'x', inputSchema: { type: 'object' } }],
  ['prompts/list', 'prompts', { name: 'x' }],
  ['resources/list', 'resources', { uri: 'file:///x', name: 'x' }],
  ['resources/templates/list', 'resourceTemplates', { uriTemplate: 'file:///{x}', name: 'x' }],
] as const

/** Pages without end, each with a tool whose description has so many bytes. */
const endless = (bytes: number, more: (at: number) => Json = () => ({})) =>
  new FakeServer({
    'tools/list': (call: Call) => {
      const at = Number(value(call.params, 'cursor') ?? 0)
      const description = 'x'.repeat(bytes)
      const tools = [{ name: `t${at}`, description, inputSchema: { type: 'object' } }]
      return resultOf({ tools, nextCursor: String(at + 1), ...more(at) })
    },
    'tools/call': { content: [{ type: 'text', text: 'endless' }] },
  })
const good = () =>
  new FakeServer({
    'tools/list': { tools: named('good') },
    'tools/call': { content: [{ type: 'text', text: 'good' }] },
  })
const search = { name: 'search_tools', arguments: { query: 'good' } }

const bounds: [what: string, server: () => FakeServer, pages: number][] = [
  ['pages', () => endless(10), MAX_PAGES],
  ['bytes', () => endless(MEBIBYTE), 17],
  ['bytes beside its items', () => endless(10, () => ({ other: 'x'.repeat(MEBIBYTE) })), 17],
  ['new pages', () => endless(10, (at) => ({ nextCursor: String(Math.min(at + 1, 3)) })), 4],
]
for (const [what, server, most] of bounds)
  t.test(`a list without an end of ${what} is read for a search and for a name up to a bound`, async (t) => {
    const searched = { evil: server(), good: good() }
    const { group, log } = groupOf(searched, { search: { always: [], limit: 5 } })
    for (let times = 1; times <= 2; times++) {
      const found = await ask(group, 'tools/call', search)
      t.match(found['structuredContent'], { tools: [{ name: 'good__good' }] })
      t.match(found['content'], [{}, { text: 'Not searched to the end, because their lists are too long: evil' }])
      t.ok(searched.evil.calls.length <= most * times, `${searched.evil.calls.length} pages`)
    }
    t.match(log, [{ event: 'group_list_cut', server: 'evil', method: 'tools/list' }], 'told once')
    t.match(await ask(group, 'tools/list'), { _meta: { [UNAVAILABLE]: [{ server: 'evil' }] } })

    const bare = { evil: server(), good: good() }
    const without = groupOf(bare, { bareNames: true }).group
    t.match(await ask(without, 'tools/call', { name: 'good' }), { content: [{ text: 'good' }] })
    t.match(await ask(without, 'tools/call', { name: 't3' }), { content: [{ text: 'endless' }] })
    t.match((await faultOf(without, 'tools/call', { name: 'none' })).message, 'Unknown tool: none')
    t.ok(bare.evil.got('tools/list').length <= 2 * most)
  })

t.test('a list that is not read to its end does not cost the memory of the others', async (t) => {
  const memory = new Memory({ max: 4 * MEBIBYTE })
  const { group } = groupOf({ evil: endless(MEBIBYTE), good: good() }, { search: { always: [], limit: 5 } }, { memory })
  const found = await ask(group, 'tools/call', search)
  t.match(found, { structuredContent: { tools: [{ name: 'good__good' }] } })
  t.match(found['content'], [{}, { text: /too long: evil/ }])
  group.close()
  t.equal(memory.used, 0)
})

t.test('reading a list takes no longer than its time', async (t) => {
  let now = 0
  let asked = 0
  const [evil] = groupOf({ evil: endless(1) }).planOf({ evil: endless(1) }).members
  const one = async () => {
    now += MAX_LIST_TIME / 10
    return { page: undefined, next: `"${++asked}"` }
  }
  const told: string[] = []
  const lists = new WholeLists({
    parts: { one } as unknown as Parts,
    memory: new Memory({ max: MEBIBYTE }),
    log: { cut: (_member, _method, why) => told.push(why) },
    now: () => now,
  })
  await lists.read(callOf('tools/list'), evil ? [{ member: evil }] : [], ([read]) => {
    t.match(read?.cut?.message, /evil .* more than 30 s/)
  })
  t.equal(asked, 10)
  t.match(told, [/30 s/])
})

t.test('a page that names itself as the next one is the last one', async (t) => {
  for (const nextCursor of ['', '1'])
    for (const bareNames of [false, true]) {
      const evil = endless(1, () => ({ nextCursor }))
      const { group } = groupOf({ evil, good: good() }, { bareNames })
      let pages = 0
      for (let cursor: unknown; pages === 0 || cursor !== undefined; pages++)
        cursor = (await ask(group, 'tools/list', cursor === undefined ? {} : { cursor }))['nextCursor']
      t.equal(pages, 2)
    }
})

t.test('a list that is null is empty, in each list', async (t) => {
  for (const [method, key, item] of LISTS)
    for (const bareNames of [false, true])
      for (const list of [{ [key]: null }, {}]) {
        const servers = { a: new FakeServer({ [method]: list }), b: new FakeServer({ [method]: { [key]: [item] } }) }
        const { group, log } = groupOf(servers, { bareNames })
        for (let times = 0; times < 2; times++) {
          const listed = await ask(group, method)
          t.equal((listed[key] as unknown[]).length, 1, `${method} ${JSON.stringify(list)}`)
          t.notOk(listed['_meta'])
        }
        t.same(log, [])
      }
})

t.test('what is no list is a mistake of its server, which is named while the others are served', async (t) => {
  for (const [method, key, item] of LISTS)
    for (const none of ['{}', '{"ul":[1]}', '"ul,{"', '17', 'true', 'false'])
      for (const bareNames of [false, true])
        for (const isDown of [false, true]) {
          const text = `{"${key}":${none}}`
          const down = new FakeServer({ [method]: () => Promise.reject(new Error('down')) })
          const servers = {
            a: new FakeServer({ [method]: () => ({ kind: 'result', result: parseObject(text) }) }),
            b: new FakeServer({ [method]: { [key]: [item] } }),
            ...(isDown && { down }),
          }
          const { group, log } = groupOf(servers, { bareNames })
          for (let times = 0; times < 2; times++) {
            const listed = await ask(group, method)
            t.equal((listed[key] as unknown[]).length, 1, `${method} ${text}`)
            t.match(listed['_meta'], {
              [UNAVAILABLE]: [
                { server: 'a', message: `a answered ${method} with ${key} that are no list` },
                ...(isDown ? [{ server: 'down' }] : []),
              ],
            })
          }
          t.match(log[0], { event: 'group_incomplete', server: 'a' })
          servers.a.answers[method] = { [key]: [item] }
          const mended = (await ask(group, method))['_meta']
          t.match(mended, isDown ? { [UNAVAILABLE]: [{ server: 'down' }] } : undefined)
        }
  const alone = groupOf({ a: new FakeServer({ 'tools/list': { tools: 'x' } }) }).group
  t.match(await faultOf(alone, 'tools/list'), { fault: 'upstreamProtocol' })
})

t.test('a page with a cursor that no client can send back is a mistake of its server', async (t) => {
  for (const [method, key, item] of LISTS)
    for (const bareNames of [false, true]) {
      const long = { [key]: [item], nextCursor: 'x'.repeat(MAX_MEMBER_CURSOR) }
      const b = new FakeServer({ [method]: { [key]: [item] } })
      const { group } = groupOf({ a: new FakeServer({ [method]: long }), b }, { bareNames })
      const listed = await ask(group, method)
      t.equal((listed[key] as unknown[]).length, 1)
      t.notOk(listed['nextCursor'])
      t.match(listed['_meta'], { [UNAVAILABLE]: [{ server: 'a', message: /a cursor of 16386 characters/ }] })
    }
})

t.test('a list of more elements than the bridge reads is a mistake of its server', async (t) => {
  for (const [method, key, item] of LISTS)
    for (const one of ['0', '""', '{}', JSON.stringify(item)]) {
      const text = `{"${key}":[${`${one},`.repeat(MAX_SCANNED)}${one}]}`
      const many = new FakeServer({ [method]: () => ({ kind: 'result', result: parseObject(text) }) })
      const b = new FakeServer({ [method]: { [key]: [item] } })
      const { group } = groupOf({ a: many, b })
      const listed = await ask(group, method)
      t.equal((listed[key] as unknown[]).length, 1, `${method} ${one}`)
      t.match(listed['_meta'], { [UNAVAILABLE]: [{ server: 'a', message: /more than 250000 elements/ }] })
    }
})

t.test('a `_meta` of a list that is too long is left out, and told once', async (t) => {
  const large = new FakeServer({ 'tools/list': { tools: named('x'), _meta: { x: 'x'.repeat(64 * 1024) } } })
  const small = new FakeServer({ 'tools/list': { tools: named('x'), _meta: { y: 1 } } })
  const { group, log } = groupOf({ large, small })
  for (let times = 1; times <= 2; times++) {
    const listed = await ask(group, 'tools/list')
    t.equal((listed['tools'] as unknown[]).length, 2)
    t.same(listed['_meta'], { y: 1 })
  }
  t.match(log, [{ event: 'group_items_repaired', server: 'large', items: ['_meta of 65544 characters'] }])
  t.equal(log.length, 1)
})
