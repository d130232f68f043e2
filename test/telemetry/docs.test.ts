/** docs/metrics.md, docs/logs.md and the dashboard say what there is, and all of it. */
import { readFileSync } from 'node:fs'
import t from 'tap'
import type { BridgeEvent } from '../../src/mcp/ports/events.js'
import { Metrics } from '../../src/services/telemetry/metrics.js'
import { atLeast } from '../support/at-least.js'
import { startBridge } from '../support/bridge.js'
import { LegacyClient } from '../support/legacy-client.js'
import { LegacyHttp } from '../support/legacy-http.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { call } from '../support/modern.js'
import { ModernHttp } from '../support/modern-http.js'
import { type Family, readFamilies } from '../support/prometheus.js'

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')
const page = read('docs/metrics.md')
const dashboard = JSON.parse(read('config/helm/mcp-bridge/files/grafana-dashboard.json')) as {
  templating: { list: { name: string; type: string; query: unknown }[] }
  panels: {
    id: number
    type: string
    title: string
    datasource?: object
    gridPos: { x: number; y: number; w: number; h: number }
    targets?: { expr: string; datasource: object }[]
  }[]
}
const NAME = /\b(?:mcp_bridge|process|nodejs)_[a-z0-9_]+/g
const SOURCE = { type: 'prometheus', uid: '${datasource}' }

const ABOUT = { server: 'files', group: 'team' } as const
const EVENTS: BridgeEvent[] = [
  {
    ...ABOUT,
    kind: 'call',
    clientEra: 'modern',
    serverEra: 'legacy',
    method: 'tools/call',
    tool: 'read_file',
    outcome: 'ok',
    blame: undefined,
    ms: 2,
    upstreamMs: 1,
  },
  { ...ABOUT, kind: 'session', side: 'client', what: 'opened', session: undefined, principal: 'ada', overSse: 'ide' },
  { ...ABOUT, kind: 'verdict', era: 'modern', why: 'so' },
  { kind: 'approval', server: 'files', what: 'asked' },
  { kind: 'cut', server: 'files', what: 'cut', bytes: 1 },
  { ...ABOUT, kind: 'downlevelled', what: 'outputSchema' },
  { ...ABOUT, kind: 'cache', what: 'hit' },
  { ...ABOUT, kind: 'forwarded', what: 'answered' },
  { ...ABOUT, kind: 'member', what: 'missing' },
  { ...ABOUT, kind: 'refusal', reason: 'unauthorized', status: 401, said: 'no' },
  { ...ABOUT, kind: 'discovery', phase: 'connect', reason: 'refused' },
]

/** All that there is to scrape, when everything has happened. */
async function families(): Promise<Family[]> {
  const metrics = new Metrics({ version: '1', tools: 1 })
  for (const event of EVENTS) metrics.observe(event)
  const gauges = [{ bound: 'client_sessions', group: 'team', used: 1, limit: 2 }]
  const certificates = [{ use: 'server', server: 'files', expiresAt: 1 }] as const
  return readFamilies(
    await metrics.text(gauges, {
      redisUp: true,
      redisMayEvict: false,
      certificates,
      issuers: [{ issuer: 'https://a', state: 'up' }],
      addresses: [{ server: 'files', address: 'https://a/mcp', isUp: true, calls: 1 }],
    }),
  )
}

/** Names by which series are asked for. */
const isOwn = ({ name }: Family) => name.startsWith('mcp_bridge_')

function namesOf({ name, type }: Family): string[] {
  return type === 'histogram' ? [`${name}_bucket`, `${name}_sum`, `${name}_count`] : [name]
}

t.test('the documentation has every metric with its labels, and no other', async (t) => {
  const all = await families()
  const metrics = page
  const known = new Set(all.flatMap((family) => [family.name, ...namesOf(family)]))
  for (const name of atLeast(t, 20, 'names', metrics.match(NAME) ?? []))
    t.ok(known.has(name), `there is a metric ${name}`)
  for (const { name, series } of atLeast(t, 15, 'metrics', all.filter(isOwn))) {
    const [, labels = ''] = new RegExp(`^\\| .*\`${name}\`.*? \\| (.*?) \\|`, 'm').exec(metrics) ?? []
    const own = series.flatMap(([text]) => [...text.matchAll(/([a-z_]+)="/g)].map(([, label]) => label))
    const all = new Set(own.filter((label) => label !== 'le'))
    t.same([...labels.matchAll(/`(.*?)`/g)].map(([, label]) => label).sort(), [...all].sort(), name)
  }
})

t.test('every panel of the dashboard uses existing metrics and labels', async (t) => {
  const all = await families()
  const series = new Map(all.flatMap((family) => namesOf(family).map((name) => [name, family.series] as const)))
  const exprs = dashboard.panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => [title, expr] as const))
  const variables = dashboard.templating.list.flatMap(({ name, type, query }) =>
    type === 'query' ? [[name, (query as { query: string }).query] as const] : [],
  )
  t.ok(exprs.length > 30 && variables.length === 2)
  for (const [title, expr] of [...exprs, ...variables]) {
    const asked = expr.match(NAME) ?? []
    t.ok(asked.length > 0, title)
    for (const name of asked) t.ok(series.has(name), `${title}: there is a metric ${name}`)
    const labels = asked.flatMap(
      (name) => series.get(name)?.flatMap(([text]) => text.match(/[a-z_]+(?==")/g) ?? []) ?? [],
    )
    // Prometheus itself adds `job` and `instance`; `kind` is of garbage collections, of which there may have been none.
    const known = new Set([...labels, 'le', 'job', 'instance', 'kind'])
    const matchers = [...expr.matchAll(/[{,]\s*([a-z_]+)\s*(?:=~|!=|!~|=)/g)].map(([, label]) => label as string)
    const grouped = [...expr.matchAll(/by \(([^)]*)\)/g)].flatMap(([, list = '']) => list.split(/,\s*/))
    for (const label of [...matchers, ...grouped]) t.ok(known.has(label), `${title}: there is a label ${label}`)
    t.equal(expr.split('(').length, expr.split(')').length, `${title}: ${expr}`)
  }
  const named = new Set(exprs.flatMap(([, expr]) => expr.match(NAME) ?? []).map((name) => name.replace(/_bucket$/, '')))
  for (const { name } of atLeast(t, 15, 'metrics', all.filter(isOwn))) t.ok(named.has(name), `${name} is shown`)
})

t.test('the dashboard works with any data source, and its panels do not overlap', async (t) => {
  t.match(dashboard.templating.list[0], { name: 'datasource', type: 'datasource', query: 'prometheus' })
  const { panels } = dashboard
  t.equal(new Set(panels.map(({ id }) => id)).size, panels.length)
  const taken = new Set<string>()
  for (const { title, type, datasource, gridPos, targets = [] } of panels) {
    for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++) {
      for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
        if (x >= 24 || taken.has(`${x} ${y}`)) t.fail(`${title} has a place of its own`)
        taken.add(`${x} ${y}`)
      }
    }
    if (type === 'row') continue
    t.same(datasource, SOURCE, title)
    for (const target of targets) t.same(target.datasource, SOURCE, title)
  }
})

t.test('the documentation has every bound that is reported, and no other', async (t) => {
  const metrics = new Metrics({ version: '1' })
  const scrape = async (server: object) => {
    const { url } = await startBridge(t, server, {}, { metrics })
    const text = await (await fetch(new URL('/metrics', url))).text()
    return [...text.matchAll(/bound_used\{bound="([a-z_]+)"/g)].map(([, bound]) => bound as string)
  }
  const legacy = await LegacyHttp.start(t)
  const told = new Set([...(await scrape({ url: legacy.url })), ...(await scrape(legacyStdio(t).server))])
  const table = page.split('| `bound` |')[1]?.split('\n\n')[0] ?? ''
  const named = [...table.matchAll(/^\| (`.*?) \|/gm)].flatMap(([, cell = '']) => cell.match(/[a-z_]+/g) ?? [])
  t.same(named.sort(), [...told].sort())
})

t.test('the documentation has every field of the log line of a call', async (t) => {
  const legacy = await LegacyHttp.start(t)
  const modern = await ModernHttp.start(t)
  const fields = new Set<string>()
  for (const url of [legacy.url, modern.url, 'http://127.0.0.1:9/mcp']) {
    const bridge = await startBridge(t, { url })
    await call(bridge.url, 'tools/call', { name: 'echo' })
    await call(bridge.url, 'tools/call', { name: 'fail', arguments: { error: { code: -32001, message: 'no' } } })
    const client = await LegacyClient.open(bridge.url)
    await client.call('echo')
    for (const line of bridge.log.filter(({ event }) => event === 'call'))
      for (const key of Object.keys(line)) fields.add(key)
  }
  t.ok(fields.size > 15)
  const logs = read('docs/logs.md')
  // The tests' own logger says these two.
  for (const other of ['pid', 'hostname']) fields.delete(other)
  for (const field of fields) t.ok(logs.includes(`\`${field}\``), field)
})
