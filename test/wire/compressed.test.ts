/** Answers that are compressed although the bridge asks for none, as by a proxy before the server. */
import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Transform } from 'node:stream'
import { constants, createBrotliCompress, createDeflate, createGzip, gzipSync } from 'node:zlib'
import t, { type Test } from 'tap'
import { startBridge } from '../support/bridge.js'
import { callers } from '../support/callers.js'
import { LegacyHttp } from '../support/legacy-http.js'
import { LegacySse, PATHS } from '../support/legacy-sse.js'
import { listenUntilEnd } from '../support/listen-until-end.js'
import { call, send } from '../support/modern.js'
import { ModernHttp } from '../support/modern-http.js'
import { PlainHttp, sendText } from '../support/plain-http.js'

const ECHO = { name: 'echo', arguments: { x: 'é'.repeat(100_000) } }
const ECHOED = { result: { structuredContent: ECHO.arguments } }

const FLUSHED = { flush: constants.Z_SYNC_FLUSH }
const gzip = () => [createGzip(FLUSHED)]
const ENCODINGS: Record<string, () => Transform[]> = {
  deflate: () => [createDeflate(FLUSHED)],
  br: () => [createBrotliCompress({ flush: constants.BROTLI_OPERATION_FLUSH })],
  'deflate, gzip': () => [createDeflate(FLUSHED), createGzip(FLUSHED)],
}

const servers: Record<string, (t: Test) => Promise<string>> = {
  'a legacy server with JSON': async (t) => (await LegacyHttp.start(t)).url,
  'a legacy server with streams': async (t) => (await LegacyHttp.start(t, { streams: true })).url,
  'a modern server': async (t) => (await ModernHttp.start(t)).url,
}

for (const [what, start] of Object.entries(servers))
  t.test(`decodes unrequested gzip of ${what} for every client`, async (t) => {
    const server = await compressing(t, await start(t), 'gzip', gzip)
    for (const [name, connect] of Object.entries(callers)) {
      const ask = await connect(t, server)
      t.match(await ask(ECHO), ECHOED, name)
    }
  })

for (const [encoding, encoders] of Object.entries(ENCODINGS))
  t.test(`decodes ${encoding}, in answers that pass unchanged and in translated ones`, async (t) => {
    for (const [what, start] of Object.entries(servers)) {
      const ask = await callers.modern(t, await compressing(t, await start(t), encoding, encoders))
      t.match(await ask?.(ECHO), ECHOED, what)
    }
  })

t.test('decodes the stream of a server over HTTP+SSE as it arrives', async (t) => {
  const sse = new URL((await LegacySse.start(t)).url)
  const server = await compressing(t, sse.origin + PATHS.stream, 'gzip', gzip)
  const { url } = await startBridge(t, { url: server, type: 'sse' })
  t.match((await call(url, 'tools/call', ECHO)).message, ECHOED)
})

t.test('an answer that passes unchanged has no header of its former encoding', async (t) => {
  const server = await compressing(t, (await ModernHttp.start(t)).url, 'gzip', gzip)
  const { url, bridge } = await startBridge(t, { url: server })
  await bridge.server.warmUp()
  const answer = await call(url, 'tools/call', ECHO)
  t.match(answer.message, ECHOED)
  t.equal(answer.headers['content-encoding'], undefined)
})

t.test('decodes errors of the server, too', async (t) => {
  const { url, answer } = await plain(t)
  answer((id, response) => {
    const text = `{"jsonrpc":"2.0","id":${id},"error":{"code":-32050,"message":"It is full"}}`
    const headers = { 'content-type': 'application/json', 'content-encoding': 'gzip' }
    response.writeHead(500, headers).end(gzipSync(text))
  })
  for (const one of Object.values(url))
    t.match((await call(one, 'tools/call', ECHO)).message.error, { message: 'It is full' })
})

t.test('counts the bytes after decoding', async (t) => {
  const { url, answer } = await plain(t, { limits: { answerBytes: 100_000 } })
  const bomb = gzipSync(Buffer.alloc(100_000_000, ' '))
  answer((_id, response) =>
    response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' }).end(bomb),
  )
  for (const one of Object.values(url))
    t.match((await call(one, 'tools/call', ECHO)).message.error, {
      message: /more than 100000 bytes \(limits.answerBytes\)/,
    })
})

t.test('an unknown or wrong encoding is an error of the server in every lane', async (t) => {
  const { url, answer } = await plain(t)
  const bodies = { 'x-unknown': Buffer.from('{}'), gzip: Buffer.from('{"jsonrpc":"2.0"}') }
  for (const [encoding, body] of Object.entries(bodies)) {
    answer((_id, response) =>
      response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': encoding }).end(body),
    )
    for (const [lane, one] of Object.entries(url)) {
      const refused = await call(one, 'tools/call', ECHO)
      t.match(refused, { status: 200, headers: { 'mcp-bridge-error': 'upstream_protocol_error' } }, lane)
      t.match(refused.message.error, { message: /encod|compressed/, data: { outcome: 'unknown' } }, lane)
    }
  }
})

t.test('does not decode an answer without a body at an extra path', async (t) => {
  const files = createServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/plain', 'content-encoding': 'gzip' }).end(gzipSync('hello'))
  })
  await listenUntilEnd(t, files)
  const server = `http://127.0.0.1:${(files.address() as AddressInfo).port}/mcp`
  const { url } = await startBridge(t, { url: server, paths: ['/files/*'] })
  t.equal((await send('HEAD', new URL('/files/x', url).href, undefined, {})).status, 200)
})

t.test(
  'an event stream of an extra path must not be gathered, whatever the server says about storing it',
  async (t) => {
    const news = createServer((_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'max-age=5' }).end('data: {}\n\n')
    })
    await listenUntilEnd(t, news)
    const server = `http://127.0.0.1:${(news.address() as AddressInfo).port}/mcp`
    const { url } = await startBridge(t, { url: server, paths: ['/news/*'] })
    const { headers } = await send('GET', new URL('/news/x', url).href, undefined, {})
    t.match(headers, { 'cache-control': 'no-store, no-transform', 'x-accel-buffering': 'no' })
  },
)

/** Two servers that answer calls as a test says, behind bridges: one passes the answers on to modern clients, one translates them. */
async function plain(t: Test, settings: object = {}) {
  let say = (_id: unknown, _response: ServerResponse): unknown => undefined
  const modern = await PlainHttp.start(t, ({ message }, response) => {
    const id = JSON.stringify(message?.['id'])
    if (message?.['method'] === 'tools/call') return void say(id, response)
    sendText(response, `{"jsonrpc":"2.0","id":${id},"result":${DISCOVERED}}`)
  })
  const legacy = await PlainHttp.start(t, ({ message, method }, response) => {
    const id = JSON.stringify(message?.['id'])
    if (method !== 'POST') return void response.writeHead(405).end()
    if (message?.['method'] === 'tools/call') return void say(id, response)
    if (message?.['method'] === 'initialize')
      return sendText(response, `{"jsonrpc":"2.0","id":${id},"result":${OPENED}}`)
    if (id === undefined) return void response.writeHead(202).end()
    sendText(response, `{"jsonrpc":"2.0","id":${id},"error":{"code":-32601,"message":"no"}}`, {}, 404)
  })
  const [unchanged, translated] = [
    await startBridge(t, { url: modern.url }, settings),
    await startBridge(t, { url: legacy.url }, settings),
  ]
  await Promise.all([unchanged.bridge.server.warmUp(), translated.bridge.server.warmUp()])
  return {
    url: { unchanged: unchanged.url, translated: translated.url },
    answer: (how: (id: unknown, response: ServerResponse) => unknown) => {
      say = how
    },
  }
}

const DISCOVERED =
  '{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}'
const OPENED = '{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"n","version":"1"}}'

/** A proxy that compresses whatever a server answers, also where there is nothing to compress. Returns its address. */
async function compressing(t: Test, target: string, encoding: string, encoders: () => Transform[]): Promise<string> {
  const pass = (from: IncomingMessage, to: ServerResponse) => {
    const { method, url = '', headers } = from
    const asked = httpRequest(new URL(url, target), { method, headers, agent: false }, (answer) => {
      const { 'content-length': _length, ...others } = answer.headers
      to.writeHead(answer.statusCode ?? 0, { ...others, 'content-encoding': encoding })
      to.flushHeaders()
      if (answer.statusCode === 202 || answer.statusCode === 204) return void to.end()
      const last = encoders().reduce<NodeJS.ReadableStream>((stream, encoder) => stream.pipe(encoder), answer)
      last.pipe(to)
    })
    asked.on('error', () => to.destroy())
    to.on('close', () => asked.destroy())
    from.pipe(asked)
  }
  const proxy = createServer(pass)
  await listenUntilEnd(t, proxy)
  return `http://127.0.0.1:${(proxy.address() as AddressInfo).port}${new URL(target).pathname}`
}
