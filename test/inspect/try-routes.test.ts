/** Calls from the inspector: who may make them, that they pass as those of clients do, and that a refused one calls nothing. */
import { request as httpRequest } from 'node:http'
import { PassThrough } from 'node:stream'
import { Client as ModernClient, StreamableHTTPClientTransport as ModernTransport } from '@modelcontextprotocol/client'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { pino } from 'pino'
import t, { type Test } from 'tap'
import { Inspector } from '../../src/inspector/inspector.js'
import { createBridge, settingsOf, startBridge } from '../support/bridge.js'
import { until } from '../support/eventually.js'
import { temporaryFolder } from '../support/folder.js'
import { messages } from '../support/inspected.js'
import { TOKEN } from '../support/inspector.js'
import { LegacyHttp } from '../support/legacy-http.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { ModernHttp } from '../support/modern-http.js'

const TRY_TOKEN = 'a-token-that-may-call'

function inspectorFor({ tryToken, mayTry = true, folder }: { tryToken?: string; mayTry?: boolean; folder?: string }) {
  return new Inspector(
    { token: TOKEN, payloads: 'all', callsPerSecond: 500, hide: [], try: mayTry, ...(tryToken && { tryToken }) },
    { version: '0.0.0', log: pino({ level: 'silent' }), folder, mayTry },
  )
}

async function start(t: Test, entry: object, options: Parameters<typeof inspectorFor>[0] = {}, settings: object = {}) {
  const inspector = inspectorFor(options)
  const { bridge, log } = await startBridge(t, entry, settings, { inspector, recorder: inspector.recorder })
  const at = bridge.inspectUrl as string
  const url = `${at}/try?server=test`
  const send = (init: RequestInit & { token?: string; to?: string } = {}) => {
    const { token = TOKEN, to = url, ...more } = init
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json', ...JSON_AND_EVENTS }
    return fetch(to, { method: 'POST', ...more, headers: { ...headers, ...(more.headers as object) } })
  }
  const read = async (path: string) =>
    (await (await fetch(`${at}/${path}`, { headers: { authorization: `Bearer ${TOKEN}` } })).json()) as {
      calls: { principal: string; method: string }[]
      try: object
      targets: object[]
    }
  return { url, at, send, read, log, bridge }
}

const JSON_AND_EVENTS = { accept: 'application/json, text/event-stream' }
const CALL = messages.call('echo', { text: 'hello' })
const MODERN = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': 'echo' }

async function bothClients(t: Test, url: string) {
  const requestInit = { headers: { authorization: `Bearer ${TOKEN}` } }
  const legacy = new Client({ name: 'page', version: '1' })
  await legacy.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit }))
  t.teardown(() => legacy.close())
  const modern = new ModernClient(
    { name: 'page', version: '1' },
    { versionNegotiation: { mode: { pin: '2026-07-28' } } },
  )
  await modern.connect(new ModernTransport(new URL(url), { requestInit }))
  t.teardown(() => modern.close())
  return { legacy, modern }
}

t.test('a client of either era calls a server on every transport, as the principal inspector', async (t) => {
  const servers = [
    legacyStdio(t).server,
    { url: (await LegacyHttp.start(t)).url },
    { url: (await ModernHttp.start(t)).url },
  ]
  for (const server of servers) {
    const { url, read } = await start(t, server)
    const { legacy, modern } = await bothClients(t, url)
    for (const client of [legacy, modern]) {
      const result = await client.callTool({ name: 'echo', arguments: { text: 'hello' } })
      t.match(JSON.stringify(result), /hello/)
    }
    const { calls } = await read('calls?filter=method:tools/call')
    t.same(
      calls.map(({ principal }) => principal),
      ['inspector', 'inspector'],
    )
  }
})

t.test('refuses other origins, hosts, tokens, content types and bodies, and calls nothing', async (t) => {
  const legacy = legacyStdio(t)
  const { send, url, read } = await start(t, legacy.server, { tryToken: TRY_TOKEN })
  const good = { token: TRY_TOKEN, body: CALL, headers: MODERN }
  const at = new URL(url)
  const refused: [why: string, status: number, response: Promise<Response>][] = [
    ['no token', 401, send({ ...good, headers: { ...MODERN, authorization: '' } })],
    ['wrong token', 401, send({ ...good, token: 'another-token-of-16' })],
    ['token of a viewer', 403, send({ ...good, token: TOKEN })],
    ['other origin', 403, send({ ...good, headers: { ...MODERN, origin: 'https://evil.example' } })],
    ['null origin', 403, send({ ...good, headers: { ...MODERN, origin: 'null' } })],
    ['text', 415, send({ ...good, headers: { ...MODERN, 'content-type': 'text/plain' } })],
    ['form', 415, send({ ...good, headers: { ...MODERN, 'content-type': 'application/x-www-form-urlencoded' } })],
    ['parts', 415, send({ ...good, headers: { ...MODERN, 'content-type': 'multipart/form-data; boundary=x' } })],
    ['no server', 400, send({ ...good, to: url.replace(/\?.*/, '') })],
    ['unknown server', 404, send({ ...good, to: url.replace('test', 'no') })],
    ['unknown server', 404, send({ ...good, to: url.replace('test', '..%2f..%2fhealthz') })],
    ['PUT', 404, send({ ...good, method: 'PUT' })],
  ]
  for (const [why, status, response] of refused) t.equal((await response).status, status, why)
  const headers = { authorization: `Bearer ${TRY_TOKEN}`, 'content-type': 'application/json', ...MODERN }
  const statusOf = (method: string, more: Record<string, string>) =>
    new Promise<number | undefined>((resolve, reject) => {
      const sent = httpRequest(at, { method, headers: { ...headers, ...more } }, (answer) => {
        answer.resume()
        resolve(answer.statusCode)
      })
      sent.on('error', reject)
      sent.end(CALL)
    })
  t.equal(await statusOf('GET', { 'content-length': String(CALL.length) }), 400)
  t.equal(await statusOf('DELETE', { 'content-length': String(CALL.length) }), 400)
  t.equal(await statusOf('POST', { host: 'evil.example', 'content-length': String(CALL.length) }), 403)
  t.same((await read('calls')).calls, [], 'nothing was called')

  t.equal((await send(good)).status, 200, 'the same call passes if nothing is wrong with it')
  t.equal((await read('calls')).calls.length, 1)
})

t.test('tells viewers whether they may call, and the targets', async (t) => {
  const { server } = legacyStdio(t)
  const off = await start(t, server, { mayTry: false })
  t.equal((await off.send({ body: CALL, headers: MODERN })).status, 403)
  t.match(await off.read('servers'), { try: { allowed: false, why: /"try": true/ } })

  const separate = await start(t, server, { tryToken: TRY_TOKEN })
  t.match(await separate.read('servers'), { try: { allowed: false, why: /inspect\.tryToken/ } })
  const { at } = separate
  const caller = await fetch(`${at}/servers`, { headers: { authorization: `Bearer ${TRY_TOKEN}` } })
  t.match(await caller.json(), { try: { allowed: true }, targets: [{ name: 'test', kind: 'server' }] })
})

t.test('policies, the log and the audit log see the call, and the call needs no token of a client', async (t) => {
  const folder = temporaryFolder(t)
  const settings = {
    auth: { tokens: { alice: 'a-secret-of-alice-123' } },
    audit: { file: `${folder}/audit.jsonl` },
    log: { calls: 'all' },
  }
  const entry = { ...legacyStdio(t).server, tools: { deny: ['progress'] } }
  const { send, log, bridge } = await start(t, entry, {}, settings)
  t.match(await (await send({ body: CALL, headers: MODERN })).text(), /hello/)
  const hidden = messages.call('progress', {})
  t.match(await (await send({ body: hidden, headers: { ...MODERN, 'mcp-name': 'progress' } })).text(), /error/)
  await until(() => log.some((line) => line['principal'] === 'inspector'), 'the log names the principal')
  await bridge.close()
  const { readFileSync } = await import('node:fs')
  t.match(readFileSync(`${folder}/audit.jsonl`, 'utf8'), /"inspector"/)
})

t.test('calls the servers and groups of now, also after a reload', async (t) => {
  const { server } = legacyStdio(t)
  const { send, at, bridge } = await start(t, server)
  t.equal((await send({ body: CALL, headers: MODERN })).status, 200)
  await bridge.reload(settingsOf({ mcpServers: { other: server }, groups: { all: { servers: ['other'] } } }))
  t.equal((await send({ body: CALL, headers: MODERN })).status, 404)
  t.equal((await send({ to: `${at}/try?server=other`, body: CALL, headers: MODERN })).status, 200)
  const grouped = { to: `${at}/try?server=all`, body: CALL, headers: MODERN }
  t.match(await (await send(grouped)).text(), /hello/)
})

t.test('a bridge on stdio can be called through its socket', { skip: process.platform === 'win32' }, async (t) => {
  const folder = temporaryFolder(t)
  const inspector = inspectorFor({ folder })
  const context = { inspector, recorder: inspector.recorder }
  const { bridge } = createBridge(t, legacyStdio(t).server, { listen: 'stdio' }, context)
  const input = new PassThrough()
  const served = bridge.pipe({ input, output: new PassThrough() })
  const socketPath = `${folder}/${process.pid}.sock`
  const { existsSync } = await import('node:fs')
  await until(() => existsSync(socketPath), 'the socket is there')
  const text = await new Promise<string>((resolve, reject) => {
    const headers = { ...JSON_AND_EVENTS, ...MODERN, 'content-type': 'application/json' }
    const options = { socketPath, path: '/inspect/try?server=test', method: 'POST', headers }
    const sent = httpRequest(options, (answer) => {
      let all = ''
      answer.on('data', (chunk) => {
        all += String(chunk)
      })
      answer.on('end', () => resolve(all))
    })
    sent.on('error', reject)
    sent.end(CALL)
  })
  t.match(text, /hello/)
  input.end()
  await served
})
