/**
 * Every client with every server, watched: what the inspector and its page show of both wires, and that the changes which
 * they show are true.
 */
import t from 'tap'
import { RULES } from '../../src/inspector/recorder/rules.js'
import { rowsOf } from '../../src/inspector/rows.js'
import { type CallView, Views } from '../../src/inspector/views.js'
import { CLIENTS } from '../matrix/clients.js'
import { nameOf, runPair } from '../matrix/run.js'
import { SERVERS } from '../matrix/servers.js'
import { Chromium, noBrowser } from '../support/chromium.js'
import { Checked } from '../support/law.js'
import { checkPage } from '../support/pair-page.js'
import { eventsIn } from '../support/sights.js'
import { ringWithTexts } from '../support/watched.js'

const TRANSPORTS = { HTTP: 'http', 'HTTP+SSE': 'sse', stdio: 'stdio' } as const

/** The messages of a call, in order: `client in tools/call`. */
const messagesOf = (call: CallView) =>
  call.events.flatMap((seen) =>
    seen.kind === 'message' ? [`${seen.hop} ${seen.dir} ${seen.method ?? seen.form}`] : [],
  )

/** Messages that the bridge makes of an answer of the server, without changes that could be shown. */
const UNEXPLAINED = [
  // The result is a part of the answer to `tasks/get`.
  'legacy client, modern server: tools/call, to the client: result',
  // An unknown method is a fault, with the server's words.
  'modern client, legacy server: com.example/nope, to the client: error',
  // A cancellation is written anew, whoever cancels: the client by a notification, or the bridge.
  'legacy client, legacy server: tools/call, to the server: notifications/cancelled',
  'legacy client, modern server: tools/call, to the server: notifications/cancelled',
  'modern client, legacy server: tools/call, to the server: notifications/cancelled',
  'modern client, modern server: tools/call, to the server: notifications/cancelled',
  'modern client, modern server: subscriptions/listen, to the server: notifications/cancelled',
]

/**
 * Messages that the bridge writes itself. They have no counterpart on the other wire; a cancellation can follow the
 * disconnection of the client.
 */
const OWN = [
  'legacy client, legacy server: initialize, to the client: result',
  'legacy client, legacy server: no call, to the server: initialize',
  'legacy client, legacy server: no call, to the server: notifications/initialized',
  'legacy client, legacy server: no call, to the server: server/discover',
  'legacy client, legacy server: tools/call, to the server: notifications/cancelled',
  'legacy client, modern server: logging/setLevel, to the client: result',
  'legacy client, modern server: no call, to the server: notifications/cancelled',
  'legacy client, modern server: no call, to the server: server/discover',
  'legacy client, modern server: no call, to the server: tools/list',
  'legacy client, modern server: ping, to the client: result',
  'legacy client, modern server: resources/subscribe, to the client: result',
  'legacy client, modern server: resources/unsubscribe, to the client: result',
  'legacy client, modern server: tools/call, to the client: notifications/cancelled',
  'legacy client, modern server: tools/call, to the server: notifications/cancelled',
  'legacy client, modern server: tools/call, to the server: tasks/get',
  'modern client, legacy server: no call, to the server: initialize',
  'modern client, legacy server: no call, to the server: logging/setLevel',
  'modern client, legacy server: no call, to the server: notifications/initialized',
  'modern client, legacy server: no call, to the server: resources/subscribe',
  'modern client, legacy server: no call, to the server: server/discover',
  'modern client, legacy server: no call, to the server: tasks/get',
  'modern client, legacy server: no call, to the server: tasks/result',
  'modern client, legacy server: no call, to the server: tools/list',
  'modern client, legacy server: server/discover, to the client: result',
  'modern client, legacy server: subscriptions/listen, to the client: notifications/subscriptions/acknowledged',
  'modern client, legacy server: tasks/get, to the client: result',
  'modern client, legacy server: tools/call, to the server: notifications/cancelled',
  'modern client, modern server: no call, to the server: server/discover',
  'modern client, modern server: no call, to the server: tools/list',
  'modern client, modern server: subscriptions/listen, to the server: notifications/cancelled',
  'modern client, modern server: tools/call, to the server: notifications/cancelled',
]

const checked = new Checked()
const browser = noBrowser ? undefined : await Chromium.start(t)

for (const client of CLIENTS) {
  for (const server of SERVERS) {
    t.test(`${nameOf(client)} client, ${nameOf(server)} server: both wires of each call`, async (t) => {
      const { ring, texts, recorder } = ringWithTexts()
      await runPair(t, { client, server }, { context: { recorder } })
      const views = new Views()
      for (const seen of eventsIn(ring)) views.add(seen)
      t.equal(views.lost, 0)

      const eras = `${client.era} client, ${server.era} server`
      t.same(
        checked.all({ events: eventsIn(ring), texts, views, eras }),
        [],
        'what is shown as changed is what was changed',
      )

      const calls = [...views.calls.values()]
      t.same(
        calls.filter(({ incomplete, status }) => incomplete || status === 'open').map(({ id, method }) => [id, method]),
        [],
        'each call has its beginning and its end',
      )
      for (const { id, client: one, upstream: other } of calls) {
        t.match(one, { era: client.era, transport: TRANSPORTS[client.transport] }, `the client of ${id}`)
        t.ok(one?.name, `the name of the client of ${id}`)
        if (other) t.equal(other.era, server.era, `the era of the server of ${id}`)
      }

      const named = (name: string) => calls.filter((call) => call.method === 'tools/call' && call.name === name)
      const [echo] = named('echo')
      t.same(
        echo && messagesOf(echo),
        ['client in tools/call', 'server out tools/call', 'server in result', 'client out result'],
        'a call is two rows, each with a message on both wires',
      )
      t.ok(rowsOf(echo as CallView).every((row) => row.client?.payload && row.server?.payload))
      const heads = (echo as CallView).events.flatMap((seen) =>
        seen.kind === 'message' && seen.hop === 'server' ? [seen.http] : [],
      )
      if (server.transport === 'stdio') t.same(heads, [undefined, undefined], 'programs have no headers')
      else if (server.transport === 'HTTP')
        t.match(heads, [
          { headers: { 'mcp-protocol-version': String } },
          { status: 200, headers: { 'content-type': String } },
        ])
      for (const seen of eventsIn(ring)) {
        if (seen.kind === 'verdict')
          t.match(seen, { ms: Number, ...(server.era === 'modern' && { revision: '2026-07-28' }) })
        if (seen.kind === 'child' && seen.what !== 'stderr') t.match(seen, { pid: Number })
      }
      const known = views.servers.get(calls[0]?.server ?? '')
      t.equal(known?.era, server.era)
      t.ok(known?.revision, 'the revision of the server is known')
      if (server.transport === 'stdio') t.ok(eventsIn(ring).some(({ kind }) => kind === 'child'))

      const asked = named('ask').filter(({ status }) => status === 'ok')
      t.ok(asked.length > 0)
      for (const call of asked) {
        const messages = messagesOf(call)
        t.match(messages.at(0), 'client in tools/call')
        t.match(messages.at(-1), 'client out result', `${call.id} is one call, from the request to the result`)
        if (server.era === 'legacy')
          t.ok(messages.some((message) => /^server in (elicitation|sampling|roots)\//.test(message)))
        // Each round is a call of a modern client, and shown in the first one.
        const ids = new Set(call.events.map((seen) => seen.call))
        t.equal(ids.size > 1, client.era === 'modern', [...ids].join(' '))
      }
      await t.test('the page shows the calls of all pairs', { skip: noBrowser }, (t) =>
        checkPage(t, browser as Chromium, ring, { client, server }, calls),
      )
    })
  }
}

t.test('the changes of every message were checked, and only these have none', async (t) => {
  const { found, anew, unexplained, own, rules } = checked
  t.comment(found)
  t.ok(found['by the inspector'] > 3_000)
  for (const rule of rules) t.ok(RULES.has(rule), rule)
  t.same(
    [...anew].sort(),
    [
      'legacy client, modern server: initialize',
      'legacy client, modern server: requests-for-input',
      'legacy client, modern server: subscriptions',
      'modern client, legacy server: answers-of-clients',
      'modern client, legacy server: input-requests-of-servers',
      'modern client, legacy server: tasks-of-servers',
      'modern client, modern server: subscriptions',
    ],
    'messages that say the same in another form',
  )
  t.same(
    [...unexplained].filter((one) => !UNEXPLAINED.includes(one)),
    [],
    'messages of which the inspector cannot say what was changed',
  )
  t.same(
    [...own].filter((one) => !OWN.includes(one)),
    [],
    'messages of the bridge alone',
  )
})
