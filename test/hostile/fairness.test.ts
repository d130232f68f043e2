/** One principal takes all that it can get: the others still get theirs. Names begin with the number of the hole. */
import t from 'tap'
import { startBridge } from '../support/bridge.js'
import { until } from '../support/eventually.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { call } from '../support/modern.js'

const TOKENS = { greedy: 'greedy-token-0123456789', modest: 'modest-token-0123456789' }
const as = (name: keyof typeof TOKENS) => ({ headers: { authorization: `Bearer ${TOKENS[name]}` } })

t.test('H10 calls that hang are let in up to a share, and those of others beside them', async (t) => {
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

t.test('H10 subscriptions of one principal leave room for others', async (t) => {
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
  const modest = listen('modest')
  t.equal(await Promise.race([modest, new Promise((resolve) => setTimeout(resolve, 500, 'open'))]), 'open')
  leaving.abort()
  await Promise.all([...greedy, modest])
})

t.test('who is alone may use all of a bound', async (t) => {
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
