/** One principal takes all that it can get: the others still get theirs. Names begin with the number of the hole. */
import t from 'tap'
import { startBridge } from '../support/bridge.js'
import { until } from '../support/eventually.js'
import { LegacyClient } from '../support/legacy-client.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { listen as openSubscription } from '../support/listening.js'
import { CAPABILITIES, call } from '../support/modern.js'

const TOKENS = { greedy: 'greedy-token-0123456789', modest: 'modest-token-0123456789' }
const as = (name: keyof typeof TOKENS) => ({ headers: { authorization: `Bearer ${TOKENS[name]}` } })

t.test('calls that hang are bounded by a share, and calls of others pass', async (t) => {
  const { server } = legacyStdio(t)
  const limits = { calls: 8, callsPerServer: 8 }
  const { url, bridge } = await startBridge(t, server, { auth: { tokens: TOKENS }, limits })
  const leaving = new AbortController()
  const hanging = Array.from({ length: 12 }, () =>
    call(
      url,
      'tools/call',
      { name: 'wait', arguments: { ms: 60_000 } },
      { ...as('greedy'), signal: leaving.signal },
    ).catch(() => undefined),
  )
  const [mount] = bridge.mounts.values()
  await until(() => mount?.busy.calls === 4, 'half of the calls being open')
  const refused = await Promise.race(hanging)
  t.equal(refused?.status, 429)
  t.match(refused?.message.error, { code: -32603, data: { reason: 'rate_limited', outcome: 'not_executed' } })
  t.ok(refused?.headers['retry-after'])

  const modest = await call(url, 'tools/call', { name: 'echo', arguments: { text: 'here' } }, as('modest'))
  t.equal(modest.status, 200)
  t.ok(modest.message.result)
  leaving.abort()
  await Promise.all(hanging)
  await until(() => mount?.busy.calls === 0, 'nothing being open')
})

t.test('subscriptions of one principal leave room for others', async (t) => {
  const { server } = legacyStdio(t)
  const { url } = await startBridge(t, server, { auth: { tokens: TOKENS }, limits: { subscriptions: 4 } })
  const leaving = new AbortController()
  t.teardown(() => leaving.abort())
  const listen = (who: keyof typeof TOKENS) =>
    call(
      url,
      'subscriptions/listen',
      { notifications: { toolsListChanged: true } },
      { ...as(who), signal: leaving.signal },
    ).then(
      ({ status }) => status,
      () => 'open',
    )
  const greedy = Array.from({ length: 6 }, () => listen('greedy'))
  const refused = await Promise.all([Promise.race(greedy), Promise.race(greedy.toReversed())])
  t.same(refused, [429, 429])
  const modest = await openSubscription(url, { toolsListChanged: true }, as('modest'))
  await modest.has(1)
  modest.leave()
  leaving.abort()
  await Promise.all(greedy)
})

t.test('a lone principal may use all of a bound', async (t) => {
  const { server } = legacyStdio(t)
  const { url, bridge } = await startBridge(t, server, { limits: { calls: 4 } })
  const leaving = new AbortController()
  const params = { name: 'wait', arguments: { ms: 60_000 } }
  const hanging = Array.from({ length: 4 }, () =>
    call(url, 'tools/call', params, { signal: leaving.signal }).catch(() => undefined),
  )
  const [mount] = bridge.mounts.values()
  await until(() => mount?.busy.calls === 4, 'all calls being open')
  const refused = await call(url, 'tools/call', params)
  t.equal(refused.status, 503)
  leaving.abort()
  await Promise.all(hanging)
})

/** Ends the GET stream and says nothing more, as most clients do when they are closed. */
async function comeAndGo(url: string, who?: keyof typeof TOKENS): Promise<void> {
  const client = await LegacyClient.open(url, who ? as(who) : {})
  const stream = await client.listen()
  stream.leave()
}

t.test('sessions that legacy clients left make room for modern and legacy clients', async (t) => {
  const stdio = legacyStdio(t)
  const { url } = await startBridge(t, stdio.server, { limits: { processes: 4 } })
  for (let n = 0; n < 4; n++) await comeAndGo(url)
  t.equal(stdio.pids().length, 4)
  const modern = await call(url, 'tools/call', { name: 'echo', arguments: { text: 'here' } })
  t.equal(modern.status, 200)
  const ended = () => stdio.seen().flatMap(({ pid, line }) => (line === 'input ended' ? [pid] : []))
  await until(() => ended().length === 1, 'the end of a session')
  t.same(ended(), [stdio.pids()[0]], 'the one that was idle longest')
  const legacy = await LegacyClient.open(url)
  t.match((await legacy.call('echo', { x: 1 })).message, { result: { structuredContent: { x: 1 } } })
  await until(() => ended().length === 2, 'the end of another')
})

t.test('processes that one principal uses leave room for others', async (t) => {
  const stdio = legacyStdio(t)
  const { url } = await startBridge(t, stdio.server, { auth: { tokens: TOKENS }, limits: { processes: 8 } })
  const streams = []
  for (let n = 0; n < 4; n++) streams.push(await (await LegacyClient.open(url, as('greedy'))).listen())
  const refused = await call(url, 'tools/list', {}, as('greedy'))
  t.equal(refused.status, 429)
  t.match(refused.message.error, { code: -32603, data: { reason: 'rate_limited', outcome: 'not_executed' } })
  t.ok(refused.headers['retry-after'])
  t.equal((await call(url, 'tools/list', {}, as('modest'))).status, 200)
  const own = await LegacyClient.open(url, as('modest'))
  t.match((await own.call('echo', { x: 1 })).message, { result: { structuredContent: { x: 1 } } })
  t.equal(streams.filter(({ over }) => over).length, 0)
  streams[0]?.leave()
  await until(async () => (await call(url, 'tools/list', {}, as('greedy'))).status === 200, 'room in the own share')
})

t.test('with all processes in use, a new caller is asked to retry', async (t) => {
  const { url } = await startBridge(t, legacyStdio(t).server, { limits: { processes: 2 } })
  for (let n = 0; n < 2; n++) await (await LegacyClient.open(url)).listen()
  const refused = await call(url, 'tools/list')
  t.equal(refused.status, 503)
  t.match(refused.message.error, {
    message: 'All 2 processes of the server (limits.processes) are in use',
    data: { reason: 'overloaded', outcome: 'not_executed' },
  })
})

t.test('changing capabilities with each call starts no process for each, and ends no process of others', async (t) => {
  const stdio = legacyStdio(t)
  const limits = { processes: 8, startsPerMinute: 1 }
  const { url } = await startBridge(t, stdio.server, { auth: { tokens: TOKENS }, limits })
  const modest = () => call(url, 'tools/call', { name: 'echo', arguments: { text: 'here' } }, as('modest'))
  t.equal((await modest()).status, 200)
  const [own = ''] = stdio.pids()
  const statuses = []
  for (let n = 0; n < 30; n++) {
    const meta = { [CAPABILITIES]: { experimental: { [`feature-${n}`]: {} } } }
    statuses.push((await call(url, 'tools/list', {}, { ...as('greedy'), meta })).status)
  }
  t.same(
    statuses,
    statuses.map((_, n) => (n < 8 ? 200 : 429)),
    'as many at once as there may be, and one more in a minute',
  )
  t.equal(stdio.pids().length, 9)
  t.equal((await modest()).status, 200)
  t.notOk(
    stdio.seen().some(({ pid, line }) => pid === own && line === 'input ended'),
    'the process of the other is still there',
  )
  t.equal(stdio.pids().length, 9)
  const other = { ...as('modest'), meta: { [CAPABILITIES]: { experimental: { other: {} } } } }
  t.equal((await call(url, 'tools/list', {}, other)).status, 200, 'others may start what they need')
})
