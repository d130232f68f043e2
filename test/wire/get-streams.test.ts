/** The stream that a client opens by GET, as some servers use it: for answers of calls, or not at all. */
import type { ServerResponse } from 'node:http'
import t, { type Test } from 'tap'
import { HttpTransport } from '../../src/servers/transport/http.js'
import { startBridge } from '../support/bridge.js'
import { until } from '../support/eventually.js'
import { LegacyClient } from '../support/legacy-client.js'
import { LegacyHttp, type Override } from '../support/legacy-http.js'
import { call } from '../support/modern.js'
import { openPipe } from '../support/pipe.js'
import { askOn, shakeHands } from '../support/spelled.js'

const ECHO = { name: 'echo', arguments: { x: 1 } }
const RESULT = { content: [], structuredContent: { x: 1 } }

/** How a server accepts a call that it answers elsewhere. */
const ACCEPTANCES: [name: string, accept: (response: ServerResponse) => void][] = [
  ['202', (response) => response.writeHead(202).end()],
  ['202 with a text', (response) => response.writeHead(202, { 'content-type': 'text/plain' }).end('Accepted')],
  ['202 with null', (response) => response.writeHead(202, { 'content-type': 'application/json' }).end('null')],
  ['204', (response) => response.writeHead(204).end()],
  ['200 without a body', (response) => response.writeHead(200).end()],
]

/** A server that answers calls on the stream that is open, before or after it has accepted them. */
async function answering(
  t: Test,
  accept: (response: ServerResponse) => void,
  order: 'answer last' | 'answer first' = 'answer last',
): Promise<LegacyHttp> {
  const http = await LegacyHttp.start(t, {
    override: ({ message }, response) => {
      if (message['method'] !== 'tools/call') return false
      const answer = () => http.push({ jsonrpc: '2.0', id: message['id'], result: RESULT })
      if (order === 'answer first') answer()
      response.on('finish', () => order === 'answer last' && setImmediate(answer))
      accept(response)
      return true
    },
  })
  return http
}

t.test('answers a call that was accepted with 202 on the stream of the session', async (t) => {
  for (const [name, accept] of ACCEPTANCES) {
    const http = await answering(t, accept)
    const { url } = await startBridge(t, { url: http.url })
    await call(url, 'tools/list')
    await until(() => http.streams === 1, 'the stream')
    t.match((await call(url, 'tools/call', ECHO)).message, { result: RESULT }, `modern client, ${name}`)
    const pipe = openPipe(t, { url: http.url })
    await shakeHands(pipe)
    await until(() => http.streams === 2, 'the stream')
    t.match(await askOn(pipe, 'tools/call', ECHO), { result: RESULT }, `legacy client on stdio, ${name}`)
    t.equal(http.of('tools/call').length, 2, 'nothing is sent twice')
  }
})

t.test('the answer may come before the 202', async (t) => {
  const http = await answering(t, (response) => response.writeHead(202).end(), 'answer first')
  const { url } = await startBridge(t, { url: http.url })
  await call(url, 'tools/list')
  await until(() => http.streams === 1, 'the stream')
  t.match((await call(url, 'tools/call', ECHO)).message, { result: RESULT })
})

t.test('without a stream, and when it has ended, an accepted call fails with an unknown outcome', async (t) => {
  const accepts: Override = ({ message }, response) => {
    if (message['method'] !== 'tools/call') return false
    response.writeHead(202).end()
    return true
  }
  const none = await startBridge(t, { url: (await LegacyHttp.start(t, { get: 405, override: accepts })).url })
  const unknown = (reason: string) => ({ error: { data: { reason, outcome: 'unknown' } } })
  t.match((await call(none.url, 'tools/call', ECHO)).message, unknown('upstream_protocol_error'))

  let gone = false
  const http = await LegacyHttp.start(t, {
    override: (received, response) => {
      if (!gone || received.method !== 'GET') return accepts(received, response)
      response.writeHead(405).end()
      return true
    },
  })
  const { url } = await startBridge(t, { url: http.url })
  await call(url, 'tools/list')
  await until(() => http.streams === 1, 'the stream')
  const answer = call(url, 'tools/call', ECHO)
  await until(() => http.of('tools/call').length === 1, 'the call')
  gone = true
  http.cut()
  t.match((await answer).message, unknown('upstream_closed'))
})

/** What a GET is answered with instead of a stream. */
const NO_STREAMS: [name: string, answer: (response: ServerResponse) => void][] = [
  ['JSON', (response) => response.writeHead(200, { 'content-type': 'application/json' }).end('{"ok":true}')],
  ['a page', (response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<html>Hello</html>')],
  ['a page without an end', (response) => response.writeHead(200, { 'content-type': 'text/html' }).write('<html>')],
  ['no content', (response) => response.writeHead(204).end()],
  ['202', (response) => response.writeHead(202).end()],
  ['200 without a type', (response) => response.writeHead(200).end('Hello')],
]

function withoutStream(answer: (response: ServerResponse) => void): { override: Override } {
  return {
    override: ({ method }, response) => {
      if (method !== 'GET') return false
      answer(response)
      return true
    },
  }
}

t.test('a server that answers a GET with anything else has no stream, and offers no changes', async (t) => {
  for (const [name, answer] of NO_STREAMS) {
    const http = await LegacyHttp.start(t, withoutStream(answer))
    const { url } = await startBridge(t, { url: http.url })
    const { message } = await call(url, 'server/discover')
    t.match(message.result, { capabilities: { tools: {} } }, name)
    t.notMatch(message.result, { capabilities: { tools: { listChanged: true } } }, name)
  }
})

t.test('does not repeat such a GET in the session', async (t) => {
  const ignored = { receive() {}, dropped() {}, stalled() {}, streamLost() {}, missed() {}, ended() {} }
  const receiver = { ...ignored, isWaiting: () => false }
  for (const [name, answer] of NO_STREAMS) {
    const http = await LegacyHttp.start(t, withoutStream(answer))
    const transport = new HttpTransport({ url: new URL(http.url) })
    t.teardown(() => transport.close(true))
    const channel = await transport.open()
    channel.attach(receiver)
    t.equal(await channel.listen?.({}), false, `${name}: the channel has given up`)
    t.equal(http.received.length, 1, name)
  }
})

t.test('a stream that gets a web page instead of a resumption ends its call', async (t) => {
  const http = await LegacyHttp.start(t, {
    override: ({ message, method }, response) => {
      if (method === 'GET') response.writeHead(200, { 'content-type': 'text/html' }).end('<html>')
      if (message['method'] === 'tools/call')
        response.writeHead(200, { 'content-type': 'text/event-stream' }).end('id: 1\nretry: 100\ndata: \n\n')
      return method === 'GET' || message['method'] === 'tools/call'
    },
  })
  const { url } = await startBridge(t, { url: http.url })
  t.match((await call(url, 'tools/call', ECHO)).message, { error: { data: { outcome: 'unknown' } } })
})

t.test('a client of a direct session gets 405 for such a GET, so that it does not repeat it', async (t) => {
  for (const [name, answer] of NO_STREAMS) {
    const http = await LegacyHttp.start(t, withoutStream(answer))
    const { url } = await startBridge(t, { url: http.url })
    const client = await LegacyClient.open(url)
    const stream = await client.listen()
    await until(() => stream.over, 'the answer')
    t.match({ status: stream.status, allow: stream.headers.allow }, { status: 405, allow: /POST/ }, name)
    t.match((await client.call('echo', { x: 1 })).message.result, { structuredContent: { x: 1 } }, name)
  }
})
