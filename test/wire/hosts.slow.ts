/** Hosts, most of which probe first, in front of legacy servers of all kinds, over stdio and HTTP. */
import t, { type Test } from 'tap'
import { startBridge } from '../support/bridge.js'
import { until } from '../support/eventually.js'
import { HOSTS, type Line, play } from '../support/hosts.js'
import { LegacyHttp } from '../support/legacy-http.js'
import { LegacySse } from '../support/legacy-sse.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { headersFor, send } from '../support/modern.js'
import { openPipe } from '../support/pipe.js'

t.setTimeout(600_000)

type Json = Record<string, unknown>

/** The servers, and a time for the probe that those need that never answer it. */
const SERVERS: Record<string, (t: Test) => Promise<{ server: object; settings?: object }>> = {
  'a legacy program': async (t) => ({ server: legacyStdio(t).server }),
  'a legacy server over HTTP': async (t) => ({ server: { url: (await LegacyHttp.start(t, { sessions: true })).url } }),
  'a legacy server over HTTP+SSE': async (t) => ({ server: { url: (await LegacySse.start(t)).url } }),
  'a program that starts slowly': async (t) => ({ server: legacyStdio(t, { slowStart: 600 }).server }),
  'a server over HTTP that answers the probe too late': async (t) => {
    const { url } = await LegacyHttp.start(t, {
      sessions: true,
      override: ({ message }, response) => {
        if (message['method'] !== 'server/discover') return false
        setTimeout(() => response.writeHead(400).end(), 600)
        return true
      },
    })
    return { server: { url }, settings: { timeouts: { probe: 300 } } }
  },
  // rmcp before 3: modelcontextprotocol/go-sdk#1177
  'a program that exits at the probe': async (t) => ({ server: legacyStdio(t, { discover: 'exit' }).server }),
  // loom#327, rust-sdk#1040
  'a program that answers the probe with an error of its own': async (t) => ({
    server: legacyStdio(t, { discover: { code: -32602, message: 'initialize first' } }).server,
  }),
  // zoedsoupe/anubis-mcp#295
  'a server that answers the probe with 400 and another id': async (t) => {
    const error = { code: -32603, message: 'Internal error', data: { http_status: 400 } }
    const { url } = await LegacyHttp.start(t, {
      sessions: true,
      override: ({ message }, response) => {
        if (message['method'] !== 'server/discover') return false
        const text = JSON.stringify({ jsonrpc: '2.0', id: 'err_GNIwrudOUg2rFguqC4U=', error })
        response.writeHead(400, { 'content-type': 'application/json' }).end(text)
        return true
      },
    })
    return { server: { url } }
  },
  // modelcontextprotocol/rust-sdk#1142
  'a program that never answers the probe': async (t) => ({
    server: legacyStdio(t, { discover: 'silent' }).server,
    settings: { timeouts: { probe: 300 } },
  }),
}

/** Messages as lines of a pipe. */
function overStdio(t: Test, server: object, settings: object | undefined): Line & { end(): Promise<unknown> } {
  const pipe = openPipe(t, server, settings)
  return {
    async ask(message) {
      const before = pipe.messages().length
      pipe.line(JSON.stringify(message))
      const answer = () =>
        pipe
          .messages()
          .slice(before)
          .find((one) => one['id'] === message['id'] && !('method' in one))
      await until(() => answer() !== undefined, `an answer to ${String(message['method'])}`)
      return answer() as Json
    },
    async tell(message) {
      pipe.line(JSON.stringify(message))
    },
    end: () => Promise.all([pipe.end(), pipe.bridge.close(true)]),
  }
}

/** Messages as POSTs, with the headers that hosts of both eras send. */
function overHttp(url: string): Line {
  let session: Record<string, string> = {}
  const post = async (message: Json) => {
    const { method, params = {} } = message as { method: string; params?: Json }
    const isModern = Object.hasOwn((params['_meta'] ?? {}) as Json, 'io.modelcontextprotocol/protocolVersion')
    const headers = {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...(isModern ? headersFor(method, params) : method === 'initialize' ? {} : session),
    }
    const answer = await send('POST', url, JSON.stringify(message), headers)
    const id = answer.headers['mcp-session-id']
    const opened = answer.message as { result?: { protocolVersion?: string } } & Json
    if (id !== undefined)
      session = { 'mcp-session-id': String(id), 'mcp-protocol-version': opened.result?.protocolVersion ?? '' }
    return opened
  }
  return {
    ask: post,
    // Nobody waits for streams, nor for answers to notifications.
    tell: async (message) => {
      if (message['method'] !== 'subscriptions/listen') await post(message)
    },
  }
}

for (const [name, start] of Object.entries(SERVERS))
  t.test(`each host works in front of ${name}`, async (t) => {
    const { server: shared, settings } = await start(t)
    const { url } = await startBridge(t, shared, settings)
    for (const host of HOSTS) {
      const { server } = await start(t)
      const era = host.next === 'modern' ? 'modern' : 'legacy'
      const expected = { era, said: [{ type: 'text' }] }
      const line = overStdio(t, server, settings)
      const met = await play(host, line)
      await line.end()
      t.match(met, expected, `${host.name}, stdio`)
      t.ok(met.tools.includes('echo'))
      t.match(await play(host, overHttp(url)), expected, `${host.name}, HTTP`)
    }
  })

t.test('a host that does not wait for its probe opens a session on the same pipe', async (t) => {
  const impatient = HOSTS.filter(({ name }) => ['Antigravity, with the Go SDK', 'C# SDK', 'mcporter'].includes(name))
  t.equal(impatient.length, 3)
  for (const [discover, settings] of [
    ['silent', { timeouts: { probe: 300 } }],
    ['exit', {}],
  ] as const)
    for (const host of impatient) {
      const { server } = legacyStdio(t, { discover })
      const line = overStdio(t, server, settings)
      const met = await play(host, line, { impatient: true })
      await line.end()
      t.match(met, { era: 'legacy', said: [{ type: 'text' }] }, `${host.name}, ${discover}`)
    }
})

t.test('a server over HTTP+SSE is not probed on its stream', async (t) => {
  const server = await LegacySse.start(t)
  const { url } = await startBridge(t, { url: server.url, type: 'sse' })
  for (const host of HOSTS) await play(host, overHttp(url))
  t.notOk(server.received.some(({ message }) => message['method'] === 'server/discover'))
})
