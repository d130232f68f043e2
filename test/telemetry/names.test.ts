/** Names of tools and prompts in names of spans: those that servers have listed, on every way to a server. */
import type { ServerResponse } from 'node:http'
import t, { type Test } from 'tap'
import { sourceOf } from '../../src/base/rpc/source.js'
import { type Payload, payloadAt } from '../../src/base/rpc/splice.js'
import { ListedNames } from '../../src/mcp/protocol/listed-names.js'
import type { Span, Tracer } from '../../src/mcp/protocol/trace.js'
import { Metrics } from '../../src/services/telemetry/metrics.js'
import { startBridge } from '../support/bridge.js'
import { says, startProgram } from '../support/cli.js'
import { until } from '../support/eventually.js'
import { temporaryFile } from '../support/folder.js'
import { LegacyClient } from '../support/legacy-client.js'
import { LegacyHttp } from '../support/legacy-http.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { call } from '../support/modern.js'
import { type Arrived, ModernHttp } from '../support/modern-http.js'
import { modernStdio } from '../support/modern-stdio.js'
import { readSeries } from '../support/prometheus.js'

type Ask = (method: string, params?: Record<string, unknown>) => Promise<unknown>

function pageOf(result: object): Payload {
  const text = JSON.stringify(result)
  return payloadAt(sourceOf(text), { start: 0 }) as Payload
}

const listing = (key: string, names: readonly string[]) => pageOf({ [key]: names.map((name) => ({ name })) })

/** A bridge whose spans are kept as they end. */
async function start(t: Test, server: object, settings: object = {}, names = new ListedNames()) {
  const ended: Readonly<Record<string, unknown>>[] = []
  const span = (): Span => ({
    context: { traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01` },
    ids: { trace_id: '', span_id: '' },
    within: span,
    end: (fields) => ended.push(fields),
  })
  const tracer: Tracer = { begin: span }
  return { ...(await startBridge(t, server, settings, { tracer, names })), ended }
}

t.test('a server has a bounded number of names, of bounded length', async (t) => {
  const names = new ListedNames()
  names.learn('a', 'tools/list', listing('tools', ['first', 'x'.repeat(120)]))
  names.learn(
    'a',
    'tools/list',
    listing(
      'tools',
      Array.from({ length: 2_000 }, (_, i) => `tool-${i}`),
    ),
  )
  t.ok(names.has('a', 'tools/call', 'first'))
  t.ok(names.has('a', 'tools/call', 'tool-998'))
  t.notOk(names.has('a', 'tools/call', 'tool-999'), 'the 1,001st')
  t.notOk(names.has('a', 'tools/call', 'x'.repeat(120)))
  t.notOk(names.has('b', 'tools/call', 'first'), 'of another server')
  t.notOk(names.has('a', 'prompts/get', 'first'), 'of another kind')
  names.learn('b', 'prompts/list', listing('prompts', ['first']))
  t.ok(names.has('b', 'prompts/get', 'first'))
  names.learn('b', 'tools/call', listing('tools', ['invented']))
  t.notOk(names.has('b', 'tools/call', 'invented'), 'only lists count')
  names.learn('b', 'tools/list', pageOf({ tools: [1, { name: 2 }, {}, { name: 'good' }] }))
  t.ok(names.has('b', 'tools/call', 'good'))
  for (let i = 0; i < 500; i++) names.learn(`server-${i}`, 'tools/list', listing('tools', ['one']))
  t.notOk(names.has('server-450', 'tools/call', 'one'), 'servers are bounded, too')
})

/** A list of more bytes than the bridge reads before it sends any of them. */
const large = ({ message }: Arrived, response: ServerResponse) => {
  if (message?.['method'] !== 'tools/list') return false
  const tools = Array.from({ length: 500 }, (_, i) => ({
    name: i === 250 ? 'echo' : `tool-${i}`,
    description: 'x'.repeat(300),
    inputSchema: { type: 'object' },
  }))
  const result = { tools, resultType: 'complete', ttlMs: 0, cacheScope: 'private' }
  response
    .setHeader('content-type', 'application/json')
    .end(JSON.stringify({ jsonrpc: '2.0', id: message['id'], result }))
  return true
}

const lanes: Record<string, (t: Test) => Promise<{ server: object; legacy: boolean }>> = {
  'modern to legacy HTTP': async (t) => ({ server: { url: (await LegacyHttp.start(t)).url }, legacy: false }),
  'modern to modern HTTP, unchanged': async (t) => ({
    server: { url: (await ModernHttp.start(t)).url },
    legacy: false,
  }),
  'modern to modern HTTP, unchanged in parts': async (t) => ({
    server: { url: (await ModernHttp.start(t, { override: large })).url },
    legacy: false,
  }),
  'modern to a legacy program': async (t) => ({ server: legacyStdio(t).server, legacy: false }),
  'legacy to a modern program': async (t) => ({ server: modernStdio(t).server, legacy: true }),
  'legacy to modern HTTP': async (t) => ({ server: { url: (await ModernHttp.start(t)).url }, legacy: true }),
  'legacy to legacy HTTP, direct session': async (t) => ({
    server: { url: (await LegacyHttp.start(t)).url },
    legacy: true,
  }),
  'legacy to legacy HTTP, direct session with events': async (t) => ({
    server: { url: (await LegacyHttp.start(t, { streams: true })).url },
    legacy: true,
  }),
  'legacy to a legacy program, direct session': async (t) => ({ server: legacyStdio(t).server, legacy: true }),
}

for (const [lane, make] of Object.entries(lanes)) {
  t.test(`a span is named after a tool as soon as the server has listed it: ${lane}`, async (t) => {
    const { server, legacy } = await make(t)
    const { url, bridge, ended } = await start(t, server)
    await bridge.server.warmUp()
    const client = legacy ? await LegacyClient.open(url) : undefined
    const ask: Ask = (method, params) => (client ? client.request(method, params) : call(url, method, params))
    const targets = async (name: string) => {
      ended.length = 0
      await ask('tools/call', { name, arguments: {} })
      await until(() => ended.length === 2, 'the spans of both sides')
      for (const span of ended) t.match(span, { name, method: 'tools/call', server: 'test' })
      return ended.map(({ target }) => target)
    }
    t.same(await targets('echo'), [undefined, undefined], 'nobody has listed it')
    await ask('tools/list')
    for (let page = 0; page < 2; page++) await ask('tools/list', { cursor: 'page 2' })
    t.same(await targets('echo'), ['echo', 'echo'])
    t.same(await targets('invented-by-a-client'), [undefined, undefined])
  })
}

t.test('metrics count calls by tools that the server has listed, and invented names as one', async (t) => {
  const { url } = await LegacyHttp.start(t)
  const metrics = new Metrics({ version: '1', tools: 10 })
  const { url: own, bridge } = await startBridge(t, { url }, {}, { metrics, names: new ListedNames() })
  await bridge.server.warmUp()
  await call(own, 'tools/list')
  for (const name of ['echo', 'echo', 'invented', 'invented-again', '']) await call(own, 'tools/call', { name })
  const series = readSeries(await (await fetch(new URL('/metrics', own))).text())
  const counted = (tool: string) =>
    Object.entries(series)
      .filter(([name]) => name.startsWith('mcp_bridge_calls_total{') && name.includes(`tool="${tool}"`))
      .reduce((sum, [, value]) => sum + value, 0)
  t.same([counted('echo'), counted('other')], [2, 3])
  t.notOk(Object.keys(series).some((name) => name.includes('invented')))
})

t.test('with `metricsTools`, counts by tool from the first call on', async (t) => {
  const { url } = await LegacyHttp.start(t)
  const file = temporaryFile(t, 'mcp.json', JSON.stringify({ mcpServers: { a: { url } }, metricsTools: 5 }))
  const addresses = ['--listen', 'http://127.0.0.1:0/mcp', '--admin', 'http://127.0.0.1:0']
  const running = startProgram(t, ['--config', file, '--log-format', 'json', ...addresses])
  const [, admin = ''] = await says(running, /"event":"admin_listening","url":"([^"]+)"/)
  const [, own = ''] = await says(running, /"event":"listening","url":"([^"]+)"/)
  const tools = async () => {
    await call(own, 'tools/call', { name: 'echo' })
    await call(own, 'tools/call', { name: 'invented' })
    const text = await (await fetch(new URL('/metrics', admin))).text()
    return new Set([...text.matchAll(/mcp_bridge_calls_total\{.*?tool="([^"]*)"/g)].map(([, tool]) => tool))
  }
  await until(async () => (await tools()).has('echo'), 'the list that the bridge itself has asked for')
  t.same([...(await tools())].sort(), ['echo', 'other'])
})

t.test('requests the tools at the start, so that the first call counts', async (t) => {
  const { url } = await LegacyHttp.start(t)
  const names = new ListedNames()
  const { bridge, ended, url: own } = await start(t, { url }, {}, names)
  await bridge.warmUp(() => {})
  await until(() => names.has('test', 'tools/call', 'echo'), 'the list')
  await call(own, 'tools/call', { name: 'echo' })
  await until(() => ended.some(({ target }) => target === 'echo'), 'the span')
})

t.test('in a group, and for renamed tools, the server determines the name', async (t) => {
  const { url } = await LegacyHttp.start(t)
  const renamed = { url, tools: { override: { echo: { name: 'repeat' } } } }
  const {
    bridge,
    url: own,
    ended,
  } = await start(t, {}, { mcpServers: { a: { url }, b: renamed }, groups: { all: {} } })
  await bridge.warmUp(() => {})
  const group = bridge.groupUrls.get('all') ?? own
  const targetOf = async (name: string) => {
    await until(async () => {
      ended.length = 0
      await call(group, 'tools/call', { name })
      await until(() => ended.some(({ method }) => method === 'tools/call'), 'the span')
      return ended.some(({ target }) => target === name)
    }, `${name} is listed`)
    return ended.find(({ target }) => target === name)?.['server']
  }
  t.equal(await targetOf('a__echo'), 'a')
  t.equal(await targetOf('b__repeat'), 'b')
  ended.length = 0
  await call(group, 'tools/call', { name: 'a__invented' })
  await until(() => ended.some(({ method }) => method === 'tools/call'), 'the span')
  t.notOk(ended.some(({ target }) => target !== undefined))
})
