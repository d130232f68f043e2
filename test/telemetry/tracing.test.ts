/** Traces: from the span of a client, through those of the bridge, to that of a server; and what there is without them. */
import type { ServerResponse } from 'node:http'
import { createRequire } from 'node:module'
import { env } from 'node:process'
import t, { type Test } from 'tap'
import { startTracing } from '../../src/services/telemetry/tracing.js'
import { startBridge } from '../support/bridge.js'
import { Collector } from '../support/collector.js'
import { until } from '../support/eventually.js'
import { LegacyClient } from '../support/legacy-client.js'
import { LegacyHttp } from '../support/legacy-http.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { call } from '../support/modern.js'
import { ModernHttp } from '../support/modern-http.js'
import { modernStdio } from '../support/modern-stdio.js'
import { PlainHttp } from '../support/plain-http.js'
import { SseClient } from '../support/sse-client.js'

type Json = Record<string, unknown>

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
const OTHER_TRACE = '0af7651916cd43dd8448eb211c80319c'
const PARENT = '00f067aa0ba902b7'
/** Names that the servers of these tests have listed before. How they are learnt is in names.test.ts. */
const LISTED = ['echo', 'fail', 'wait', 'x']
const traceparent = `00-${TRACE}-${PARENT}-01`
const other = `00-${OTHER_TRACE}-b7ad6b7169203331-01`

const { cache } = createRequire(import.meta.url)
/** Tests of other files may have run in this process. */
const before = new Set(Object.keys(cache))
const loaded = () => Object.keys(cache).some((path) => path.includes('opentelemetry') && !before.has(path))
const complaints: { fields: object; message: string }[] = []
const log = { warn: (fields: object, message: string) => complaints.push({ fields, message }) }

/** Sets variables for as long as a test runs: the packages of OpenTelemetry read those of the process. */
function setVariables(t: Test, variables: Record<string, string>) {
  Object.assign(env, variables)
  t.teardown(() => {
    for (const name of Object.keys(variables)) delete env[name]
  })
}

/** A bridge that draws up traces for a collector. */
async function start(t: Test, server: object, variables: Record<string, string> = {}, settings: object = {}) {
  const collector = await Collector.start(t)
  setVariables(t, {
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
    OTEL_BSP_SCHEDULE_DELAY: '20',
    ...variables,
  })
  const tracing = await startTracing(env, { version: '1.2.3', log })
  t.teardown(() => tracing?.close())
  const names = { learn: () => {}, has: (_server: string, _method: string, name: string) => LISTED.includes(name) }
  const bridge = await startBridge(t, server, settings, { tracer: tracing?.tracer, names })
  return { ...bridge, collector, tracing }
}

/** The `_meta` of the request that a server got last. */
function metaOf(message: unknown): Json {
  return ((message as { params?: { _meta?: Json } } | undefined)?.params?._meta ?? {}) as Json
}

function parts(traceparent: unknown) {
  const [, traceId, spanId, flags] = String(traceparent).split('-')
  return { traceId, spanId, flags }
}

t.test('loads nothing without variables for traces, and leaves `_meta` unchanged', async (t) => {
  const unasked = [
    {},
    { OTEL_SERVICE_NAME: 'me' },
    { OTEL_EXPORTER_OTLP_ENDPOINT: ' ' },
    { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4318', OTEL_SDK_DISABLED: 'TRUE' },
    { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4318', OTEL_TRACES_EXPORTER: 'none' },
  ]
  for (const variables of unasked) t.equal(await startTracing(variables, { version: '1', log }), undefined)
  t.same(complaints, [])
  const legacy = await LegacyHttp.start(t)
  const { url } = await startBridge(t, { url: legacy.url })
  const meta = { traceparent, tracestate: 'a=1', baggage: 'b=2' }
  await call(url, 'tools/call', { name: 'echo' }, { meta, headers: { traceparent: other } })
  t.match(metaOf(legacy.of('tools/call')[0]?.message), meta)
  t.match(legacy.of('tools/call')[0]?.headers, meta, 'the context of `_meta`, not that of the headers')
  t.notOk(loaded(), 'no package of OpenTelemetry has been loaded')
})

t.test('reports a missing exporter, and continues without it', async (t) => {
  const rows: [variables: Record<string, string>, says: RegExp][] = [
    [{ OTEL_TRACES_EXPORTER: 'console' }, /OTEL_TRACES_EXPORTER/],
    [{ OTEL_TRACES_EXPORTER: 'otlp,zipkin' }, /OTEL_TRACES_EXPORTER/],
    [{ OTEL_TRACES_EXPORTER: 'otlp', OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' }, /OTEL_EXPORTER_OTLP_PROTOCOL/],
    [
      { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://127.0.0.1:4317', OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'grpc' },
      /OTEL_EXPORTER_OTLP_PROTOCOL/,
    ],
  ]
  for (const [variables, says] of rows) {
    t.equal(await startTracing(variables, { version: '1', log }), undefined)
    t.match(complaints.pop()?.message, says)
  }
  t.notOk(loaded())
})

t.test('a call is one trace from client to server, link by link', async (t) => {
  const legacy = await LegacyHttp.start(t)
  const started = await start(t, { url: legacy.url }, { OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test' })
  const { url, collector, log } = started
  const { BasicTracerProvider, BatchSpanProcessor } = await import('@opentelemetry/sdk-trace-base')
  const { OTLPTraceExporter } = await import('@opentelemetry/exporter-trace-otlp-http')
  const { SpanKind, trace, ROOT_CONTEXT } = await import('@opentelemetry/api')
  const others = new BasicTracerProvider({ spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter())] })
  const tracer = others.getTracer('others')

  const client = tracer.startSpan('the client', { kind: SpanKind.CLIENT })
  const { traceId, spanId } = client.spanContext()
  const meta = { traceparent: `00-${traceId}-${spanId}-01`, tracestate: 'vendor=1', baggage: 'user=ada' }
  await call(url, 'tools/call', { name: 'echo', arguments: { secret: 's3cret' } }, { meta })
  client.end()
  const got = metaOf(legacy.of('tools/call')[0]?.message)
  t.match(got, { tracestate: 'vendor=1', baggage: 'user=ada' }, 'the rest of it goes on as it came')
  const remote = { ...parts(got['traceparent']), traceFlags: 1, isRemote: true } as never
  tracer.startSpan('the server', { kind: SpanKind.SERVER }, trace.setSpanContext(ROOT_CONTEXT, remote)).end()
  await others.shutdown()

  const first = await collector.span({ name: 'the client' })
  const inwards = await collector.span({ name: 'tools/call echo', kind: 'server' })
  const outwards = await collector.span({ name: 'tools/call echo', kind: 'client' })
  const last = await collector.span({ name: 'the server' })
  t.equal(inwards.parentSpanId, first.spanId)
  t.equal(outwards.parentSpanId, inwards.spanId)
  t.equal(last.parentSpanId, outwards.spanId)
  for (const span of [first, inwards, outwards, last]) t.equal(span.traceId, traceId)
  for (const span of [inwards, outwards]) t.equal(span.traceState, 'vendor=1')
  t.ok(inwards.start <= outwards.start && outwards.start <= outwards.end && outwards.end <= inwards.end)

  const common = {
    'mcp.method.name': 'tools/call',
    'gen_ai.operation.name': 'execute_tool',
    'gen_ai.tool.name': 'echo',
    'network.transport': 'tcp',
    'network.protocol.name': 'http',
    'mcp_bridge.server': 'test',
    'mcp_bridge.client_era': 'modern',
    'mcp_bridge.server_era': 'legacy',
    'mcp_bridge.outcome': 'ok',
  }
  t.same(inwards.attributes, { ...common, 'mcp.protocol.version': '2026-07-28' })
  t.same(outwards.attributes, { ...common, 'mcp.protocol.version': '2025-11-25' })
  t.match(inwards.resource, {
    'service.name': 'mcp-bridge',
    'service.version': '1.2.3',
    'deployment.environment.name': 'test',
  })
  t.notMatch(
    JSON.stringify(collector.spans, (_, value) => (typeof value === 'bigint' ? '' : value)),
    's3cret',
  )
  const line = log.find(({ event, name }) => event === 'call' && name === 'echo')
  t.match(line, { trace_id: traceId, span_id: inwards.spanId })
})

t.test('the span of a call has its outcome', async (t) => {
  const legacy = await LegacyHttp.start(t)
  const { url, collector } = await start(t, { url: legacy.url })
  const fail = (error?: object) => call(url, 'tools/call', { name: 'fail', arguments: error ? { error } : {} })
  await fail({ code: -32001, message: 'secret' })
  const both = async (fits: object) =>
    Promise.all((['server', 'client'] as const).map((kind) => collector.span({ ...fits, kind })))
  for (const span of await both({ name: 'tools/call fail' })) {
    t.match(span, { failed: true, message: undefined })
    t.match(span.attributes, { 'error.type': '-32001', 'rpc.response.status_code': '-32001' })
  }
  collector.spans.length = 0
  const failed = await fail()
  t.equal(failed.message.result?.['isError'], true)
  for (const span of await both({ name: 'tools/call fail' })) t.equal(span.attributes['error.type'], 'tool_error')

  await call(url, 'resources/read', { uri: 'http://ada:pw@host/secret?token=1' })
  const [read] = await both({ name: 'resources/read' })
  t.equal(read?.attributes['mcp.resource.uri'], 'http://host/secret')
  await call(url, 'vendor/of-any-name')
  t.equal(
    (await collector.span({ name: '_OTHER', kind: 'server' })).attributes['mcp.method.name'],
    'vendor/of-any-name',
  )

  const gone = new AbortController()
  const left = call(url, 'tools/call', { name: 'wait', arguments: { ms: 60_000 } }, { signal: gone.signal })
  await until(() => legacy.of('tools/call').length === 3, 'the call')
  gone.abort()
  await t.rejects(left)
  for (const span of await both({ name: 'tools/call wait' })) {
    t.equal(span.attributes['mcp_bridge.outcome'], 'cancelled')
    t.equal(span.failed, false)
  }
})

t.test('a span has the name of a tool only if its server has listed it, and always the attribute', async (t) => {
  const legacy = await LegacyHttp.start(t)
  const { url, collector } = await start(t, { url: legacy.url })
  await call(url, 'tools/call', { name: 'invented-by-a-client' })
  for (const kind of ['server', 'client'] as const) {
    const { attributes } = await collector.span({ name: 'tools/call', kind })
    t.equal(attributes['gen_ai.tool.name'], 'invented-by-a-client')
  }
})

t.test('what opens a session of the server itself has spans of both sides, in the trace of its client', async (t) => {
  const legacy = await LegacyHttp.start(t)
  const { url, collector } = await start(t, { url: legacy.url, tools: { deny: ['wait'] } })
  const traceparent = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`
  await LegacyClient.open(url, { headers: { traceparent }, ready: false })
  const span = await collector.span({ name: 'initialize', kind: 'client' })
  const own = await collector.span({ name: 'initialize', kind: 'server' })
  for (const { attributes } of [own, span]) t.equal(attributes['mcp.method.name'], 'initialize')
  t.match([own.parentSpanId, span.parentSpanId], ['b'.repeat(16), own.spanId])
  const sent = legacy.of('initialize').at(-1)?.headers
  t.equal(sent?.['traceparent'], `00-${'a'.repeat(32)}-${span.spanId}-01`)
})

t.test('the span of an unreachable server has its error', async (t) => {
  const { url, collector } = await start(t, { url: 'http://127.0.0.1:9/mcp' })
  await call(url, 'tools/list')
  for (const kind of ['server', 'client'] as const) {
    const span = await collector.span({ name: 'tools/list', kind })
    t.match(span.attributes, { 'mcp_bridge.fault': 'upstreamUnavailable', 'mcp_bridge.blame': 'upstream' })
    t.match(span, { failed: true, message: String })
  }
})

t.test('the text of a refusal is the same in the status of a span and in the log', async (t) => {
  const refuse = (response: ServerResponse) =>
    response
      .writeHead(500, { 'content-type': 'text/plain' })
      .end(
        'no connection to postgres://app:hunter22@db with Authorization: Bearer abcdefgh12345678 password=correcthorse',
      )
  const legacy = await PlainHttp.start(t, ({ message }, response) => {
    const method = message?.['method']
    if (method === 'notifications/initialized') return response.writeHead(202).end()
    if (method !== 'initialize') return refuse(response)
    const result = {
      protocolVersion: '2025-11-25',
      capabilities: { tools: {} },
      serverInfo: { name: 'x', version: '1' },
    }
    return response
      .setHeader('content-type', 'application/json')
      .end(JSON.stringify({ jsonrpc: '2.0', id: message?.['id'], result }))
  })
  const { url, collector, log } = await start(t, { url: legacy.url })
  const client = await LegacyClient.open(url)
  const lanes: Record<string, () => Promise<unknown>> = {
    translated: () => call(url, 'tools/call', { name: 'x' }),
    unchanged: () => client.call('x').catch(() => {}),
  }
  for (const [lane, make] of Object.entries(lanes)) {
    collector.spans.length = 0
    const logged = log.length
    await make()
    const spans = await Promise.all(
      (['server', 'client'] as const).map((kind) => collector.span({ name: 'tools/call x', kind })),
    )
    const line = log.slice(logged).find(({ event, name }) => event === 'call' && name === 'x')
    for (const { message } of spans) t.equal(message, line?.['why'], lane)
    t.notMatch(
      JSON.stringify(spans.map(({ message }) => message ?? '')),
      /hunter22|abcdefgh12345678|correcthorse/,
      lane,
    )
    if (lane === 'translated') t.match(spans[0]?.message, /no connection to postgres:/)
  }
})

t.test('a span continues the trace of _meta, or else that of the headers', async (t) => {
  const legacy = await LegacyHttp.start(t)
  const { url, collector } = await start(t, { url: legacy.url })
  const rows: [name: string, where: { meta?: Json; headers?: Record<string, string> }, trace: string | undefined][] = [
    ['its `_meta` says, whatever the headers say', { meta: { traceparent }, headers: { traceparent: other } }, TRACE],
    ['else the headers', { headers: { traceparent: other } }, OTHER_TRACE],
    ['else nowhere', {}, undefined],
    ['what cannot be read says nothing', { meta: { traceparent: `00-${TRACE}-xyz-01` } }, undefined],
    ['a trace of zeros is none', { meta: { traceparent: `00-${'0'.repeat(32)}-${PARENT}-01` } }, undefined],
    ['a later version may say more', { meta: { traceparent: `01-${TRACE}-${PARENT}-01-more` } }, TRACE],
  ]
  for (const [name, where, trace] of rows) {
    collector.spans.length = 0
    await call(url, 'tools/list', {}, where)
    const span = await collector.span({ name: 'tools/list', kind: 'server' })
    if (trace === undefined) t.equal(span.parentSpanId, undefined, name)
    else t.equal(span.traceId, trace, name)
    const { message, headers } = legacy.of('tools/list').at(-1) ?? {}
    const sent = metaOf(message)['traceparent']
    t.equal(parts(sent).traceId, span.traceId, name)
    t.equal(headers?.['traceparent'], sent, `${name}: the headers say the same`)
  }
})

t.test('calls of clients over HTTP+SSE, and those of a batch, continue the trace of the headers', async (t) => {
  const { server } = modernStdio(t)
  const { url, collector } = await start(t, server)
  const request = (id: number) => ({ jsonrpc: '2.0', id, method: 'tools/call', params: { name: 'echo' } })
  const sse = await SseClient.open(url, '2025-03-26')
  const client = await LegacyClient.open(url, { revision: '2025-03-26' })
  const lanes: Record<string, () => Promise<unknown>> = {
    'HTTP+SSE': async () => {
      await sse.post(request(10), { traceparent: other })
      return sse.answer(10)
    },
    'a batch': () => client.post([request(11)], { traceparent: other }),
  }
  for (const [lane, make] of Object.entries(lanes)) {
    collector.spans.length = 0
    await make()
    t.equal((await collector.span({ name: 'tools/call echo', kind: 'server' })).traceId, OTHER_TRACE, lane)
  }
})

t.test('does not export what its client does not sample, and tells the server', async (t) => {
  const legacy = await LegacyHttp.start(t)
  const { url, collector, log, tracing } = await start(t, { url: legacy.url })
  await call(url, 'tools/list', {}, { meta: { traceparent: `00-${TRACE}-${PARENT}-00` } })
  const { traceId, flags } = parts(metaOf(legacy.of('tools/list')[0]?.message)['traceparent'])
  t.match({ traceId, flags }, { traceId: TRACE, flags: '00' })
  t.match(
    log.find(({ event }) => event === 'call'),
    { trace_id: TRACE },
  )
  await tracing?.close()
  t.same(collector.spans, [])
})

t.test('traces a call of a legacy client over stdio', async (t) => {
  const { server, messages } = modernStdio(t)
  const { url, collector } = await start(t, server)
  const client = await LegacyClient.open(url, { headers: { traceparent: other } })
  await client.call('echo', {}, { meta: { traceparent } })
  const inwards = await collector.span({ name: 'tools/call echo', kind: 'server' })
  const outwards = await collector.span({ name: 'tools/call echo', kind: 'client' })
  t.match(inwards, { traceId: TRACE, parentSpanId: PARENT })
  t.match(inwards.attributes, { 'mcp.protocol.version': '2025-11-25', 'network.transport': 'tcp' })
  t.match(outwards.attributes, { 'mcp.protocol.version': '2026-07-28', 'network.transport': 'pipe' })
  const sent = messages().find(({ method }) => method === 'tools/call')
  t.same(parts(metaOf(sent)['traceparent']), { traceId: TRACE, spanId: outwards.spanId, flags: '01' })
  const opened = await collector.span({ name: 'initialize', kind: 'server' })
  t.equal(opened.traceId, OTHER_TRACE)
})

t.test('a legacy client of a legacy server, in a session of its own', async (t) => {
  const { server, messages } = legacyStdio(t)
  const { url, collector } = await start(t, server)
  const client = await LegacyClient.open(url)
  const sent = () => metaOf(messages().findLast(({ method }) => method === 'tools/call'))
  await client.call('echo', {}, { meta: { traceparent, 'v/k': 1, progressToken: 7 } })
  const outwards = await collector.span({ name: 'tools/call echo', kind: 'client' })
  t.equal(outwards.traceId, TRACE)
  t.match(sent(), { 'v/k': 1, progressToken: Number })
  t.same(parts(sent()['traceparent']), { traceId: TRACE, spanId: outwards.spanId, flags: '01' })
  await client.call('echo')
  t.ok(parts(sent()['traceparent']).spanId, 'a trace that begins here goes on as well')
})

t.test('a modern server over HTTP gets the trace of a modern client in `_meta` and in the headers', async (t) => {
  const modern = await ModernHttp.start(t)
  const { url, collector, bridge } = await start(t, { url: modern.url })
  await bridge.server.warmUp()
  const where = { meta: { traceparent, tracestate: 'm=1' }, headers: { traceparent: other, tracestate: 'h=1' } }
  await call(url, 'tools/call', { name: 'echo' }, where)
  const inwards = await collector.span({ name: 'tools/call echo', kind: 'server' })
  const outwards = await collector.span({ name: 'tools/call echo', kind: 'client' })
  t.match(inwards, { traceId: TRACE, parentSpanId: parts(traceparent).spanId })
  t.match(inwards.attributes, { 'mcp_bridge.outcome': 'ok' })
  t.match(outwards, { traceId: TRACE, parentSpanId: inwards.spanId })
  t.equal(outwards.attributes['mcp_bridge.outcome'], 'ok')
  const got = modern.of('tools/call')[0]
  const context = { traceparent: `00-${TRACE}-${outwards.spanId}-01`, tracestate: 'm=1' }
  t.match(metaOf(got?.message), context)
  t.match(got?.headers, context)
  const headers = { traceparent: other, tracestate: 'h=1' }
  await call(url, 'tools/call', { name: 'echo' }, { headers })
  t.match(parts(String(modern.of('tools/call')[1]?.headers['traceparent'])), { traceId: OTHER_TRACE })
  t.equal(modern.of('tools/call')[1]?.headers['tracestate'], 'h=1')
  await call(url, 'tools/call', { name: 'echo' }, { headers: { tracestate: 'h=1' } })
  t.notOk('tracestate' in (modern.of('tools/call')[2]?.headers ?? {}), 'it belongs to no trace')
  t.same(modern.violations(), [])
})

t.test('exports traces as Protobuf unless JSON is configured, with the configured headers', async (t) => {
  const legacy = await LegacyHttp.start(t)
  const variables = { OTEL_EXPORTER_OTLP_PROTOCOL: '', OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20x' }
  const { url, collector, tracing } = await start(t, { url: legacy.url }, variables)
  await call(url, 'tools/list')
  await tracing?.close()
  const [first] = collector.requests
  t.match(first, {
    path: '/v1/traces',
    headers: { 'content-type': 'application/x-protobuf', authorization: 'Bearer x' },
  })
  t.ok((first?.bytes ?? 0) > 100)
})

t.test('an unreachable collector stops neither calls nor the bridge', async (t) => {
  const legacy = await LegacyHttp.start(t)
  const variables = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9', OTEL_BSP_EXPORT_TIMEOUT: '3600000' }
  const { url, tracing } = await start(t, { url: legacy.url }, variables)
  for (let i = 0; i < 20; i++) t.equal((await call(url, 'tools/list')).status, 200)
  // The time that an export may take is not waited for: this test would not end.
  await tracing?.close()
  t.pass('it has ended')
})
