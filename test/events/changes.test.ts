/** Changes of the list of types of events: who hears of them, and who does not. */
import t, { type Test } from 'tap'
import { startBridge } from '../support/bridge.js'
import { EVENTS, startEventful } from '../support/eventful.js'
import { until } from '../support/eventually.js'
import { ALL_LISTS, changed, hears, listen, told } from '../support/listening.js'
import { call } from '../support/modern.js'
import { ModernHttp } from '../support/modern-http.js'

type Json = Record<string, unknown>

const WANTED = { eventsListChanged: true }
const TOKENS = {
  alice: { token: 'alice-0123456789abcdef', scopes: ['mail'] },
  bob: { token: 'bob-0123456789abcdefgh', scopes: [] },
}
const as = (who: keyof typeof TOKENS) => ({ headers: { authorization: `Bearer ${TOKENS[who].token}` } })

const settingsAt = async (url: string, more = {}) => {
  const { result } = (await call(url, 'server/discover', {}, more)).message
  return (result?.['capabilities'] as { extensions?: Json }).extensions?.[EVENTS]
}
const acknowledged = ({ messages: [first] }: { messages: Json[] }) => (first?.['params'] as Json)['notifications']

/** Listens until the end of the test, once these servers have been asked for it. */
async function listened(t: Test, url: string, servers: { filters: Json[] }[], filter: Json = WANTED, more = {}) {
  const before = servers.map(({ filters }) => filters.length)
  const stream = await listen(url, filter, more)
  t.teardown(() => stream.leave())
  const areAsked = () => servers.every(({ filters }, at) => filters.length > (before[at] as number))
  await until(() => stream.messages.length > 0 && areAsked(), 'the acknowledgement')
  return stream
}

async function start(t: Test, own: Json = {}, settings: Json = {}) {
  const server = await startEventful(t)
  const { url } = await startBridge(t, { url: server.url, ...own }, settings)
  return { server, url }
}

for (const [what, own] of [
  ['of one server', {}],
  ['of a server with a choice of types', { events: { allow: ['mail.*'] } }],
  ['of a server with chosen tools and resources', { tools: ['echo'], resources: { allow: ['note://*'] } }],
] as const)
  t.test(`a client ${what} hears of a changed list of types`, async (t) => {
    const { server, url } = await start(t, own)
    t.same(await settingsAt(url), { listChanged: true })
    const stream = await listened(t, url, [server])
    server.changed()
    t.same(await hears(stream, 1), [changed('events')])
    t.same(acknowledged(stream), WANTED)
  })

t.test('a client from whom all events are hidden hears of none', async (t) => {
  const { server, url } = await start(t, { events: { allow: [] } })
  const stream = await listened(t, url, [server], { ...WANTED, toolsListChanged: true })
  t.same(server.filters, [{ toolsListChanged: true }])
  server.changed()
  t.same(acknowledged(stream), {})
  t.same(told(stream), [])
  for (const method of ['events/list', 'events/poll'])
    t.match((await call(url, method, { name: 'mail.received' })).message, { error: { code: -32601 } }, method)
})

t.test('so does a caller without scopes for any type, beside one that has them', async (t) => {
  const own = { events: { scopes: { 'mail.*': ['mail'] } }, scopes: { '*': ['all'] } }
  const { server, url } = await start(t, own, { auth: { tokens: TOKENS } })
  const alice = await listened(t, url, [server], WANTED, as('alice'))
  const bob = await listened(t, url, [server], WANTED, as('bob'))
  server.changed()
  t.same(await hears(alice, 1), [changed('events')])
  t.same(server.filters, [WANTED, {}])
  t.same(told(bob), [])
})

t.test('a client of a group hears of each server with events', async (t) => {
  const [mail, chat] = [await startEventful(t, { label: 'mail' }), await startEventful(t, { label: 'chat' })]
  const plain = await ModernHttp.start(t)
  const mcpServers = { mail: { url: mail.url }, chat: { url: chat.url }, plain: { url: plain.url } }
  const groups = { team: { servers: ['mail', 'chat', 'plain'] } }
  const { url: base } = await startBridge(t, {}, { mcpServers, groups })
  const url = new URL('/team/mcp', base).href
  t.same(await settingsAt(url), { listChanged: true })
  const stream = await listened(t, url, [mail, chat])
  for (const [at, server] of [mail, chat].entries()) {
    server.changed()
    t.same((await hears(stream, at + 1))[at], changed('events'))
  }
  t.same(acknowledged(stream), WANTED)
  t.same(plain.violations(), [])
})

t.test('a group of servers without events announces none, has no such methods, and tells of none', async (t) => {
  const [one, two] = [await ModernHttp.start(t), await ModernHttp.start(t)]
  const mcpServers = { one: { url: one.url }, two: { url: two.url } }
  const { url: base } = await startBridge(t, {}, { mcpServers, groups: { team: { servers: ['one', 'two'] } } })
  const url = new URL('/team/mcp', base).href
  for (const method of ['events/list', 'events/poll', 'events/stream', 'events/subscribe', 'events/unsubscribe'])
    t.match((await call(url, method, { name: 'one__x' })).message, { error: { code: -32601 } }, method)
  t.same(await settingsAt(url), undefined)
  const stream = await listened(t, url, [], { ...ALL_LISTS, ...WANTED })
  t.notOk((acknowledged(stream) as Json)['eventsListChanged'])
})
