/** The rules for Prometheus: they are those of docs/metrics.md, and fire when they should, by the word of promtool. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { parse } from 'yaml'
import { atLeast } from './support/at-least.js'
import { temporaryFolder } from './support/folder.js'
import { lacks, runTool } from './support/tools.js'

interface Rule {
  alert?: string
  record?: string
  expr: string
  for?: string
  labels?: { severity: string }
  annotations?: { summary: string; description: string }
}

const path = fileURLToPath(new URL('../config/helm/mcp-bridge/files/rules.yaml', import.meta.url))
const { groups } = parse(readFileSync(path, 'utf8')) as { groups: { name: string; rules: Rule[] }[] }
const rules = groups.flatMap(({ rules }) => rules)
const alerts = rules.filter(({ alert }) => alert !== undefined)
const page = readFileSync(new URL('../docs/metrics.md', import.meta.url), 'utf8')
const skip = lacks('promtool', ['--version'])

t.test('the alerts are the documented ones', async (t) => {
  const documented = [...page.matchAll(/^\| `(Mcp\w+)` \| .+? \| `(.+)` \|$/gm)].map(([, alert, expr]) => ({
    alert,
    expr: expr?.replaceAll('\\|', '|'),
  }))
  t.same(
    alerts.map(({ alert, expr }) => ({ alert, expr })),
    documented,
  )
  for (const { alert, annotations, labels } of atLeast(t, 5, 'alerts', alerts)) {
    t.match(labels, { severity: /^(?:critical|warning|info)$/ }, String(alert))
    t.ok(annotations?.summary && annotations.description, `${alert} says what it is and what to do`)
  }
})

t.test('recording rules use existing metrics', async (t) => {
  const recorded = rules.filter(({ record }) => record !== undefined)
  for (const { record, expr } of atLeast(t, 1, 'recording rules', recorded))
    for (const [name] of atLeast(t, 1, `metrics in ${record}`, expr.matchAll(/\bmcp_bridge_\w+/g)))
      t.ok(page.includes(`\`${name}\``), `${record} is made of ${name}`)
})

t.test(
  'the autoscaler reads the most used bound of each pod, by the rules of the chart and of the adapter',
  { skip },
  async (t) => {
    const { rules: adapter } = parse(
      readFileSync(new URL('../config/kubernetes/scale-by-bounds/prometheus-adapter.yaml', import.meta.url), 'utf8'),
    ) as { rules: { custom: { seriesQuery: string; metricsQuery: string; name: { as: string } }[] } }
    const [rule] = adapter.custom
    const recorded = rules.find(({ record }) => record !== undefined)
    t.equal(rule?.name.as, recorded?.record)
    const bounds = /bound=~"([^"]+)"/.exec(recorded?.expr ?? '')?.[1] ?? ''
    t.equal(/bound=~"([^"]+)"/.exec(rule?.metricsQuery ?? '')?.[1], bounds)
    for (const bound of bounds.split('|')) t.match(page, new RegExp(`^\\| .*\`${bound}\`.* \\|`, 'm'), bound)

    // As prometheus-adapter fills in its templates for the pods of an autoscaler.
    const asked = rule?.metricsQuery
      .replaceAll('<<.LabelMatchers>>', 'namespace="mcp",pod=~"a|b"')
      .replaceAll('<<.GroupBy>>', 'pod')
    const series = ['used', 'limit'].flatMap((what) =>
      (
        [
          ['a', 'calls', '', 5],
          ['a', 'calls_per_server', 'files', 80],
          ['a', 'memory', '', 99],
          ['a', 'processes', 'files', 100],
          ['a', 'cached_bytes', '', 100],
          ['b', 'connections', '', 25],
          ['c', 'calls', '', 90],
        ] as const
      ).map(([pod, bound, server, used]) => ({
        series: `mcp_bridge_bound_${what}{namespace="mcp",pod="${pod}",bound="${bound}",server="${server}"}`,
        values: `${what === 'used' ? used : 100}x5`,
      })),
    )
    const sample = (labels: string, value: number) => ({ labels, value })
    const [one, other] = ['{pod="a"}', '{pod="b"}']
    const folder = temporaryFolder(t)
    const file = join(folder, 'test.json')
    const name = recorded?.record
    const expected = ['a', 'b', 'c'].map((pod, i) =>
      sample(`${name}{namespace="mcp",pod="${pod}"}`, [0.8, 0.25, 0.9][i] as number),
    )
    const promql_expr_test = [
      { expr: name, eval_time: '3m', exp_samples: expected },
      { expr: asked, eval_time: '3m', exp_samples: [sample(one as string, 0.8), sample(other as string, 0.25)] },
    ]
    writeFileSync(
      file,
      JSON.stringify({
        rule_files: [path],
        evaluation_interval: '1m',
        tests: [{ interval: '1m', input_series: series, promql_expr_test }],
      }),
    )
    const { status, stdout, stderr } = runTool('debian', 'promtool', ['test', 'rules', file])
    t.equal(status, 0, stdout + stderr)
  },
)

t.test('Prometheus accepts the rules', { skip }, async (t) => {
  const { status, stdout, stderr } = runTool('debian', 'promtool', ['check', 'rules', path])
  t.equal(status, 0, stderr)
  t.match(stdout, new RegExp(`${rules.length} rules found`))
})

/** Series that make an alert fire, by the minute, and how it is labelled then; in the notation of promtool. */
const firing: [alert: string, series: [series: string, values: string][], labels: object][] = [
  [
    'McpServerFailing',
    [
      ['mcp_bridge_calls_total{server="files",outcome="fault",blame="upstream"}', '0+1x40'],
      ['mcp_bridge_calls_total{server="files",outcome="ok",blame="nobody"}', '0+9x40'],
      ['mcp_bridge_calls_total{server="well",outcome="ok",blame="nobody"}', '0+9x40'],
    ],
    { server: 'files' },
  ],
  ['McpBridgeFailing', [['mcp_bridge_calls_total{server="files",outcome="fault",blame="bridge"}', '0+1x40']], {}],
  [
    'McpBridgeBoundNearlyReached',
    [
      ['mcp_bridge_bound_used{bound="calls",server=""}', '1900x40'],
      ['mcp_bridge_bound_limit{bound="calls",server=""}', '2000x40'],
      ['mcp_bridge_bound_used{bound="sessions",server="files"}', '10x40'],
      ['mcp_bridge_bound_limit{bound="sessions",server="files"}', '200x40'],
    ],
    { bound: 'calls', server: '' },
  ],
  [
    'McpServerRestarting',
    [['mcp_bridge_child_events_total{server="files",event="restarted"}', '0+1x40']],
    { server: 'files', event: 'restarted' },
  ],
  [
    'McpBridgeSlow',
    [
      ['mcp_bridge_call_bridge_seconds_bucket{le="0.05"}', '0+1x40'],
      ['mcp_bridge_call_bridge_seconds_bucket{le="1"}', '0+100x40'],
      ['mcp_bridge_call_bridge_seconds_bucket{le="+Inf"}', '0+100x40'],
    ],
    {},
  ],
  [
    'McpQuestionsUnanswered',
    [
      ['mcp_bridge_questions_total{server="files",event="parked"}', '0+10x40'],
      ['mcp_bridge_questions_total{server="files",event="expired"}', '0+1x40'],
      ['mcp_bridge_questions_total{server="files",event="lost"}', '0+1x40'],
      ['mcp_bridge_questions_total{server="well",event="parked"}', '0+10x40'],
      ['mcp_bridge_questions_total{server="well",event="answered"}', '0+10x40'],
    ],
    { server: 'files' },
  ],
  [
    'McpBridgeCpuSaturated',
    [
      ['process_cpu_seconds_total{job="mcp-bridge",instance="a"}', '0+58x40'],
      ['mcp_bridge_build_info{job="mcp-bridge",instance="a",version="1"}', '1x40'],
    ],
    { instance: 'a' },
  ],
  [
    'McpBridgeReloadFailed',
    [['mcp_bridge_config_last_reload_successful{instance="a"}', '1x2 0x38']],
    { instance: 'a' },
  ],
  ['McpBridgeRedisDown', [['mcp_bridge_redis_up{instance="a"}', '1x2 0x38']], { instance: 'a' }],
  ['McpBridgeRedisMayEvict', [['mcp_bridge_redis_may_evict{instance="a"}', '0x2 1x38']], { instance: 'a' }],
  ['McpBridgeIssuerDown', [['mcp_bridge_issuer_up{issuer="a"}', '1x2 0x38']], { issuer: 'a' }],
  [
    'McpBridgeCertificateExpires',
    [['mcp_bridge_certificate_expiry_timestamp_seconds{use="server",server="files"}', `${13 * 86_400}x130`]],
    { use: 'server', server: 'files' },
  ],
]
/** Series of a bridge that is well, for which nothing fires. */
const well: [series: string, values: string][] = [
  ['mcp_bridge_calls_total{server="files",outcome="ok",blame="nobody"}', '0+90x40'],
  ['mcp_bridge_calls_total{server="files",outcome="fault",blame="caller"}', '0+90x40'],
  ['mcp_bridge_bound_used{bound="cached_bytes",server=""}', '20x40'],
  ['mcp_bridge_bound_limit{bound="cached_bytes",server=""}', '20x40'],
  ['mcp_bridge_child_events_total{server="files",event="restarted"}', '2x40'],
  ['mcp_bridge_call_bridge_seconds_bucket{le="0.05"}', '0+100x40'],
  ['mcp_bridge_call_bridge_seconds_bucket{le="+Inf"}', '0+100x40'],
  ['process_cpu_seconds_total{job="mcp-bridge",instance="a"}', '0+6x40'],
  ['mcp_bridge_build_info{job="mcp-bridge",instance="a",version="1"}', '1x40'],
  ['process_cpu_seconds_total{job="something-else",instance="b"}', '0+60x40'],
  ['mcp_bridge_config_last_reload_successful{instance="a"}', '1x40'],
  ['mcp_bridge_redis_up{instance="a"}', '1x10 0x1 1x29'],
  ['mcp_bridge_redis_may_evict{instance="a"}', '0x40'],
  ['mcp_bridge_issuer_up{issuer="a"}', '1x10 0x3 1x27'],
  ['mcp_bridge_certificate_expiry_timestamp_seconds{use="listen"}', `${90 * 86_400}x40`],
]

t.test('every alert fires when it should, and none fires for a healthy bridge', { skip }, async (t) => {
  const file = join(temporaryFolder(t), 'tests.json')
  const input = (series: [series: string, values: string][]) => series.map(([series, values]) => ({ series, values }))
  const severity = (name: string) => alerts.find(({ alert }) => alert === name)?.labels?.severity
  const tests = [
    ...firing.map(([alertname, series, labels]) => ({
      interval: '1m',
      input_series: input(series),
      promql_expr_test: [
        {
          expr: `count by (alertname, alertstate) (ALERTS{alertname="${alertname}", alertstate="firing"})`,
          eval_time: '35m',
          exp_samples: [{ labels: `{alertname="${alertname}", alertstate="firing"}`, value: 1 }],
        },
        {
          expr: `count(ALERTS{alertname="${alertname}", severity="${severity(alertname)}", ${matchers(labels)}})`,
          eval_time: '35m',
          exp_samples: [{ labels: '{}', value: 1 }],
        },
      ],
    })),
    {
      interval: '1m',
      input_series: input(well),
      promql_expr_test: [{ expr: 'count(ALERTS)', eval_time: '35m', exp_samples: [] }],
    },
    {
      interval: '1m',
      input_series: input([
        ['mcp_bridge_bound_used{namespace="mcp",pod="a",bound="calls"}', '500x40'],
        ['mcp_bridge_bound_limit{namespace="mcp",pod="a",bound="calls"}', '2000x40'],
        ['mcp_bridge_bound_used{namespace="mcp",pod="a",bound="sessions",server="files"}', '150x40'],
        ['mcp_bridge_bound_limit{namespace="mcp",pod="a",bound="sessions",server="files"}', '200x40'],
        ['mcp_bridge_bound_used{namespace="mcp",pod="a",bound="cached_bytes"}', '200x40'],
        ['mcp_bridge_bound_limit{namespace="mcp",pod="a",bound="cached_bytes"}', '200x40'],
      ]),
      promql_expr_test: [
        {
          expr: 'mcp_bridge_bound_utilization',
          eval_time: '35m',
          exp_samples: [{ labels: 'mcp_bridge_bound_utilization{namespace="mcp", pod="a"}', value: 0.75 }],
        },
      ],
    },
  ]
  writeFileSync(file, JSON.stringify({ rule_files: [path], evaluation_interval: '1m', tests }))
  const { status, stdout, stderr } = runTool('debian', 'promtool', ['test', 'rules', file])
  t.equal(status, 0, `${stdout}\n${stderr}`)
})

function matchers(labels: object): string {
  return Object.entries(labels)
    .map(([name, value]) => `${name}="${value}"`)
    .join(', ')
}
