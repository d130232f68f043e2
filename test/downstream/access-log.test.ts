/** The log line of a call names the caller, and the configuration chooses which calls have a line. */
import { createHash } from 'node:crypto'
import t from 'tap'
import { Metrics } from '../../src/services/telemetry/metrics.js'
import { startBridge } from '../support/bridge.js'
import { until } from '../support/eventually.js'
import { LegacyClient } from '../support/legacy-client.js'
import { LegacyHttp } from '../support/legacy-http.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { call } from '../support/modern.js'
import { ModernHttp } from '../support/modern-http.js'

const TOKEN = 'alice-0123456789abcdef'
const authorization = `Bearer ${TOKEN}`
const DIGEST = `t:${createHash('sha256').update(TOKEN).digest('hex').slice(0, 12)}`

t.test('the line of a call has its caller: translated, unchanged or in a direct session', async (t) => {
  const modern = await ModernHttp.start(t)
  const legacy = await LegacyHttp.start(t)
  const auths: [auth: object, principal: string][] = [
    [{}, 'local'],
    [{ auth: { tokens: { alice: TOKEN } } }, 'alice'],
    [{ auth: { passthrough: true } }, DIGEST],
  ]
  for (const [auth, principal] of auths) {
    for (const server of [{ url: modern.url }, { url: legacy.url }, legacyStdio(t).server]) {
      if (!('url' in server) && principal === DIGEST) continue
      const { url, bridge, log } = await startBridge(t, server, auth)
      await bridge.server.warmUp().catch(() => {})
      await call(url, 'tools/call', { name: 'echo' }, { headers: { authorization } })
      const client = await LegacyClient.open(url, { headers: { authorization } })
      await client.call('echo')
      const lines = () => log.filter(({ event }) => event === 'call')
      await until(() => lines().length >= 3, 'the lines of all calls')
      for (const line of lines()) t.match(line, { principal, outcome: 'ok', ms: Number }, `${line['method']}`)
      t.notMatch(JSON.stringify(log), new RegExp(TOKEN))
    }
  }
})

t.test('the line of a refused request has its principal, if known', async (t) => {
  const { url } = await LegacyHttp.start(t)
  const bridge = await startBridge(t, { url }, { auth: { tokens: { alice: TOKEN } } })
  await call(bridge.url, 'tools/list', {}, { headers: { authorization, 'mcp-method': 'tools/call' } })
  await call(bridge.url, 'tools/list', {}, { headers: { authorization: 'Bearer wrong' } })
  const refused = () => bridge.log.filter(({ event }) => event === 'request_refused')
  await until(() => refused().length === 2, 'both lines')
  t.match(refused(), [{ fault: 'headerMismatch', principal: 'alice' }, { fault: 'unauthorized' }])
  t.notOk('principal' in (refused()[1] ?? {}))
})

t.test('log.calls chooses the calls that have a line, and metrics count all', async (t) => {
  const modern = await ModernHttp.start(t, {
    override: ({ headers }, response) => {
      if (headers['mcp-name'] !== 'gone') return false
      response.destroy()
      return true
    },
  })
  const rows: [calls: string, outcomes: string[]][] = [
    ['all', ['ok', 'tool_error', 'error', 'fault']],
    ['failed', ['tool_error', 'error', 'fault']],
    ['none', []],
  ]
  for (const [calls, outcomes] of rows) {
    const metrics = new Metrics({ version: '0' })
    const { url, bridge, log } = await startBridge(t, { url: modern.url }, { log: { calls } }, { metrics })
    await bridge.server.warmUp()
    await call(url, 'tools/call', { name: 'echo' })
    await call(url, 'tools/call', { name: 'fail' })
    await call(url, 'tools/call', { name: 'fail', arguments: { error: { code: -32077, message: 'no' } } })
    await call(url, 'tools/call', { name: 'gone' })
    const counted = async () => {
      const text = await metrics.text([])
      return [...text.matchAll(/^mcp_bridge_calls_total\{.*?outcome="(\w+)".*?\} 1$/gm)].map(([, outcome]) => outcome)
    }
    await until(async () => (await counted()).length === 4, 'the count of all calls')
    t.same((await counted()).sort(), ['error', 'fault', 'ok', 'tool_error'], calls)
    const lines = log.filter(({ event }) => event === 'call')
    t.same(
      lines.map(({ outcome }) => outcome),
      outcomes,
      calls,
    )
  }
})
