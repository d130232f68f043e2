/** What callers are told of calls that were not answered: that nothing has been done, only where that is certain. */
import { existsSync, readFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import { execPath } from 'node:process'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { startBridge } from '../support/bridge.js'
import { run } from '../support/cli.js'
import { until } from '../support/eventually.js'
import { temporaryFolder } from '../support/folder.js'
import { LegacyClient } from '../support/legacy-client.js'
import { LegacyHttp } from '../support/legacy-http.js'
import { type Answer, call } from '../support/modern.js'
import { ModernHttp } from '../support/modern-http.js'
import { PlainHttp } from '../support/plain-http.js'

type Break = (response: ServerResponse) => void
type Started = Awaited<ReturnType<typeof startBridge>>

/** A way in which calls of `act` come to a server over HTTP that breaks them all. */
interface Lane {
  name: string
  /** Calls pass as they are, and the bridge knows no tools. */
  passes?: boolean
  /** Its client gets the status of the server. */
  hasStatus?: boolean
  /** A legacy client has statuses of its own transport only. */
  inBand: boolean
  start(
    t: Test,
    broken: Break,
    settings?: object,
  ): Promise<Started & { act(name?: string): Promise<Answer>; calls(): number }>
}

async function withLegacyServer(t: Test, broken: Break, own = {}) {
  const server = await LegacyHttp.start(t, {
    override: ({ message }, response) => {
      if (message['method'] !== 'tools/call') return false
      broken(response)
      return true
    },
  })
  const bridge = await startBridge(t, { url: server.url, ...own })
  await bridge.bridge.server.warmUp()
  return { ...bridge, calls: () => server.of('tools/call').length }
}

async function withModernServer(t: Test, broken: Break, own = {}) {
  const server = await ModernHttp.start(t, {
    override: ({ message }, response) => {
      if (message?.['method'] !== 'tools/call') return false
      broken(response)
      return true
    },
  })
  const bridge = await startBridge(t, { url: server.url, ...own })
  await bridge.bridge.server.warmUp()
  return { ...bridge, calls: () => server.of('tools/call').length }
}

const asModern =
  ({ url }: Started) =>
  (name = 'act') =>
    call(url, 'tools/call', { name, arguments: {} })
const asLegacy = async ({ url }: Started) => {
  const client = await LegacyClient.open(url)
  await client.request('tools/list')
  return (name = 'act') => client.call(name)
}

const LANES: readonly Lane[] = [
  {
    name: 'a modern client of a legacy server',
    inBand: false,
    async start(t, broken, own) {
      const started = await withLegacyServer(t, broken, own)
      await call(started.url, 'tools/list')
      return { ...started, act: asModern(started) }
    },
  },
  {
    name: 'a legacy client of a modern server',
    inBand: true,
    async start(t, broken, own) {
      const started = await withModernServer(t, broken, own)
      return { ...started, act: await asLegacy(started) }
    },
  },
  {
    name: 'a modern client of a modern server',
    hasStatus: true,
    inBand: false,
    async start(t, broken, own) {
      const started = await withModernServer(t, broken, own)
      await call(started.url, 'tools/list')
      return { ...started, act: asModern(started) }
    },
  },
  {
    name: 'a legacy client of a legacy server',
    passes: true,
    inBand: true,
    async start(t, broken, own) {
      const started = await withLegacyServer(t, broken, own)
      return { ...started, act: await asLegacy(started) }
    },
  },
]

const PAGE = '<html><head><title>502 Bad Gateway</title></head><body>upstream node-7.internal timed out</body></html>'
const page =
  (status: number, headers = {}): Break =>
  (response) =>
    response.writeHead(status, { 'content-type': 'text/html', ...headers }).end(PAGE)

t.test('a status of 500 and above, and some below, leave the outcome unknown', async (t) => {
  for (const lane of LANES) {
    for (const status of [500, 502, 503, 504, 408, 409]) {
      const { act, calls, log } = await lane.start(t, page(status))
      const name = `${lane.name}: ${status}`
      const answer = await act()
      t.equal(answer.status, 200, name)
      t.match(answer.message, { error: { code: -32603, data: { outcome: 'unknown', httpStatus: status } } }, name)
      t.notMatch(answer.text, /internal/, `${name}: the page of a gateway stays here`)
      t.equal(calls(), 1, `${name}: and it is not called again`)
      const line = () => log.find(({ method, outcome }) => method === 'tools/call' && outcome === 'fault')
      await until(() => line() !== undefined, 'the line of the call')
      t.match(line(), { said: /502 Bad Gateway.*node-7\.internal/, level: 40 }, `${name}: but the operator reads it`)
    }
  }
})

t.test('some statuses prove that a call was not executed', async (t) => {
  const rows: [status: number, headers: object, translated: number, direct: number][] = [
    [503, { 'retry-after': '7' }, 503, 503],
    [429, { 'retry-after': '7' }, 429, 429],
    [413, {}, 502, 413],
    [415, {}, 502, 415],
    [401, {}, 502, 502],
    [302, { location: 'http://node-7.internal/login?secret=1' }, 502, 502],
    [303, { location: '/elsewhere' }, 502, 502],
  ]
  for (const lane of LANES) {
    for (const [status, headers, translated, direct] of rows) {
      const { act, log } = await lane.start(t, page(status, headers))
      const name = `${lane.name}: ${status}`
      const answer = await act()
      t.equal(answer.status, lane.inBand ? 200 : lane.hasStatus ? direct : translated, name)
      t.match(answer.message, { error: { code: -32603, data: { outcome: 'not_executed' } } }, name)
      t.notMatch(answer.text + JSON.stringify(answer.headers), /internal/, name)
      if (status !== 302) continue
      const line = () => log.find(({ method, outcome }) => method === 'tools/call' && outcome === 'fault')
      await until(() => line() !== undefined, 'the line of the call')
      t.match(line(), { said: 'Location: http://node-7.internal/login' }, `${name}: where to is in the log`)
    }
  }
})

t.test("a caller gets the server's error text, truncated and printable, from plain text or JSON", async (t) => {
  const said: [type: string, body: string, seen: string][] = [
    ['text/plain', 'The\u001b[31m quota\r\n of\tthis key is used up', 'The?[31m quota of this key is used up'],
    ['application/json', '{"detail":"Not\\u0020now"}', '{"detail":"Not\\u0020now"}'],
    ['application/problem+json; charset=utf-8', `{"detail":"${'x'.repeat(1_000)}"}`, `{"detail":"${'x'.repeat(189)}…`],
  ]
  for (const lane of LANES) {
    for (const [type, body, seen] of said) {
      const { act } = await lane.start(t, (response) => response.writeHead(422, { 'content-type': type }).end(body))
      const { message } = await act()
      t.ok(message.error?.message.endsWith(`: ${seen}`), `${lane.name}: ${message.error?.message}`)
      t.match(message.error?.data, { outcome: 'unknown' })
    }
  }
})

t.test('probe prints what a server sends in place of a session, and the log has it at the start', async (t) => {
  const rows: [status: number, type: string, body: string, seen: RegExp][] = [
    [500, 'text/html', PAGE, /HTTP 500[\s\S]*The server said: <html>.*node-7\.internal/],
    [403, 'text/plain', 'Only from the office', /HTTP 403\): Only from the office/],
    [404, 'application/json', '{"detail":"No such app"}', /HTTP 404[\s\S]*The server said: \{"detail":"No such app"\}/],
    [302, 'text/html', '', /HTTP 302[\s\S]*use the address http:\/\/login\.example\/ instead/],
  ]
  for (const [status, type, body, seen] of rows) {
    const server = await PlainHttp.start(t, (_arrival, response) =>
      response.writeHead(status, { 'content-type': type, location: 'http://login.example/?key=1' }).end(body),
    )
    const { code, stderr } = await run(t, ['probe', server.url])
    t.equal(code, 1, `${status}`)
    t.match(stderr, seen)
    t.notMatch(stderr, /key=1/)
  }
})

t.test('a connection that breaks before the answer leaves the outcome unknown', async (t) => {
  const breaks: [string, Break][] = [
    ['before the head', (response) => response.destroy()],
    [
      'in the middle of a small answer',
      (response) => {
        response.writeHead(200, { 'content-type': 'application/json', 'content-length': '1000' })
        response.write('{"jsonrpc":"2.0","id":1,', () => response.destroy())
      },
    ],
    [
      'in the middle of one whose length is not known',
      (response) => {
        response.writeHead(200, { 'content-type': 'application/json' })
        response.write('{"jsonrpc":"2.0","id":1,', () => response.destroy())
      },
    ],
    [
      'after an event',
      (response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        response.write('data: {"jsonrpc":"2.0","method":"notifications/x"}\n\n', () => response.destroy())
      },
    ],
    [
      'after an event whose data looks like the id of an event',
      (response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        const message = '{"jsonrpc":"2.0","method":"notifications/x","params":{"id: 7":"id:8"}}'
        response.write(`data: ${message}\n\n`, () => response.destroy())
      },
    ],
    [
      'at the end of a stream without an answer',
      (response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        response.end(': nothing to say\n\n')
      },
    ],
  ]
  for (const lane of LANES) {
    for (const [how, broken] of breaks) {
      const { act, calls, log } = await lane.start(t, broken)
      const answer = await act()
      const name = `${lane.name}: ${how}`
      t.equal(answer.status, 200, name)
      t.match(answer.message, { error: { code: -32603, data: { outcome: 'unknown' } } }, name)
      t.equal(calls(), 1, name)
      await until(() => log.some(({ method, outcome }) => method === 'tools/call' && outcome === 'fault'), name)
    }
  }
})

t.test('a legacy client that can resume a stream is left to do so', async (t) => {
  const { url } = await withLegacyServer(t, (response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write('id: 7\ndata: \n\n', () => response.destroy())
  })
  const client = await LegacyClient.open(url)
  const stream = await client.stream('tools/call', { name: 'act' })
  await stream.ended()
  t.same(stream.messages, [])
  t.equal(stream.ids[0], '7')
})

t.test(
  'a mistake of the bridge is not_executed before the server was called, and costs nobody the answer after',
  async (t) => {
    const server = await LegacyHttp.start(t)
    let fails = ''
    const failOnce = (where: string) => {
      if (fails !== where) return
      fails = ''
      throw new TypeError('a mistake')
    }
    const span = {
      ids: {},
      context: undefined,
      within: () => span,
      end: () => {},
    }
    const { url, log } = await startBridge(t, { url: server.url }, {}, {
      metrics: { observe: () => {}, countCall: () => failOnce('after') },
      tracer: {
        begin: () => {
          failOnce('before')
          return span
        },
      },
    } as never)
    t.equal((await call(url, 'tools/call', { name: 'act', arguments: {} })).status, 200)
    const before = server.of('tools/call').length
    fails = 'before'
    const unsent = await call(url, 'tools/call', { name: 'act', arguments: {} })
    t.match(unsent, {
      status: 500,
      message: { error: { data: { reason: 'internal_error', outcome: 'not_executed' } } },
    })
    t.equal(server.of('tools/call').length, before)
    fails = 'after'
    const sent = await call(url, 'tools/call', { name: 'act', arguments: {} })
    t.match(sent, { status: 200, message: { result: { content: [{ type: 'text' }] } } }, 'the client has the answer')
    t.equal(server.of('tools/call').length, before + 1)
    await until(() => log.some(({ event }) => event === 'answer_failed'), 'the mistake in the log')
    t.equal((await call(url, 'tools/call', { name: 'act', arguments: {} })).status, 200, 'the bridge goes on')
  },
)

t.test('a tool whose answer was lost is not called again unless configured, whatever its hints', async (t) => {
  for (const lane of LANES.filter(({ passes }) => !passes)) {
    const lost = await lane.start(t, (response) => response.destroy())
    t.match((await lost.act('echo')).message, { error: { data: { outcome: 'unknown' } } }, lane.name)
    t.equal(lost.calls(), 1, lane.name)
    const safe = await lane.start(t, (response) => response.destroy(), { retry: 'safe' })
    t.match((await safe.act('echo')).message, { error: { data: { outcome: 'unknown' } } }, lane.name)
    t.equal(safe.calls(), 2, `${lane.name}: where the tool says that it only reads`)
    await safe.act('act')
    t.equal(safe.calls(), 3, `${lane.name}: of the others not one`)
  }
})

t.test('a call that ends its program ends one, and a list at most two', async (t) => {
  const script = fileURLToPath(new URL('../fixtures/dying.mjs', import.meta.url))
  for (const era of ['legacy', 'modern']) {
    const file = join(temporaryFolder(t), 'calls')
    const said = () => (existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : [])
    const { url } = await startBridge(t, { command: execPath, args: [script, era, file] })
    t.equal((await call(url, 'tools/list')).status, 200)
    const { message } = await call(url, 'tools/call', { name: 'look', arguments: {} })
    t.match(message.error?.data, { outcome: 'unknown' }, era)
    t.same(said(), ['tools/call'], era)
    t.ok((await call(url, 'prompts/list')).message.error, era)
    t.ok(said().filter((method) => method === 'prompts/list').length <= 2, era)
  }
})
