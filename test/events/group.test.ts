/** Events of several servers in a group: names with prefixes and without, merged lists, and cursors of one caller at one server. */
import t, { type Test } from 'tap'
import { startBridge } from '../support/bridge.js'
import { opened } from '../support/event-stream.js'
import { EVENTS, startEventful, webhook } from '../support/eventful.js'
import { LegacyHttp } from '../support/legacy-http.js'
import { call } from '../support/modern.js'
import { ModernHttp } from '../support/modern-http.js'

type Json = Record<string, unknown>

const TOKENS = { alice: 'alice-0123456789abcdef', bob: 'bob-0123456789abcdefgh' }
const as = (who: keyof typeof TOKENS) => ({ headers: { authorization: `Bearer ${TOKENS[who]}` } })
const ALICE = as('alice')

async function start(t: Test, group: Json = {}) {
  const mail = await startEventful(t, { label: 'mail' })
  const chat = await startEventful(t, { label: 'chat', types: [{ name: 'mail.received', delivery: ['poll', 'push'] }] })
  const old = await LegacyHttp.start(t)
  const events = { callbacks: ['https://93.184.216.34'] }
  const mcpServers = { mail: { url: mail.url, events }, chat: { url: chat.url, events }, old: { url: old.url } }
  const groups = { team: { servers: ['mail', 'chat', 'old'], ...group } }
  const { url } = await startBridge(t, {}, { mcpServers, groups, auth: { tokens: TOKENS } })
  return { url: new URL('/team/mcp', url).href, mail, chat }
}

const namesOf = ({ result }: { result?: Json }) => (result?.['events'] as { name: string }[]).map(({ name }) => name)
const cursorOf = ({ result }: { result?: Json }) => String(result?.['cursor'])

t.test('a group offers the events of its servers under names with prefixes', async (t) => {
  const { url, mail, chat } = await start(t)
  const { capabilities } = (await call(url, 'server/discover', {}, ALICE)).message.result as { capabilities: Json }
  t.match(capabilities, { events: {}, extensions: { [EVENTS]: {} } })
  const listed = (await call(url, 'events/list', {}, ALICE)).message
  t.same(namesOf(listed), ['mail__mail.received', 'mail__mail.secret', 'mail__deploy.done', 'chat__mail.received'])
  for (const [prefix, server] of [
    ['mail', mail],
    ['chat', chat],
  ] as const) {
    const polled = (await call(url, 'events/poll', { name: `${prefix}__mail.received` }, ALICE)).message
    t.match(polled.result, { events: [{ name: `${prefix}__mail.received`, data: { from: prefix } }] })
    t.match(server.asked.at(-1), { method: 'events/poll', name: 'mail.received' })
  }
  for (const name of ['mail.received', 'other__mail.received', 'mail__nothing'])
    t.match((await call(url, 'events/poll', { name }, ALICE)).message, { error: { code: -32023 } }, name)
})

t.test('without prefixes, a name belongs to the first server that lists it', async (t) => {
  const { url, mail, chat } = await start(t, { prefix: 'never' })
  const listed = (await call(url, 'events/list', {}, ALICE)).message
  t.same(namesOf(listed), ['mail.received', 'mail.secret', 'deploy.done'])
  t.match((await call(url, 'events/poll', { name: 'mail.received' }, ALICE)).message.result, {
    events: [{ name: 'mail.received', data: { from: 'mail' } }],
  })
  t.same(
    [mail, chat].map(({ asked }) => asked.filter(({ method }) => method === 'events/poll').length),
    [1, 0],
  )
})

t.test('a cursor goes back to its server, and is none at another server or of another caller', async (t) => {
  const { url, mail, chat } = await start(t)
  const poll = async (name: string, cursor: unknown, who: keyof typeof TOKENS = 'alice') =>
    (await call(url, 'events/poll', { name, cursor }, as(who))).message
  const cursor = cursorOf(await poll('mail__mail.received', null))
  t.match(await poll('mail__mail.received', cursor), { result: {} })
  t.match(mail.asked.at(-1), { cursor: 'mail-2' })
  const before = [mail.asked.length, chat.asked.length]
  for (const [name, given, who] of [
    ['chat__mail.received', cursor, 'alice'],
    ['mail__mail.received', cursor, 'bob'],
    ['mail__mail.received', 'mail-2', 'alice'],
    ['mail__mail.received', `${cursor}x`, 'alice'],
    ['mail__mail.received', 7, 'alice'],
  ] as const)
    t.match(await poll(name, given, who), { error: { code: -32602 } }, `${name} ${given} ${who}`)
  t.same([mail.asked.length, chat.asked.length], before, 'no server saw one of them')
})

t.test('a stream has the names and cursors of the group, and the id of its own request', async (t) => {
  const { url, chat } = await start(t)
  const stream = await opened(t, url, { name: 'chat__mail.received' }, { id: 'mine', ...ALICE })
  const [active, event, heartbeat] = await stream.messages(3)
  const _meta = { 'io.modelcontextprotocol/subscriptionId': 'mine' }
  t.match(active, { method: 'notifications/events/active', params: { _meta } })
  t.match(event, { method: 'notifications/events/event', params: { name: 'chat__mail.received', _meta } })
  const { cursor } = (heartbeat as { params: { cursor: string } }).params
  t.match((await call(url, 'events/poll', { name: 'chat__mail.received', cursor }, ALICE)).message, { result: {} })
  t.match(chat.asked.at(-1), { cursor: 'chat-2' })
})

t.test('an address gets its events from the server, so its subscription has the cursors of the server', async (t) => {
  const { url, mail } = await start(t)
  const params = webhook('https://93.184.216.34/hook', 'mail__mail.received')
  t.match((await call(url, 'events/subscribe', params, ALICE)).message, { result: { cursor: 'mail-1' } })
  await call(url, 'events/subscribe', { ...params, cursor: 'mail-1' }, ALICE)
  t.match(mail.asked.at(-1), { name: 'mail.received', cursor: 'mail-1' })
})

t.test('a group without events offers none', async (t) => {
  const servers = [await ModernHttp.start(t), await LegacyHttp.start(t)]
  const mcpServers = Object.fromEntries(servers.map(({ url }, at) => [`s${at}`, { url }]))
  const { url } = await startBridge(t, {}, { mcpServers, groups: { team: { servers: ['s0', 's1'] } } })
  const at = new URL('/team/mcp', url).href
  t.notMatch(JSON.stringify((await call(at, 'server/discover')).message), /events/)
})
