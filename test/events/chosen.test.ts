/** Events of one server: what a choice and scopes leave of them, streams, and clients of the other era. */
import t, { type Test } from 'tap'
import { startBridge } from '../support/bridge.js'
import { opened } from '../support/event-stream.js'
import { EVENTS, startEventful } from '../support/eventful.js'
import { until } from '../support/eventually.js'
import { LegacyClient } from '../support/legacy-client.js'
import { call } from '../support/modern.js'

type Json = Record<string, unknown>

const TOKENS = {
  alice: { token: 'alice-0123456789abcdef', scopes: ['mail', 'secret'] },
  bob: { token: 'bob-0123456789abcdefgh', scopes: ['mail'] },
  carol: { token: 'carol-0123456789abcdef', scopes: [] },
}
const as = (who: keyof typeof TOKENS) => ({ headers: { authorization: `Bearer ${TOKENS[who].token}` } })

async function start(t: Test, own: Json = {}, settings: Json = {}) {
  const server = await startEventful(t)
  const { url } = await startBridge(t, { url: server.url, ...own }, settings)
  return { url, server }
}

const discovered = async (url: string, more = {}) =>
  JSON.stringify((await call(url, 'server/discover', {}, more)).message)
const namesOf = async (url: string, more = {}) => {
  const { result } = (await call(url, 'events/list', {}, more)).message
  return (result?.['events'] as { name: string }[] | undefined)?.map(({ name }) => name)
}
const USES = ['events/poll', 'events/stream', 'events/subscribe', 'events/unsubscribe']

t.test('a choice hides types of events, which are then unknown in all methods and spellings', async (t) => {
  const { url, server } = await start(t, { events: { allow: ['mail.*'], deny: ['*.secret'] } })
  t.same(await namesOf(url), ['mail.received'])
  t.match(await discovered(url), EVENTS)
  for (const method of USES)
    for (const name of ['mail.secret', 'MAIL.received', 'mail.received ', 'deploy.done', ''])
      t.match((await call(url, method, { name })).message, { error: { code: -32023, data: { kind: 'event' } } }, name)
  t.match((await call(url, 'events/poll', {})).message, { error: { code: -32602 } })
  t.match((await call(url, 'events/poll', { name: 'mail.received' })).message, { result: { cursor: 'one-2' } })
  t.ok(server.asked.every(({ method, name }) => method === 'events/list' || name === 'mail.received'))
})

t.test('a choice of other things leaves events as they are, and one of no events announces none', async (t) => {
  const tools = await start(t, { tools: ['echo'] })
  t.match(await discovered(tools.url), EVENTS)
  t.same(await namesOf(tools.url), ['mail.received', 'mail.secret'])
  const none = await start(t, { events: { allow: [] } })
  t.notMatch(await discovered(none.url), /events/)
  t.match((await call(none.url, 'events/list')).message, { error: { code: -32601 } })
})

t.test('a type of events needs the scopes of its rows, and without a row those of the whole server', async (t) => {
  const scopes = { 'mail.*': ['mail'], '*.secret': ['secret'] }
  const { url, server } = await start(t, { events: { scopes } }, { auth: { tokens: TOKENS } })
  t.same(await namesOf(url, as('alice')), ['mail.received', 'mail.secret'])
  t.same(await namesOf(url, as('bob')), ['mail.received'])
  t.match((await call(url, 'events/poll', { name: 'mail.secret' }, as('alice'))).message, { result: {} })
  t.match((await call(url, 'events/poll', { name: 'mail.received' }, as('bob'))).message, { result: {} })
  t.match(await discovered(url, as('bob')), EVENTS)
  const before = server.asked.filter(({ method }) => method !== 'events/list').length
  for (const method of USES)
    for (const name of ['mail.secret', 'MAIL.RECEIVED', 'deploy.done'])
      t.match((await call(url, method, { name }, as('bob'))).message, { error: { code: -32023 } }, `${method} ${name}`)
  t.notMatch(await discovered(url, as('carol')), /events/)
  t.match((await call(url, 'events/list', {}, as('carol'))).message, {
    error: { data: { reason: 'insufficient_scope' } },
  })
  t.match((await call(url, 'events/poll', { name: 'mail.received' }, as('carol'))).message, { error: {} })
  t.equal(server.asked.filter(({ method }) => method !== 'events/list').length, before)
})

t.test('a stream has its notifications, and ends at the server when its client leaves', async (t) => {
  const { url, server } = await start(t)
  const stream = await opened(t, url, { name: 'mail.received' }, { id: 'a' })
  const params = { _meta: { 'io.modelcontextprotocol/subscriptionId': 'a' } }
  t.match(await stream.messages(3), [
    { method: 'notifications/events/active', params: { ...params, cursor: 'one-1' } },
    { method: 'notifications/events/event', params: { ...params, name: 'mail.received', cursor: 'one-2' } },
    { method: 'notifications/events/heartbeat', params: { ...params, cursor: 'one-2' } },
  ])
  t.equal(server.streams.size, 1)
  stream.close()
  await until(() => server.streams.size === 0, 'the end of the stream at the server')
})

t.test('a stream that the server ends has the reason, and the empty result of its own request', async (t) => {
  const { url, server } = await start(t)
  const stream = await opened(t, url, { name: 'mail.received' }, { id: 'a' })
  await stream.messages(3)
  const _meta = { 'io.modelcontextprotocol/subscriptionId': 'a' }
  const error = { code: -32024, message: 'Forbidden', data: { reason: 'Access revoked' } }
  for (const response of server.streams)
    for (const message of [
      { method: 'notifications/events/terminated', params: { error, _meta } },
      { id: 'a', result: { resultType: 'complete', _meta } },
    ]) {
      response.write(`data: ${JSON.stringify({ jsonrpc: '2.0', ...message })}\n\n`)
      if ('id' in message) response.end()
    }
  await stream.ended()
  t.match(stream.come().slice(3), [
    { method: 'notifications/events/terminated', params: { error, _meta } },
    { id: 'a', result: { resultType: 'complete', _meta } },
  ])
})

t.test('a stream counts as a subscription, not as a call', async (t) => {
  const limits = { subscriptions: 1 }
  const { url } = await start(t, {}, { limits })
  const stream = await opened(t, url, { name: 'mail.received' })
  await stream.messages(3)
  t.match((await call(url, 'events/stream', { name: 'mail.received' })).message, {
    error: { data: { reason: 'overloaded' } },
  })
  t.match((await call(url, 'events/poll', { name: 'mail.received' })).message, { result: {} })
})

t.test('a legacy client is offered no events, and has no such methods', async (t) => {
  const { url, server } = await start(t)
  const client = await LegacyClient.open(url)
  t.match(client.opened.message.result, { capabilities: { tools: {} } })
  t.notMatch(JSON.stringify(client.opened.message), /events/)
  for (const method of ['events/list', ...USES])
    t.match((await client.request(method, { name: 'mail.received' })).message, { error: { code: -32601 } }, method)
  t.same(server.asked, [])
})
