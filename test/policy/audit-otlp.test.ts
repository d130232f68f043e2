/** The audit log at a collector: what arrives, when a line counts as written, and what happens if the collector refuses it. */
import { env } from 'node:process'
import t, { type Test } from 'tap'
import { parseSettings } from '../../src/config/settings.js'
import { startAudit } from '../../src/services/telemetry/audit-log.js'
import { startBridge } from '../support/bridge.js'
import { until } from '../support/eventually.js'
import { type Answer, accept, collect, json } from '../support/log-collector.js'
import { call } from '../support/modern.js'
import { ForwardProxy } from '../support/proxy.js'
import { startSdkV1 } from '../support/sdk-v1.js'

type Json = Record<string, unknown>

const TOKENS = { alice: { token: 'alice-0123456789abcdef', scopes: ['write'] } }
const AS_ALICE = { headers: { authorization: `Bearer ${TOKENS.alice.token}` } }
const WRITE = { name: 'write', arguments: { path: '/tmp/a', text: 'SECRET of the caller' } }

/** Sends an answer that never ends, without a pause. */
const drip: Answer = (response) => {
  response.writeHead(200, { 'content-type': 'application/json' })
  const timer = setInterval(() => response.write(' '), 20)
  response.on('close', () => clearInterval(timer))
}

/** How a collector fails, and what the bridge logs then. */
const FAILURES: Record<string, [answer: Answer, says: RegExp]> = {
  'refuses it': [(response) => json(response, 400, { message: 'SECRET of the collector' }), /answered with 400/],
  'is busy': [(response) => json(response, 503), /accepted nothing/],
  'hangs up': [(response) => response.destroy(), /accepted nothing/],
  'does not answer': [() => {}, /in time|timed out/],
  'does not end its answer': [drip, /in time/],
  'rejects a part': [
    (response, count) => json(response, 200, { partialSuccess: { rejectedLogRecords: count } }),
    /rejected 1 of 1 lines/,
  ],
}

async function start(t: Test, variables: Record<string, string> = {}, audit: Json = {}) {
  const collector = await collect(t, variables)
  let calls = 0
  const url = await startSdkV1(t, (server) => {
    server.registerTool('write', { description: 'Writes.' }, () => {
      calls++
      return { content: [{ type: 'text', text: 'done' }] }
    })
  })
  const started = await startBridge(t, { url }, { auth: { tokens: TOKENS }, audit: { otlp: true, ...audit } })
  const said = (event: string) => started.log.filter((line) => line['event'] === event)
  return { ...started, at: started.url, collector, said, calls: () => calls }
}

t.test(
  'a line is a log record with all members, which the collector has before the client has its answer',
  async (t) => {
    const { at, collector, log } = await start(
      t,
      { OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20SECRET' },
      { arguments: ['path'] },
    )
    await call(at, 'tools/call', WRITE, AS_ALICE)
    const [request] = collector.requests
    t.match(request, { path: '/v1/logs', headers: { authorization: 'Bearer SECRET' } })
    const [first] = request?.records ?? []
    t.match(first?.body, {
      principal: 'alice',
      server: 'test',
      method: 'tools/call',
      tool: 'write',
      outcome: 'ok',
      arguments: { path: '/tmp/a' },
      digest: /^\S+$/,
    })
    t.same(Object.keys(first?.body ?? {}).sort(), [
      'arguments',
      'client_name',
      'digest',
      'method',
      'ms',
      'outcome',
      'principal',
      'server',
      'tool',
    ])
    t.match(first?.record, { eventName: 'mcp_bridge.audit', severityText: 'INFO', timeUnixNano: /^\d{19}$/ })
    t.match(first?.resource, { 'service.name': 'mcp-bridge', 'service.version': '0.0.0' })
    await call(at, 'tools/call', WRITE, { headers: { authorization: 'Bearer wrong-0123456789' } })
    await until(() => collector.bodies().length === 2, 'the line of the refused request')
    t.match(collector.bodies()[1], { outcome: 'refused', reason: 'unauthorized', path: '/mcp' })
    t.notMatch(JSON.stringify(log), /SECRET/)
  },
)

t.test('lines are sent as Protobuf by default, also to an address of their own', async (t) => {
  const { at, collector } = await start(t, { OTEL_EXPORTER_OTLP_PROTOCOL: '' })
  env['OTEL_EXPORTER_OTLP_LOGS_ENDPOINT'] = `${env['OTEL_EXPORTER_OTLP_ENDPOINT']}/own`
  t.teardown(() => delete env['OTEL_EXPORTER_OTLP_LOGS_ENDPOINT'])
  await call(at, 'tools/call', WRITE, AS_ALICE)
  const audit = startAudit({ otlp: true }, { env, version: '1', changed: () => {} })
  await audit.write({ outcome: 'ok' })
  await audit.close()
  t.match(
    collector.requests.map(({ path, headers }) => [path, headers['content-type']]),
    [
      ['/v1/logs', 'application/x-protobuf'],
      ['/own', 'application/x-protobuf'],
    ],
  )
  t.match(collector.requests[0]?.text, /principal.*alice/s)
})

t.test('lines go through the proxy of the environment', async (t) => {
  const collector = await collect(t)
  const proxy = await ForwardProxy.start(t)
  const endpoint = env['OTEL_EXPORTER_OTLP_ENDPOINT'] as string
  env['OTEL_EXPORTER_OTLP_ENDPOINT'] = endpoint.replace('127.0.0.1', 'collector.acme.test')
  const audit = startAudit({ otlp: true }, { env: { ...env, HTTP_PROXY: proxy.url }, version: '1', changed: () => {} })
  await audit.write({ outcome: 'ok' })
  await audit.close()
  t.match(collector.bodies(), [{ outcome: 'ok' }])
  t.match(proxy.tunnels[0], /^collector\.acme\.test:/)
})

t.test('a partial rejection in Protobuf counts as a failure', async (t) => {
  const collector = await collect(t, { OTEL_EXPORTER_OTLP_PROTOCOL: 'http/protobuf' })
  // ExportLogsServiceResponse { partial_success { rejected_log_records: 2 } }
  collector.answer = (response) => response.writeHead(200).end(Buffer.from([0x0a, 2, 0x08, 2]))
  const audit = startAudit({ otlp: true }, { env, version: '1', changed: () => {} })
  await t.rejects(Promise.all([audit.write({ n: 1 }), audit.write({ n: 2 })]), /rejected 2 of 2 lines/)
  await audit.close()
})

for (const [how, [answer, says]] of Object.entries(FAILURES))
  t.test(`if the collector ${how}, calls go on, and the log says so once`, async (t) => {
    const { at, collector, said, log } = await start(t, {
      OTEL_EXPORTER_OTLP_LOGS_TIMEOUT: '300',
      OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20SECRET',
    })
    collector.answer = answer
    for (let i = 0; i < 3; i++) t.match((await call(at, 'tools/call', WRITE, AS_ALICE)).text, /done/)
    t.equal(said('audit_failed').length, 1)
    t.match(JSON.stringify(said('audit_failed')), says)
    t.same(said('audit_resumed'), [])
    collector.answer = accept
    await until(async () => {
      await call(at, 'tools/call', WRITE, AS_ALICE)
      return said('audit_resumed').length === 1
    }, 'the first accepted line')
    t.equal(said('audit_failed').length, 1)
    t.notMatch(JSON.stringify(log), /SECRET/)
  })

t.test('a failure that ends within the time limit loses no line and is not reported', async (t) => {
  const { at, collector, said } = await start(t)
  collector.answer = (response) => {
    collector.answer = accept
    response.writeHead(503, { 'retry-after': '0' }).end()
  }
  await call(at, 'tools/call', WRITE, AS_ALICE)
  t.match(collector.bodies(), [{ outcome: 'ok' }, { outcome: 'ok' }])
  t.same(said('audit_failed'), [])
})

t.test(
  'if lines are required, calls fail, and the server gets no more of them until the collector takes one',
  async (t) => {
    const { at, collector, calls } = await start(t, { OTEL_EXPORTER_OTLP_LOGS_TIMEOUT: '300' }, { required: true })
    collector.answer = FAILURES['rejects a part']?.[0] as Answer
    const first = await call(at, 'tools/call', WRITE, AS_ALICE)
    t.match(first.message.error?.data, { reason: 'audit_unavailable', outcome: 'unknown' })
    for (const failing of [FAILURES['refuses it'], FAILURES['does not answer']]) {
      collector.answer = failing?.[0] as Answer
      const second = await call(at, 'tools/call', WRITE, AS_ALICE)
      t.match(second.message.error?.data, { reason: 'audit_unavailable', outcome: 'not_executed' })
      t.equal(second.status, 503)
    }
    t.equal(calls(), 1)
    collector.answer = accept
    await until(async () => /done/.test((await call(at, 'tools/call', WRITE, AS_ALICE)).text), 'a call')
    t.match(collector.bodies().slice(-2), [{ outcome: 'resumed' }, { tool: 'write', outcome: 'ok' }])
  },
)

t.test('unsupported variables are reported at the start', async (t) => {
  const wrong: Record<string, string>[] = [
    { OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' },
    { OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json', OTEL_EXPORTER_OTLP_LOGS_PROTOCOL: 'console' },
  ]
  for (const variables of wrong)
    await t.test(JSON.stringify(variables), async (t) => {
      const { at, said, calls } = await start(t, variables, { required: true })
      await until(() => said('audit_failed').length === 1, 'the report')
      t.match(JSON.stringify(said('audit_failed')), /must be http\/protobuf or http\/json/)
      t.equal((await call(at, 'tools/call', WRITE, AS_ALICE)).status, 503)
      t.equal(calls(), 0)
    })
})

t.test('lines that come while others are sent are sent together, up to a bound', async (t) => {
  const collector = await collect(t)
  let release = () => {}
  collector.answer = (response) => {
    collector.answer = accept
    release = () => json(response, 200)
  }
  const changes: unknown[] = []
  const audit = startAudit({ otlp: true }, { env, version: '1', changed: (failure) => changes.push(failure) })
  const first = audit.write({ n: 0 })
  await until(() => collector.requests.length === 1, 'the first request')
  const others = Promise.all(Array.from({ length: 4_096 }, (_, at) => audit.write({ n: at + 1 })))
  t.same(changes, [])
  await t.rejects(audit.write({ n: 4_097 }), /Too many lines/)
  t.match(changes, [/Too many lines/], 'a lost line is a failure')
  release()
  await Promise.all([first, others])
  t.equal(changes.length, 2, 'and then it works again')
  t.ok(audit.works)
  t.same(
    collector.requests.map(({ records }) => records.length),
    [1, 4_096],
  )
  await t.rejects(audit.write({ text: 'x'.repeat(4 * 1024 * 1024) }), /Too many lines/, 'bytes have a bound, too')
  await audit.close()
})

t.test('a closing bridge sends its waiting lines, and a hanging collector does not keep it open', async (t) => {
  const collector = await collect(t)
  const open = () => startAudit({ otlp: true }, { env, version: '1', changed: () => {} })
  const audit = open()
  const written = audit.write({ outcome: 'last' })
  await audit.close()
  await written
  t.match(collector.bodies(), [{ outcome: 'last' }])
  collector.answer = () => {}
  const hanging = open()
  const lost = hanging.write({ outcome: 'lost' }).catch((error: unknown) => error)
  await hanging.close()
  t.type(await lost, Error)
})

t.test('lines go to one place', async (t) => {
  const settings = (audit: object) => () =>
    parseSettings({ mcpServers: { a: { command: 'a' } }, audit }, { env: {}, read: () => '' })
  for (const audit of [{}, { otlp: true, stdout: true }, { otlp: true, file: '/tmp/a' }])
    t.throws(settings(audit), /one of "file", "stdout": true and "otlp": true/)
  t.doesNotThrow(settings({ otlp: true }), 'also on stdio')
})
