/** Servers that do not know the revision that they are offered. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { startBridge } from '../support/bridge.js'
import { until } from '../support/eventually.js'
import { initialize } from '../support/legacy-client.js'
import { LegacyHttp, type Override } from '../support/legacy-http.js'
import { LegacySse, PATHS } from '../support/legacy-sse.js'
import { listenUntilEnd } from '../support/listen-until-end.js'
import { call, post } from '../support/modern.js'
import { openPipe } from '../support/pipe.js'

type Json = Record<string, unknown>

const LATER = '2027-03-01'
const JSON_TYPE = { 'content-type': 'application/json' }

const revisionOf = (message: Json) => (message['params'] as Json)['protocolVersion']

/** Refuses each `initialize` with another revision than `known`. */
function knowsOnly(known: string, status: number, type: string, body: (id: unknown) => string): Override {
  return ({ message, path }, response) => {
    if (path === PATHS.stream || message['method'] !== 'initialize' || revisionOf(message) === known) return false
    response.writeHead(status, { 'content-type': type }).end(body(message['id']))
    return true
  }
}

const TEXT = () => 'Unsupported protocol version'
const REFUSALS: [what: string, status: number, type: string, body: (id: unknown) => string][] = [
  ['400 plain text', 400, 'text/plain', TEXT],
  ['400 without a body', 400, 'text/plain', () => ''],
  ['400 with JSON that is no JSON-RPC', 400, 'application/json', () => '{"error":"version"}'],
  ['400 with a page', 400, 'text/html', () => '<h1>Bad Request</h1>'],
  ['422 with JSON', 422, 'application/json', () => '{"detail":[{"loc":["protocolVersion"]}]}'],
  ['500 plain text', 500, 'text/plain', () => 'Internal Server Error'],
  [
    '400 with a JSON-RPC error',
    400,
    'application/json',
    (id) => JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32602, message: 'Unsupported protocol version' } }),
  ],
]

for (const [what, ...refusal] of REFUSALS)
  for (const known of ['2025-06-18', '2024-11-05'])
    t.test(`offers ${known} to a server that knows only that and answers others with ${what}`, async (t) => {
      const plan = { revision: known, override: knowsOnly(known, ...refusal) }
      for (const server of [await LegacyHttp.start(t, plan), await LegacySse.start(t, plan)]) {
        const { url } = await startBridge(t, { url: server.url })
        const { message } = await call(url, 'tools/call', { name: 'echo', arguments: { n: 1 } })
        t.match(message.result, { structuredContent: { n: 1 } }, server.url)
        const offered = server.received
          .filter(({ message, path }) => message['method'] === 'initialize' && path !== PATHS.stream)
          .map(({ message }) => revisionOf(message))
        t.same(offered, [...new Set(offered)], 'each revision is offered once')
        t.equal(offered.at(-1), known)
      }
    })

t.test('a legacy client on stdio gets a session with an older revision', async (t) => {
  const override = knowsOnly('2025-06-18', 400, 'text/plain', TEXT)
  const server = await LegacyHttp.start(t, { revision: '2025-06-18', override })
  const pipe = openPipe(t, { url: server.url })
  pipe.line(initialize('2025-11-25'))
  await until(() => pipe.messages().length > 0, 'an answer')
  t.match(pipe.messages()[0], { result: { protocolVersion: '2025-06-18' } })
})

t.test('reports the words of a server that refuses every revision', async (t) => {
  const server = await LegacyHttp.start(t, { override: knowsOnly('', 400, 'text/plain', () => 'No such tenant') })
  const { url } = await startBridge(t, { url: server.url })
  const { message, status } = await call(url, 'tools/list')
  t.equal(status, 502)
  t.match(message.error?.message, /HTTP 400.*No such tenant/)
})

/** A server that answers each method with the given result or error; an unknown one with "Method not found". */
async function startLater(t: Test, answers: Record<string, Json>): Promise<{ url: string; methods: unknown[] }> {
  const methods: unknown[] = []
  const server = createServer((request, response) => {
    let body = ''
    request.on('data', (chunk) => {
      body += chunk
    })
    request.on('end', () => {
      if (request.method !== 'POST') return void response.writeHead(405).end()
      const { id, method } = JSON.parse(body) as Json
      methods.push(method)
      const answer = answers[String(method)] ?? { error: { code: -32601, message: 'Method not found' } }
      response.writeHead('error' in answer ? 400 : 200, JSON_TYPE)
      response.end(JSON.stringify({ jsonrpc: '2.0', id, ...answer }))
    })
  })
  await listenUntilEnd(t, server)
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`, methods }
}

const UNSUPPORTED = { error: { code: -32022, message: 'Unsupported', data: { supported: [LATER], requested: 'x' } } }
const OPENED = { protocolVersion: LATER, capabilities: {}, serverInfo: { name: 'later', version: '1' } }
const LATER_ONLY: [what: string, answers: Record<string, Json>][] = [
  ['in its answer to server/discover', { 'server/discover': { result: { supportedVersions: [LATER] } } }],
  ['in an error to server/discover', { 'server/discover': UNSUPPORTED }],
  ['in an error to initialize', { initialize: UNSUPPORTED }],
  ['in its answer to initialize', { initialize: { result: OPENED } }],
]
const SAYS = /speaks only 2027-03-01, .* up to 2026-07-28: update mcp-bridge/

for (const [what, answers] of LATER_ONLY)
  t.test(`reports the later revision that a server names alone ${what}`, async (t) => {
    const later = await startLater(t, answers)
    const { url } = await startBridge(t, { url: later.url })
    const modern = await call(url, 'tools/list')
    t.match(modern.message.error, { message: SAYS, data: { reason: 'upstream_incompatible' } })
    const pipe = openPipe(t, { url: later.url })
    t.match(await pipe.call('tools/list'), { error: { message: SAYS } }, 'on stdio')
    if (!('initialize' in answers)) {
      const headers = { ...JSON_TYPE, accept: 'application/json, text/event-stream' }
      const legacy = await post(url, initialize('2025-11-25'), headers)
      t.match(legacy.message.error, { message: SAYS }, 'for a legacy client')
      t.notOk(later.methods.includes('initialize'), 'no session is asked for')
    }
  })

t.test('a program that names only later revisions ends, and gets no initialize', async (t) => {
  const script = `require('readline').createInterface({ input: process.stdin }).on('line', (line) => {
    const { id, method } = JSON.parse(line)
    const result = { supportedVersions: ['DRAFT-2027-v1', '2027-03-01'] }
    const error = { code: -32601, message: 'Method not found' }
    console.log(JSON.stringify({ jsonrpc: '2.0', id, ...(method === 'server/discover' ? { result } : { error }) }))
  })`
  const { url } = await startBridge(t, { command: process.execPath, args: ['-e', script] })
  const { message } = await call(url, 'tools/list')
  t.match(message.error?.message, /speaks only DRAFT-2027-v1, 2027-03-01/)
})

t.test('uses a known revision that a server also names', async (t) => {
  const { url } = await startBridge(t, {
    url: (
      await LegacyHttp.start(t, {
        discover: {
          status: 400,
          body: {
            jsonrpc: '2.0',
            id: 1,
            error: { code: -32022, message: 'no', data: { supported: [LATER, '2025-11-25'] } },
          },
        },
      })
    ).url,
  })
  t.equal((await call(url, 'tools/list')).status, 200)
})
