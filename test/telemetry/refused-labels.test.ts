/** What is refused at the path of a server or group is counted, logged and audited with its name, and with its era if it is known. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { BridgeEvent } from '../../src/mcp/ports/events.js'
import { Metrics } from '../../src/services/telemetry/metrics.js'
import { startBridge } from '../support/bridge.js'
import { until } from '../support/eventually.js'
import { temporaryFolder } from '../support/folder.js'
import { LegacyClient } from '../support/legacy-client.js'
import { LegacyHttp } from '../support/legacy-http.js'
import { call, headersFor, send } from '../support/modern.js'
import { ModernHttp } from '../support/modern-http.js'
import { readSeries } from '../support/prometheus.js'

type Json = Record<string, unknown>

const TOKENS = {
  alice: { token: 'alice-0123456789abcdef', scopes: ['write'] },
  bob: { token: 'bob-0123456789abcdef', scopes: [] },
}
const as = (who: keyof typeof TOKENS) => ({ headers: { authorization: `Bearer ${TOKENS[who].token}` } })
const PLACES: readonly [path: string, whose: { server?: string; group?: string }][] = [
  ['/mcp', { server: 'test' }],
  ['/team/mcp', { group: 'team' }],
]

async function start(t: Test, server: object, settings: Json = {}) {
  const metrics = new Metrics({ version: '0' })
  const events: BridgeEvent[] = []
  const observe = metrics.observe
  Object.assign(metrics, {
    observe: (event: BridgeEvent) => {
      events.push(event)
      observe(event)
    },
  })
  const groups = { team: { servers: ['test'], prefix: 'always' } }
  const started = await startBridge(t, server, { groups, ...settings }, { metrics })
  const series = async () => readSeries(await metrics.text([]))
  return { ...started, series, refusals: () => events.filter(({ kind }) => kind === 'refusal') }
}

const MODERN = headersFor('tools/list')
const LIST = '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}'
const allowed = { ...MODERN, ...as('alice').headers }
const SESSION = { ...as('alice').headers, accept: 'text/event-stream' }

/** Requests that are refused before they become calls. */
const REFUSED: readonly [
  reason: string,
  status: number,
  method: string,
  headers: Json,
  body?: string,
  below?: string,
][] = [
  ['unauthorized', 401, 'POST', MODERN, LIST],
  ['unauthorized', 401, 'GET', { accept: 'text/event-stream' }],
  ['foreignOrigin', 403, 'POST', { ...allowed, origin: 'https://evil.example' }, LIST],
  ['foreignHost', 403, 'POST', { ...allowed, host: 'evil.example' }, LIST],
  ['sessionNotFound', 404, 'GET', { ...SESSION, 'mcp-session-id': 'made-up' }],
  ['sessionNotFound', 404, 'DELETE', { ...SESSION, 'mcp-session-id': 'made-up' }],
  ['methodNotAllowed', 405, 'PUT', as('alice').headers],
  ['bodyTooLarge', 413, 'POST', allowed, `"${'x'.repeat(10_000)}"`],
  ['unsupportedMediaType', 415, 'POST', { ...allowed, 'content-type': 'text/plain' }, LIST],
  ['notJson', 400, 'POST', allowed, '{'],
  ['methodNotAllowed', 405, 'POST', allowed, LIST, '/sse'],
  ['sessionNotFound', 404, 'POST', allowed, LIST, '/message?sessionId=made-up'],
]

for (const [path, whose] of PLACES)
  t.test(`what is refused at ${path} has the name of what is served there`, async (t) => {
    const file = join(temporaryFolder(t), 'audit.jsonl')
    const legacy = await LegacyHttp.start(t)
    const { url, series, refusals, log } = await start(
      t,
      { url: legacy.url },
      { auth: { tokens: TOKENS }, audit: { file }, limits: { bodyBytes: 5_000 } },
    )
    const counted: Record<string, number> = {}
    for (const [reason, status, method, headers, body, below] of REFUSED) {
      const at = url.replace('/mcp', below === undefined ? path : path.replace('/mcp', below))
      const before = refusals().length
      const answer = await send(method, at, body, headers as Record<string, string>)
      t.equal(answer.status, status, `${method} ${reason}`)
      await until(() => refusals().length > before, `the refusal ${reason}`)
      t.match(refusals().at(-1), { reason, server: whose.server ?? '', ...(whose.group && { group: whose.group }) })
      counted[reason] = (counted[reason] ?? 0) + 1
    }
    const labels = whose.group ? `server="",group="team"` : 'server="test"'
    const all = await series()
    for (const [reason, count] of Object.entries(counted))
      t.equal(all[`mcp_bridge_refusals_total{${labels},reason="${reason}"}`], count, reason)
    for (const line of log.filter(({ event }) => event === 'request_refused')) {
      t.match(line, whose, String(line['fault']))
      t.equal('server' in line, whose.server !== undefined, 'a group is no server')
    }
    const lines = readFileSync(file, 'utf8').trim().split('\n')
    t.match(JSON.parse(lines[0] as string), { ...whose, reason: 'unauthorized', path })
    const other = await send('POST', new URL('/nowhere', url).href, LIST, allowed)
    t.equal(other.status, 404)
    t.equal((await series())['mcp_bridge_refusals_total{reason="noSuchPath"}'], 1, 'another path is nobody’s')
  })

t.test('a request over the limit is counted for what it was sent to', async (t) => {
  const legacy = await LegacyHttp.start(t)
  const { url, series } = await start(t, { url: legacy.url }, { limits: { requestsPerMinute: 1 } })
  await call(url, 'tools/list')
  t.equal((await call(url, 'tools/list')).status, 429)
  t.equal((await series())['mcp_bridge_refusals_total{server="test",reason="rateLimited"}'], 1)
})

for (const era of ['legacy', 'modern'] as const)
  for (const [path, whose] of PLACES)
    t.test(`a call that is refused at ${path} has the era of the ${era} server`, async (t) => {
      const { url: server } = await (era === 'legacy' ? LegacyHttp : ModernHttp).start(t)
      const settings = {
        auth: { tokens: TOKENS },
        limits: { tools: [{ tools: 'test__wait', max: 1, every: '1h' }] },
      }
      const { url, series } = await start(
        t,
        { url: server, scopes: { echo: ['write'] }, tools: { deny: ['fail'] } },
        settings,
      )
      const at = url.replace('/mcp', path)
      const prefix = whose.group ? 'test__' : ''
      await call(at, 'tools/list', {}, as('alice'))
      const wait = { name: `${prefix}wait`, arguments: { ms: 1 } }
      await call(at, 'tools/call', wait, as('alice'))
      await call(at, 'tools/call', wait, as('alice'))
      await call(at, 'tools/call', { name: `${prefix}echo` }, as('bob'))
      await call(at, 'tools/call', { name: `${prefix}fail` }, as('alice'))
      await call(at, 'tools/call', { name: `${prefix}unknown` }, as('alice'))
      await call(at, 'tools/call', { name: 'unknown' }, as('alice'))
      await call(at, 'tools/call', {}, as('alice'))
      const bad = { ...as('alice'), meta: { 'io.modelcontextprotocol/clientCapabilities': 7 } }
      await call(at, 'tools/call', wait, bad)
      const client = await LegacyClient.open(at, as('bob'))
      await client.call(`${prefix}echo`)
      await client.call(`${prefix}unknown`)
      const calls = Object.keys(await series()).filter((name) => name.startsWith('mcp_bridge_calls_total'))
      t.ok(calls.length > 3)
      for (const name of calls) {
        t.match(name, `server_era="${era}"`)
        if (whose.group) t.match(name, 'group="team"')
        else t.match(name, 'server="test"')
      }
    })

t.test('a call to all servers of a group has their era only if it is the same', async (t) => {
  const [legacy, modern] = [await LegacyHttp.start(t), await ModernHttp.start(t)]
  const { url, series } = await start(
    t,
    { url: legacy.url },
    {
      mcpServers: { old: { url: legacy.url }, new: { url: modern.url } },
      groups: { both: { servers: ['old', 'new'] }, one: { servers: ['old'] } },
    },
  )
  for (const group of ['both', 'one']) await call(new URL(`/${group}/mcp`, url).href, 'tools/list')
  const eras = Object.keys(await series()).filter((name) => name.startsWith('mcp_bridge_calls_total'))
  t.match(
    eras.find((name) => name.includes('group="both"')),
    'server_era="unknown"',
  )
  t.match(
    eras.find((name) => name.includes('group="one"')),
    'server_era="legacy"',
  )
})
