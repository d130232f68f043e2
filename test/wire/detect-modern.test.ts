/** How the bridge finds out that a server is of the modern era, of both, or no longer of the one that it was of. */
import type { ServerResponse } from 'node:http'
import t, { type Test } from 'tap'
import { startBridge } from '../support/bridge.js'
import { holdTimers } from '../support/clock.js'
import { until } from '../support/eventually.js'
import { besideTheQuestion, LegacyClient } from '../support/legacy-client.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { CAPABILITIES, CLIENT_INFO, call, headersFor, post, VERSION } from '../support/modern.js'
import { type Arrived, type HttpPlan, ModernHttp } from '../support/modern-http.js'
import { modernStdio } from '../support/modern-stdio.js'

/** A time limit of probes, which no other timer has. */
const PROBE = 1_234_567
const MODERN = { supported: ['2026-07-28'] }

/** Answers with a JSON-RPC error. */
function refuse({ message }: Arrived, response: ServerResponse, status: number, code: number, data?: object): true {
  const error = { code, message: 'm', ...(data && { data }) }
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(JSON.stringify({ jsonrpc: '2.0', id: message?.['id'], error }))
  return true
}

const initialized = (modern: ModernHttp) => modern.of('initialize').length

t.test('only modern servers answer "unsupported" and list the modern revision', async (t) => {
  let refusals = 1
  const modern = await ModernHttp.start(t, {
    override: (arrived, response) =>
      arrived.message?.['method'] === 'server/discover' &&
      refusals-- > 0 &&
      refuse(arrived, response, 400, -32022, MODERN),
  })
  const { url, bridge } = await startBridge(t, { url: modern.url })
  t.match(await call(url, 'tools/list'), { status: 200, message: { result: { resultType: 'complete' } } })
  t.equal(bridge.server.verdict?.era, 'modern')
  t.equal(initialized(modern), 0)
  t.same(modern.violations(), [])
})

t.test('detects a modern program on a pipe', async (t) => {
  const stdio = legacyStdio(t, { discover: { code: -32022, message: 'm', data: MODERN } })
  const { url, bridge } = await startBridge(t, stdio.server)
  t.equal((await call(url, 'tools/call', { name: 'echo', arguments: {} })).status, 200)
  t.equal(bridge.server.verdict?.era, 'modern')
  t.notOk(stdio.messages().some(({ method }) => method === 'initialize'))
  t.equal(stdio.pids().length, 1)
})

t.test('a modern client sends a modern server no initialize, over HTTP and on a pipe', async (t) => {
  const http = await ModernHttp.start(t)
  const stdio = modernStdio(t)
  for (const server of [{ url: http.url }, stdio.server]) {
    const { url } = await startBridge(t, server)
    const answers = await Promise.all(Array.from({ length: 20 }, () => call(url, 'tools/list')))
    for (const { status } of answers) t.equal(status, 200)
  }
  t.equal(initialized(http), 0)
  t.equal(http.of('server/discover').length, 1)
  t.equal(stdio.messages().filter(({ method }) => method === 'server/discover').length, 1)
  t.equal(stdio.pids().length, 1)
  t.same([...http.violations(), ...stdio.violations()], [])
})

t.test('a header mismatch leads to no initialize: the error names the blame, and nothing is remembered', async (t) => {
  let stripping = true
  const modern = await ModernHttp.start(t, {
    override: (arrived, response) => stripping && refuse(arrived, response, 400, -32020),
  })
  const { url } = await startBridge(t, { url: modern.url })
  const refused = await call(url, 'tools/list')
  t.match(refused, { status: 502, headers: { 'mcp-bridge-error': 'upstream_incompatible' } })
  t.match(refused.message.error, { code: -32603, message: /headers/ })
  const legacy = await LegacyClient.open(url)
  t.match(legacy.opened, { status: 200, message: { error: { code: -32603 } } })
  t.equal(initialized(modern), 0)
  t.same([...new Set(modern.methods)], ['server/discover'])
  stripping = false
  await until(async () => (await call(url, 'tools/list')).status === 200)
  t.equal(initialized(modern), 0)
})

t.test('a temporary header mismatch is not noticed', async (t) => {
  let mismatches = 1
  const modern = await ModernHttp.start(t, {
    override: (arrived, response) => mismatches-- > 0 && refuse(arrived, response, 400, -32020),
  })
  const { url } = await startBridge(t, { url: modern.url })
  t.equal((await call(url, 'tools/list')).status, 200)
  t.equal(modern.of('server/discover').length, 2)
  t.equal(initialized(modern), 0)
})

t.test(
  'a legacy client gets a session of a server of both eras if that has sessions, and otherwise of the bridge',
  async (t) => {
    const sessionful = await ModernHttp.start(t, { dual: 'session' })
    const first = await LegacyClient.open((await startBridge(t, { url: sessionful.url })).url)
    t.match(first.session, /^session-\d+$/)
    t.match((await first.call('echo', { x: 1 })).message, { result: { content: [{ text: '{"x":1}' }] } })
    t.equal(sessionful.of('tools/call')[0]?.era, 'legacy')

    const sessionless = await ModernHttp.start(t, { dual: 'sessionless' })
    const second = await LegacyClient.open((await startBridge(t, { url: sessionless.url })).url)
    t.notMatch(second.session, /^session-/)
    t.match((await second.call('echo', { x: 1 })).message, { result: { content: [{ text: '{"x":1}' }] } })
    t.equal(sessionless.of('tools/call')[0]?.era, 'modern')

    const piped = modernStdio(t, { dual: 'session' })
    const third = await LegacyClient.open((await startBridge(t, piped.server)).url)
    t.match((await third.call('echo', { x: 1 })).message, { result: { content: [{ text: '{"x":1}' }] } })
    const sent = piped.messages().find(({ method }) => method === 'tools/call')
    t.notOk('_meta' in (sent?.['params'] as object), 'as it is')
    t.same([...besideTheQuestion(sessionful.violations()), ...besideTheQuestion(sessionless.violations())], [])
  },
)

t.test('serves a modern client of a server of both eras in its own era', async (t) => {
  for (const dual of ['session', 'sessionless'] as const) {
    const modern = await ModernHttp.start(t, { dual })
    const { url } = await startBridge(t, { url: modern.url })
    t.match(await call(url, 'tools/call', { name: 'echo', arguments: {} }), { status: 200 })
    t.notOk(modern.received.some(({ era }) => era === 'legacy'))
  }
})

/** A server that is legacy until it turns modern: then `refusal` is what becomes of everything that has no envelope. */
async function turning(t: Test, refusal: NonNullable<HttpPlan['override']>) {
  let turned = false
  const modern = await ModernHttp.start(t, {
    dual: 'session',
    override: (arrived, response) => {
      if (turned) return arrived.era === 'legacy' && refusal(arrived, response)
      return arrived.era === 'modern' && refuse(arrived, response, 404, -32601)
    },
  })
  return {
    modern,
    turn: () => {
      turned = true
    },
  }
}

const REFUSALS: [name: string, refusal: NonNullable<HttpPlan['override']>][] = [
  [
    'the session is lost, and initialize refused',
    (arrived, response) =>
      arrived.message?.['method'] === 'initialize'
        ? refuse(arrived, response, 400, -32022, { ...MODERN, requested: '2025-11-25' })
        : refuse(arrived, response, 404, -32001),
  ],
  [
    'a modern error to every request',
    (arrived, response) => refuse(arrived, response, 400, -32022, { ...MODERN, requested: '2025-11-25' }),
  ],
  ['a header mismatch with every request', (arrived, response) => refuse(arrived, response, 400, -32020)],
]

t.test('detects a legacy server that became modern, which clients do not notice', async (t) => {
  for (const [name, refusal] of REFUSALS) {
    const { modern, turn } = await turning(t, refusal)
    const { url, bridge } = await startBridge(t, { url: modern.url })
    const before = await call(url, 'tools/call', { name: 'act', arguments: {} })
    t.match(before, { status: 200, message: { result: { resultType: 'complete' } } }, name)
    t.equal(bridge.server.verdict?.era, 'legacy')
    turn()
    const answers = await Promise.all(
      Array.from({ length: 5 }, () => call(url, 'tools/call', { name: 'act', arguments: {} })),
    )
    for (const { status, message } of answers)
      t.match({ status, message }, { status: 200, message: { result: { resultType: 'complete' } } }, name)
    t.equal(bridge.server.verdict?.era, 'modern', name)
    t.equal(modern.executed, 5, 'nothing was done twice')
  }
})

t.test('a legacy client of such a server opens another session, served by the bridge', async (t) => {
  for (const [name, refusal] of REFUSALS.slice(0, 1)) {
    const { modern, turn } = await turning(t, refusal)
    const { url } = await startBridge(t, { url: modern.url })
    const client = await LegacyClient.open(url)
    t.match(client.session, /^session-\d+$/)
    turn()
    t.equal((await client.call('echo', { x: 1 })).status, 404, name)
    let other = await LegacyClient.open(url)
    // The first attempt may be what shows that the server has changed.
    if (other.opened.status !== 200 || other.opened.message.error) other = await LegacyClient.open(url)
    t.match(other.opened.message, { result: { protocolVersion: '2025-11-25' } }, name)
    t.match((await other.call('echo', { x: 1 })).message, { result: { content: [{ text: '{"x":1}' }] } })
    t.equal(modern.of('tools/call').at(-1)?.era, 'modern')
  }
})

t.test('detects a modern server that became legacy, too', async (t) => {
  let modernToo = true
  const modern = await ModernHttp.start(t, {
    dual: 'session',
    override: ({ era }, response) => {
      if (era === 'legacy' || modernToo) return false
      response.writeHead(404).end()
      return true
    },
  })
  const { url, bridge } = await startBridge(t, { url: modern.url })
  t.equal((await call(url, 'tools/list')).status, 200)
  modernToo = false
  await call(url, 'tools/list')
  t.match(await call(url, 'tools/list'), { status: 200, message: { result: { resultType: 'complete' } } })
  t.equal(bridge.server.verdict?.era, 'legacy')
})

t.test('a legacy server that refuses a call with a modern error gets it once, the client the error', async (t) => {
  for (const code of [-32020, -32021, -32022]) {
    const server = await ModernHttp.start(t, {
      dual: 'session',
      override: (arrived, response) =>
        arrived.era === 'modern'
          ? refuse(arrived, response, 404, -32601)
          : arrived.message?.['method'] === 'tools/call' && refuse(arrived, response, 400, code),
    })
    const { url, bridge } = await startBridge(t, { url: server.url })
    const { status, message } = await call(url, 'tools/call', { name: 'act', arguments: {} })
    t.match({ status, message }, { status: 200, message: { error: { code: -32603, data: { upstreamCode: code } } } })
    t.equal(server.of('tools/call').length, 1)
    t.equal(bridge.server.verdict?.era, 'legacy')
    t.equal((await call(url, 'tools/list')).status, 200, 'the next call opens another session')
  }
})

t.test('probes a restarted modern program first, and sends nothing else before', async (t) => {
  const stdio = modernStdio(t)
  const { url } = await startBridge(t, stdio.server)
  t.equal((await call(url, 'tools/list')).status, 200)
  t.match((await call(url, 'tools/call', { name: 'crash', arguments: {} })).message.error, { code: -32603 })
  t.equal((await call(url, 'tools/list')).status, 200)
  const [, second] = stdio.pids()
  const heard = stdio.seen().filter(({ pid, line }) => pid === second && line.startsWith('{'))
  t.match(heard[0]?.line, /"method":"server\/discover"/)
  t.notOk(stdio.messages().some(({ method }) => method === 'initialize'))
  t.same(stdio.violations(), [])
})

t.test('detects a modern program that did not answer the probe, after initialize failed', async (t) => {
  const stdio = modernStdio(t, { silentDiscovers: 1 })
  const timeLimit = holdTimers(t, PROBE)
  const { url, bridge } = await startBridge(t, stdio.server, { timeouts: { probe: PROBE } })
  const answer = call(url, 'tools/list')
  await until(() => stdio.messages().length === 1, 'the first question')
  timeLimit.run()
  t.equal((await answer).status, 200)
  t.equal(bridge.server.verdict?.era, 'modern')
  t.equal(stdio.pids().length, 1)
})

t.test('the probe has a full envelope, and names the bridge as its client', async (t) => {
  const modern = await ModernHttp.start(t)
  const { bridge } = await startBridge(t, { url: modern.url })
  await bridge.server.warmUp()
  await until(() => modern.received.length === 1)
  const meta = (modern.received[0]?.message?.['params'] as { _meta: object })._meta
  t.match(meta, { [VERSION]: '2026-07-28', [CAPABILITIES]: {}, [CLIENT_INFO]: { name: 'mcp-bridge' } })
  t.same(modern.violations(), [])
})

t.test('fifty legacy clients at once cause one probe, and one check for sessions', async (t) => {
  for (const plan of [{}, { dual: 'session' }] as const) {
    const modern = await ModernHttp.start(t, plan)
    const { url } = await startBridge(t, { url: modern.url })
    const clients = await Promise.all(Array.from({ length: 50 }, () => LegacyClient.open(url)))
    for (const { opened } of clients) t.equal(opened.status, 200)
    t.equal(new Set(clients.map(({ session }) => session)).size, 50)
    const probes = modern.of('server/discover').filter(({ message }) => JSON.stringify(message).includes('mcp-bridge'))
    t.equal(probes.length, 1)
    const asked = modern.received.filter(
      ({ method, headers }) => method === 'GET' && headers['mcp-session-id'] === undefined,
    )
    t.ok(asked.length <= 1, `asked ${asked.length} times`)
    const openings = modern.of('initialize').filter(({ body }) => body.includes('mcp-bridge'))
    t.ok(openings.length <= 1, `opened ${openings.length} times`)
  }
})

t.test('does not probe a server that is configured as modern', async (t) => {
  const modern = await ModernHttp.start(t)
  const { url } = await startBridge(t, { url: modern.url, era: 'modern' })
  t.equal((await call(url, 'tools/list')).status, 200)
  const client = await LegacyClient.open(url)
  t.equal((await client.request('tools/list')).status, 200)
  t.equal(initialized(modern), 0)
  const params = { name: 'echo', arguments: {} }
  t.equal((await post(url, 'no JSON', headersFor('tools/call', params))).status, 400)
  t.same(
    modern.violations().filter(({ rule }) => rule !== 'json'),
    [],
  )
})
