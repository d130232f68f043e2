/** What is counted, and that it can be scraped. docs/metrics.md says what it is for. */
import type { ServerResponse } from 'node:http'
import t, { type Test } from 'tap'
import type { BridgeEvent } from '../../src/mcp/ports/events.js'
import { Metrics } from '../../src/services/telemetry/metrics.js'
import { ADA, all, NAME, startAsker, talk } from '../support/asking.js'
import { createBridge, startBridge } from '../support/bridge.js'
import { holdTimers } from '../support/clock.js'
import { until } from '../support/eventually.js'
import { LegacyClient } from '../support/legacy-client.js'
import { LegacyHttp } from '../support/legacy-http.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { call } from '../support/modern.js'
import { type Arrived, ModernHttp } from '../support/modern-http.js'
import { readFamilies, readSeries } from '../support/prometheus.js'

/** How long an answer is waited for, which no other timer has. */
const ANSWER = 1_234_567

const CALL: BridgeEvent & { kind: 'call' } = {
  kind: 'call',
  server: 'files',
  clientEra: 'modern',
  serverEra: 'legacy',
  method: 'tools/call',
  outcome: 'ok',
  blame: undefined,
  ms: 30,
  upstreamMs: 28,
}
const OF_CALL = 'server="files",client_era="modern",server_era="legacy"'

async function counted(...events: BridgeEvent[]) {
  const metrics = new Metrics({ version: '1.2.3' })
  for (const event of events) metrics.observe(event)
  return readSeries(await metrics.text([]))
}

t.test('counts calls, messages and sessions', async (t) => {
  const rows: [event: BridgeEvent, series: string][] = [
    [CALL, `calls_total{${OF_CALL},method="tools/call",outcome="ok",blame="nobody"}`],
    [
      { ...CALL, outcome: 'fault', blame: 'upstream', serverEra: undefined },
      'calls_total{server="files",client_era="modern",server_era="unknown",method="tools/call",outcome="fault",blame="upstream"}',
    ],
    [
      { ...CALL, method: 'vendor/secret-of-the-client' },
      `calls_total{${OF_CALL},method="other",outcome="ok",blame="nobody"}`,
    ],
    [{ ...CALL, method: 'toString' }, `calls_total{${OF_CALL},method="other",outcome="ok",blame="nobody"}`],
    [
      { kind: 'verdict', server: 'files', era: 'modern', why: 'it answered "server/discover"' },
      'verdicts_total{server="files",era="modern",why="it answered \\"server/discover\\""}',
    ],
    [{ kind: 'question', server: 'files', what: 'expired' }, 'questions_total{server="files",event="expired"}'],
    [
      { kind: 'downlevelled', server: 'files', what: 'outputSchema' },
      'downlevelled_total{server="files",feature="outputSchema"}',
    ],
    [{ kind: 'cache', server: 'files', what: 'hit' }, 'cache_events_total{server="files",event="hit"}'],
    [
      { kind: 'session', server: 'files', side: 'client', what: 'opened' },
      'session_events_total{server="files",side="client",event="opened"}',
    ],
    [
      { kind: 'session', server: 'files', side: 'client', what: 'opened', overSse: 'old' },
      'sse_sessions_total{server="files",side="client",client="old"}',
    ],
    [{ kind: 'child', server: 'files', what: 'restarted' }, 'child_events_total{server="files",event="restarted"}'],
    [{ kind: 'forwarded', server: 'files', what: 'lost' }, 'forwarded_total{server="files",outcome="lost"}'],
  ]
  for (const [event, series] of rows) {
    const name = `mcp_bridge_${series}`
    t.equal((await counted(event))[name], 1, name)
    t.equal((await counted(event, event))[name], 2, name)
  }
})

t.test('counters exist with 0 before the first event', async (t) => {
  const series = await counted({ kind: 'verdict', server: 'files', era: 'legacy', why: 'so' })
  t.equal(series['mcp_bridge_child_events_total{server="files",event="restarted"}'], 0)
  t.equal(series['mcp_bridge_questions_total{server="files",event="expired"}'], 0)
  t.equal(series['mcp_bridge_session_events_total{server="files",side="server",event="lost"}'], 0)
})

t.test('splits the time of a call into that of the server and the rest', async (t) => {
  const series = await counted(CALL, { ...CALL, outcome: 'error', ms: 400, upstreamMs: 399.95 })
  const total = 'mcp_bridge_call_duration_seconds'
  t.equal(series[`${total}_bucket{server="files",method="tools/call",le="0.025"}`], 0)
  t.equal(series[`${total}_bucket{server="files",method="tools/call",le="0.05"}`], 1)
  t.equal(series[`${total}_bucket{server="files",method="tools/call",le="0.5"}`], 2)
  t.equal(series[`${total}_bucket{server="files",method="tools/call",le="+Inf"}`], 2)
  t.equal(series[`${total}_count{server="files",method="tools/call"}`], 2)
  const about = (name: string) => (series[`${name}_sum{server="files",method="tools/call"}`] as number).toFixed(6)
  t.equal(about(total), '0.430000')
  t.equal(about('mcp_bridge_call_upstream_seconds'), '0.427950')
  const bridge = 'mcp_bridge_call_bridge_seconds'
  const eras = 'client_era="modern",server_era="legacy",method="tools/call"'
  t.equal(series[`${bridge}_bucket{${eras},le="0.0001"}`], 1, 'the second took 50 µs here')
  t.equal(series[`${bridge}_bucket{${eras},le="0.0025"}`], 2, 'the first took 2 ms')
})

t.test('times only calls that end by themselves, and splits only those that went to the server once', async (t) => {
  const endless = await counted({ ...CALL, method: 'subscriptions/listen' }, { ...CALL, method: 'GET' })
  t.notOk(Object.keys(endless).some((name) => name.startsWith('mcp_bridge_call_')))
  const unsplit = await counted({ ...CALL, upstreamMs: undefined })
  t.equal(unsplit['mcp_bridge_call_duration_seconds_count{server="files",method="tools/call"}'], 1)
  t.equal(unsplit['mcp_bridge_call_upstream_seconds_count{server="files",method="tools/call"}'], 0)
})

t.test('a label with foreign values has at most 200 of them, and another for the rest', async (t) => {
  const metrics = new Metrics({ version: '1' })
  for (let i = 0; i < 250; i++) {
    metrics.observe({ ...CALL, server: `server-${i}` })
    metrics.observe({ kind: 'verdict', server: 'server-0', era: 'legacy', why: `it said ${i}` })
    metrics.observe({ kind: 'downlevelled', server: 'server-0', what: `feature ${i}` })
  }
  const families = readFamilies(await metrics.text([]))
  const labels = { calls_total: 'server', verdicts_total: 'why', downlevelled_total: 'feature' }
  for (const [metric, label] of Object.entries(labels)) {
    const name = `mcp_bridge_${metric}`
    const series = families.find((family) => family.name === name)?.series ?? []
    t.equal(series.length, 201, name)
    t.equal(series.find(([text]) => text.includes(`${label}="other"`))?.[1], 50, name)
  }
})

t.test('by default metrics do not distinguish tools', async (t) => {
  const series = await counted({ ...CALL, tool: 'read_file' })
  t.notOk(Object.keys(series).some((name) => name.includes('tool=')))
})

t.test('the label `tool` has a bounded number of values for each server, and another for the rest', async (t) => {
  const metrics = new Metrics({ version: '1', tools: 2 })
  const calls = (server: string, tools: readonly (string | undefined)[]) => {
    for (const tool of tools) metrics.observe({ ...CALL, server, tool })
  }
  calls('a', ['read', 'write', 'delete', 'read', undefined, 'move'])
  calls('b', ['move', 'move'])
  metrics.observe({ ...CALL, server: 'a', method: 'prompts/get', tool: 'read' })
  const series = readSeries(await metrics.text([]))
  const count = (server: string, tool: string) => {
    const labels = `server="${server}",client_era="modern",server_era="legacy",method="tools/call",tool="${tool}"`
    return series[`mcp_bridge_calls_total{${labels},outcome="ok",blame="nobody"}`]
  }
  t.same([count('a', 'read'), count('a', 'write'), count('a', 'other'), count('b', 'move')], [2, 1, 3, 2])
  t.notOk('delete' in series || count('a', 'move'), 'further ones have no value')
  const name = 'mcp_bridge_call_duration_seconds_count'
  t.equal(series[`${name}{server="a",method="tools/call",tool="other"}`], 3)
  t.equal(series[`${name}{server="a",method="prompts/get"}`], 1, 'other methods have no such label')
})

t.test('reads bounds when metrics are requested', async (t) => {
  const metrics = new Metrics({ version: '1' })
  const text = await metrics.text([
    { bound: 'calls', used: 3, limit: 2_000 },
    { bound: 'parked', server: 'files', used: 1, limit: 10 },
  ])
  t.match(readSeries(text), {
    'mcp_bridge_bound_used{bound="calls",server=""}': 3,
    'mcp_bridge_bound_limit{bound="calls",server=""}': 2_000,
    'mcp_bridge_bound_used{bound="parked",server="files"}': 1,
  })
  const later = readSeries(await metrics.text([{ bound: 'calls', used: 0, limit: 2_000 }]))
  t.equal(later['mcp_bridge_bound_used{bound="calls",server=""}'], 0)
  t.notOk('mcp_bridge_bound_used{bound="parked",server="files"}' in later, 'a server that is gone is told no more')
})

/** What `promtool check metrics` finds fault with, metric by metric (prometheus, util/promlint). */
const LINT: [rule: string, broken: (family: { name: string; help: string; type: string }) => boolean][] = [
  ['has a help text', ({ help }) => help === ''],
  ['has a type', ({ type }) => !['counter', 'gauge', 'histogram'].includes(type)],
  ['is a counter exactly if it ends in _total', ({ name, type }) => (type === 'counter') !== name.endsWith('_total')],
  ['does not end like a part of a histogram', ({ name }) => /_(?:bucket|count|sum)$/.test(name)],
  ['does not say its type', ({ name }) => /_(?:counter|gauge|histogram|summary)(?:_|$)/.test(name)],
  ['is in snake case', ({ name }) => !/^[a-z][a-z0-9_]*$/.test(name)],
  [
    'has base units, in full',
    ({ name }) => /_(?:ms|us|ns|s|sec|milliseconds|minutes|hours|days|kb|mb|kib|mib|b|percent)(?:_|$)/.test(name),
  ],
  ['of times says that it is seconds', ({ name, type }) => type === 'histogram' && !name.endsWith('_seconds')],
]

t.test('the text is valid for Prometheus', async (t) => {
  const metrics = new Metrics({ version: '1' })
  metrics.observe(CALL)
  metrics.observe({ ...CALL, method: 'tools/list' })
  metrics.observe({ kind: 'verdict', server: 'a', era: 'unknown', why: 'a "reason"\nin two \\ lines' })
  const text = await metrics.text([{ bound: 'calls', used: 1, limit: 2 }])
  t.equal(metrics.contentType, 'text/plain; version=0.0.4; charset=utf-8')
  t.ok(text.endsWith('\n'))
  const families = readFamilies(text)
  t.equal(new Set(families.map(({ name }) => name)).size, families.length, 'each metric is there once')
  const series = families.flatMap((family) => family.series)
  t.equal(new Set(series.map(([name]) => name)).size, series.length, 'no series is there twice')
  t.equal(series.length, text.split('\n').filter((line) => line !== '' && !line.startsWith('#')).length)
  for (const family of families) {
    for (const [rule, broken] of LINT) t.notOk(broken(family), `${family.name} ${rule}`)
    for (const [name] of family.series)
      t.notMatch(name, /[{,](?!le=)[^=]*[A-Z][^=]*="/, `${name}: labels in snake case`)
  }
  for (const { name, series } of families.filter(({ type }) => type === 'histogram')) {
    const counts = series.filter(([text]) => text.startsWith(`${name}_bucket`))
    for (const [text, value] of counts) {
      const of = text
        .replace(/,?le="[^"]*"/, '')
        .replace('_bucket', '_count')
        .replace('{}', '')
      const count = series.find(([other]) => other === of)?.[1]
      t.ok(count !== undefined && value <= count && (!text.includes('+Inf') || value === count), text)
    }
  }
  for (const name of ['process_cpu_seconds_total', 'process_resident_memory_bytes', 'nodejs_eventloop_lag_p99_seconds'])
    t.ok(
      families.some((family) => family.name === name && family.series.length > 0),
      name,
    )
})

/** A bridge that counts, and what it has counted. */
async function start(t: Test, server: object, settings: object = {}) {
  const metrics = new Metrics({ version: '0.0.0' })
  const started = await startBridge(t, server, settings, { metrics })
  const scrape = async () => {
    const answer = await fetch(new URL('/metrics', started.url))
    t.match(answer, { status: 200 })
    return readSeries(await answer.text())
  }
  return { ...started, scrape }
}

const calls = (eras: string, rest: string) => `mcp_bridge_calls_total{server="test",${eras},${rest}}`
const FINE = 'outcome="ok",blame="nobody"'

t.test('counts a translated call of a modern client', async (t) => {
  const legacy = await LegacyHttp.start(t)
  const { url, scrape, log } = await start(t, { url: legacy.url })
  await call(url, 'tools/call', { name: 'wait', arguments: { ms: 40 } })
  await call(url, 'tools/call', { name: 'fail', arguments: { error: { code: -32050, message: 'no' } } })
  await call(url, 'vendor/anything')
  await call(url, 'tools/call', { name: 'echo' }, { meta: { 'io.modelcontextprotocol/clientCapabilities': 7 } })
  const series = await scrape()
  const eras = 'client_era="modern",server_era="legacy"'
  t.equal(series[calls(eras, `method="tools/call",${FINE}`)], 1)
  t.equal(series[calls(eras, 'method="tools/call",outcome="error",blame="nobody"')], 1)
  t.ok(Object.keys(series).some((name) => name.includes('method="other"')))
  const refused = 'method="tools/call",outcome="fault",blame="caller"'
  t.equal(series[calls(eras, refused)], 1, 'a refused call has the era of the server, too')
  const short = series[
    'mcp_bridge_call_upstream_seconds_bucket{server="test",method="tools/call",le="0.025"}'
  ] as number
  t.ok(short <= 1, 'the call of 40 ms is in no bucket below that')
  t.equal(series['mcp_bridge_call_upstream_seconds_count{server="test",method="tools/call"}'], 2)
  t.ok((series['mcp_bridge_call_upstream_seconds_sum{server="test",method="tools/call"}'] as number) >= 0.04)
  t.equal(
    series['mcp_bridge_call_bridge_seconds_count{client_era="modern",server_era="legacy",method="tools/call"}'],
    2,
  )
  t.equal(series['mcp_bridge_call_duration_seconds_count{server="test",method="tools/call"}'], 3)
  const why = 'it answered server/discover with the error -32601'
  t.equal(series[`mcp_bridge_verdicts_total{server="test",era="legacy",why="${why}"}`], 1)
  t.equal(series['mcp_bridge_session_events_total{server="test",side="server",event="opened"}'], 1)
  t.equal(series['mcp_bridge_bound_used{bound="sessions",server="test"}'], 1)
  t.equal(series['mcp_bridge_bound_limit{bound="sessions",server="test"}'], 10_000)
  t.equal(series['mcp_bridge_bound_used{bound="calls",server=""}'], 0)
  t.ok((series['mcp_bridge_bound_used{bound="connections",server=""}'] as number) >= 1)
  t.equal(series['mcp_bridge_build_info{version="0.0.0"}'], 1)
  const waited = log.find(({ event, name }) => event === 'call' && name === 'wait')
  t.match(waited, { server: 'test', ms: Number, upstreamMs: Number })
  t.ok(Number(waited?.['upstreamMs']) >= 40 && Number(waited?.['ms']) >= Number(waited?.['upstreamMs']))
})

t.test('counts a translated call of a legacy client', async (t) => {
  const modern = await ModernHttp.start(t)
  const { url, scrape } = await start(t, { url: modern.url })
  const client = await LegacyClient.open(url, { revision: '2024-11-05' })
  t.match((await client.request('tools/list')).message, { result: { tools: [] } })
  t.match((await client.call('echo')).message, { result: {} })
  await client.end()
  const series = await scrape()
  const eras = 'client_era="legacy",server_era="modern"'
  t.equal(series[calls(eras, `method="initialize",${FINE}`)], 1)
  t.equal(series[calls(eras, `method="tools/call",${FINE}`)], 1)
  t.equal(series['mcp_bridge_session_events_total{server="test",side="client",event="opened"}'], 1)
  t.equal(series['mcp_bridge_session_events_total{server="test",side="client",event="ended"}'], 1)
  t.ok((series['mcp_bridge_downlevelled_total{server="test",feature="structuredContent"}'] as number) >= 1)
})

t.test('counts a call that passes unchanged', async (t) => {
  const override = ({ message }: Arrived, response: ServerResponse) => {
    if (message?.['method'] !== 'tools/list') return false
    response.destroy()
    return true
  }
  const modern = await ModernHttp.start(t, { override })
  const { url, bridge, scrape } = await start(t, { url: modern.url })
  await bridge.server.warmUp()
  await call(url, 'tools/call', { name: 'wait', arguments: { ms: 40 } })
  const eras = 'client_era="modern",server_era="modern"'
  const name = calls(eras, 'method="tools/call",outcome="ok",blame="nobody"')
  await until(async () => (await scrape())[name] === 1, 'the end of the call')
  const series = await scrape()
  t.ok((series['mcp_bridge_call_upstream_seconds_sum{server="test",method="tools/call"}'] as number) >= 0.039)
  t.match((await call(url, 'tools/list')).message.error, { data: { outcome: 'unknown' } })
  const failed = calls(eras, 'method="tools/list",outcome="fault",blame="upstream"')
  await until(async () => (await scrape())[failed] === 1, 'the failure')
})

t.test("counts a call to a server of the client's era", async (t) => {
  const { server } = legacyStdio(t)
  const { url, scrape } = await start(t, server)
  const client = await LegacyClient.open(url)
  await client.call('echo')
  t.equal((await scrape())['mcp_bridge_child_events_total{server="test",event="started"}'], 1)
  t.equal((await scrape())['mcp_bridge_bound_used{bound="processes",server="test"}'], 1)
  await client.call('crash')
  await until(
    async () => (await scrape())['mcp_bridge_session_events_total{server="test",side="client",event="lost"}'] === 1,
  )
  await (await LegacyClient.open(url)).call('echo')
  const series = await scrape()
  const eras = 'client_era="legacy",server_era="legacy"'
  t.equal(series[calls(eras, `method="tools/call",${FINE}`)], 2)
  t.equal(series[calls(eras, 'method="tools/call",outcome="fault",blame="upstream"')], 1)
  t.equal(series['mcp_bridge_child_events_total{server="test",event="ended"}'], 1)
  t.equal(series['mcp_bridge_child_events_total{server="test",event="restarted"}'], 1)
  t.equal(series['mcp_bridge_session_events_total{server="test",side="server",event="lost"}'], 1)
  t.equal(series['mcp_bridge_session_events_total{server="test",side="server",event="opened"}'], 2)
})

t.test('counts questions to modern clients', async (t) => {
  const timeLimit = holdTimers(t, ANSWER)
  const asker = await startAsker(t, 'on the stream of the call over HTTP')
  const { url, scrape } = await start(t, asker.server, {
    limits: { parkedPerPrincipal: 1 },
    timeouts: { answer: ANSWER },
  })
  const { steps, again } = talk(url, asker)
  const first = await steps([{ ask: [NAME] }])
  t.equal((await scrape())['mcp_bridge_bound_used{bound="parked",server="test"}'], 1)
  await steps([{ ask: [NAME] }])
  await again(first, all(first, ADA))
  await steps([{ ask: [NAME] }])
  const told = async (event: string) => (await scrape())[`mcp_bridge_questions_total{server="test",event="${event}"}`]
  t.equal(timeLimit.waiting, 1)
  timeLimit.run()
  await until(async () => (await told('expired')) === 1, 'the time for the answer to be over')
  t.same([await told('parked'), await told('answered')], [2, 1])
  t.ok(((await told('refused')) as number) >= 1)
})

t.test('counts questions to legacy clients', async (t) => {
  const modern = await ModernHttp.start(t)
  const { url, scrape } = await start(t, { url: modern.url })
  const client = await LegacyClient.open(url, { capabilities: { roots: {}, sampling: {} } })
  const ask = { name: 'ask', arguments: { rounds: [{ roots: { method: 'roots/list' } }] } }
  const put = async (answer: object) => {
    const stream = await client.stream('tools/call', ask)
    await until(() => stream.messages.length > 0, 'the question')
    await client.post({ jsonrpc: '2.0', id: stream.messages[0]?.['id'], ...answer })
    await until(() => stream.over, 'the answer')
  }
  await put({ result: { roots: [] } })
  await put({ error: { code: -1, message: 'no' } })
  const undeclared = { name: 'ask', arguments: { rounds: [{ name: NAME }], regardless: true } }
  await client.request('tools/call', undeclared)
  const series = await scrape()
  const told = (event: string) => series[`mcp_bridge_questions_total{server="test",event="${event}"}`]
  t.same([told('parked'), told('answered'), told('refused')], [2, 1, 2])
})

t.test('counts nothing while metrics are off', async (t) => {
  const legacy = await LegacyHttp.start(t)
  const { url } = await startBridge(t, { url: legacy.url })
  t.match(await fetch(new URL('/metrics', url)), { status: 404 })
})

t.test('metrics require a token if clients do, and are refused beyond loopback otherwise', async (t) => {
  const legacy = await LegacyHttp.start(t)
  const token = 'token-of-ada-0123456789'
  const scraped = async (settings: object, headers: Record<string, string> = {}) => {
    const { url, bridge } = await start(t, { url: legacy.url }, settings)
    const { status } = await fetch(new URL('/metrics', bridge.adminUrl ?? url), { headers })
    return status
  }
  const tokens = { auth: { tokens: { ada: token } } }
  t.equal(await scraped(tokens), 401)
  t.equal(await scraped(tokens, { authorization: `Bearer ${token}` }), 200)
  t.equal(await scraped({ ...tokens, admin: 'http://127.0.0.1:0' }), 200)
  const metrics = new Metrics({ version: '1' })
  const open = { allowUnauthenticated: true, allowedHosts: ['127.0.0.1'] }
  const { bridge } = createBridge(t, { url: legacy.url }, open, { metrics })
  const urls = await bridge.listen({ kind: 'http', host: '0.0.0.0', port: 0, path: '/mcp' })
  const port = new URL([...urls.values()][0] as string).port
  t.match(await fetch(`http://127.0.0.1:${port}/metrics`), { status: 404 })
})
