/** Servers that speak another era after a restart than before. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { execPath } from 'node:process'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { startBridge } from '../support/bridge.js'
import { temporaryFolder } from '../support/folder.js'
import { LegacyClient } from '../support/legacy-client.js'
import { ACKNOWLEDGED, changed, hears, listen } from '../support/listening.js'
import { call } from '../support/modern.js'
import { type HttpPlan, ModernHttp } from '../support/modern-http.js'
import { openPipe } from '../support/pipe.js'
import { SseClient } from '../support/sse-client.js'

type Json = Record<string, unknown>
type Era = 'legacy' | 'modern'

const script = fileURLToPath(new URL('../fixtures/turning-stdio.mjs', import.meta.url))
const OTHER = { legacy: 'modern', modern: 'legacy' } as const
const ECHO = { name: 'echo', arguments: { x: 1 } }
const ECHOED = { result: { content: [{ text: '{"x":1}' }] } }

/** A program that speaks `from`, and the other era from its next start on. */
async function startProgram(t: Test, from: Era) {
  const era = join(temporaryFolder(t), 'era')
  writeFileSync(era, from)
  const started = await startBridge(t, { command: execPath, args: [script, JSON.stringify({ era })] })
  return { ...started, turn: () => writeFileSync(era, OTHER[from]) }
}

for (const from of ['legacy', 'modern'] as const) {
  t.test(`the next call notices that a ${from} program was restarted with the other era`, async (t) => {
    const { url, bridge, turn } = await startProgram(t, from)
    t.match((await call(url, 'tools/call', ECHO)).message, ECHOED)
    turn()
    await call(url, 'tools/call', { name: 'crash', arguments: {} })
    t.match((await call(url, 'tools/call', ECHO)).message, ECHOED)
    t.equal(bridge.server.verdict?.era, OTHER[from])
  })

  t.test(`the next session of a legacy client of a ${from} program has its new era`, async (t) => {
    const { url, bridge, turn } = await startProgram(t, from)
    const client = await LegacyClient.open(url)
    t.match((await client.call('echo', { x: 1 })).message, ECHOED)
    turn()
    await client.call('crash')
    const next = await LegacyClient.open(url)
    t.match((await next.call('echo', { x: 1 })).message, ECHOED)
    t.equal(bridge.server.verdict?.era, OTHER[from])
  })

  t.test(
    `a subscription that begins with a ${from} program that has just changed its era is answered in the new one`,
    async (t) => {
      const { url, bridge, turn } = await startProgram(t, from)
      t.match((await call(url, 'tools/call', ECHO)).message, ECHOED)
      turn()
      await call(url, 'tools/call', { name: 'crash', arguments: {} })
      const stream = await listen(url, { toolsListChanged: true })
      await stream.has(1)
      t.match(stream.messages, [{ method: ACKNOWLEDGED }])
      t.equal(bridge.server.verdict?.era, OTHER[from])
    },
  )
}

t.test('a subscription with a modern program continues when the program becomes legacy', async (t) => {
  const { url, bridge, turn } = await startProgram(t, 'modern')
  const stream = await listen(url, { toolsListChanged: true })
  await stream.has(1)
  turn()
  await call(url, 'tools/call', { name: 'crash', arguments: {} })
  t.same(await hears(stream, 1), [changed('tools')], 'what has changed meanwhile is not known')
  t.equal(bridge.server.verdict?.era, 'legacy')
  t.match(stream.messages[0], { method: ACKNOWLEDGED })
})

function refuse(response: Parameters<NonNullable<HttpPlan['override']>>[1], status: number, id: unknown, error?: Json) {
  response.writeHead(status, { 'content-type': error ? 'application/json' : 'text/plain' })
  response.end(error ? JSON.stringify({ jsonrpc: '2.0', id, error }) : 'Bad Request')
  return true
}

/** How legacy servers refuse what is modern. */
const REFUSALS: [name: string, status: number, error?: Json][] = [
  ['a session that is missing', 400, { code: -32000, message: 'Bad Request: No valid session ID provided' }],
  ['no handshake', 400, { code: -32600, message: 'Received request before initialization was complete' }],
  [
    'a version that a server of the first SDK without sessions does not know',
    400,
    { code: -32000, message: 'Bad Request: Unsupported protocol version: 2026-07-28 (supported versions: 2025-11-25)' },
  ],
  ['an error of its own', 400, { code: -32001, message: 'No' }],
  ['404 without a word', 404],
  ['400 without a word', 400],
  ['415 without a word', 415],
]

/** A server of both eras that is modern until it refuses what is modern. */
async function startTurning(t: Test, [, status, error]: (typeof REFUSALS)[number]) {
  let turned = false
  const server = await ModernHttp.start(t, {
    dual: 'session',
    override: ({ era, message }, response) => {
      const method = message?.['method']
      if (!turned) return era === 'legacy' && refuse(response, 400, message?.['id'], { code: -32022, message: 'm' })
      return era === 'modern' && method !== undefined && refuse(response, status, message?.['id'], error)
    },
  })
  const turn = () => {
    turned = true
  }
  return { server, turn }
}

t.test('probes a modern server that became legacy at once, whatever error it gives', async (t) => {
  for (const refusal of REFUSALS) {
    const [name] = refusal
    const { server, turn } = await startTurning(t, refusal)
    const pipe = openPipe(t, { url: server.url })
    t.match(await pipe.call('tools/call', ECHO, { id: 1 }), ECHOED)
    const { url } = await startBridge(t, { url: server.url })
    const client = await LegacyClient.open(url)
    t.match((await client.call('echo', { x: 1 })).message, ECHOED)
    turn()
    t.match(await pipe.call('tools/call', ECHO, { id: 2 }), ECHOED, `${name}: a modern client on a pipe`)
    t.match((await client.call('echo', { x: 1 })).message, ECHOED, `${name}: a legacy client over HTTP`)
    t.equal(pipe.bridge.server.verdict?.era, 'legacy', name)
  }
})

t.test(
  'a server whose era has not changed answers for itself: it is probed, and the call is not repeated',
  async (t) => {
    for (const [name, status, error] of REFUSALS) {
      const server = await ModernHttp.start(t, {
        override: ({ message }, response) =>
          message?.['method'] === 'tools/call' && refuse(response, status, message['id'], error),
      })
      const pipe = openPipe(t, { url: server.url })
      await pipe.call('tools/list', {}, { id: 1 })
      const answer = await pipe.call('tools/call', ECHO, { id: 2 })
      t.match(answer, { error: error ?? { code: -32603, data: { httpStatus: status } } }, name)
      t.equal(server.of('tools/call').length, 1, name)
      t.equal(server.of('server/discover').length, 2, name)
      t.equal(pipe.bridge.server.verdict?.era, 'modern', name)
    }
  },
)

t.test(
  'a legacy server that became modern ends the sessions of clients over HTTP+SSE, which open others',
  async (t) => {
    let turned = false
    const server = await ModernHttp.start(t, {
      dual: 'session',
      override: ({ era, message }, response) => {
        const data = { supported: ['2026-07-28'], requested: '2025-11-25' }
        if (turned)
          return era === 'legacy' && refuse(response, 400, message?.['id'], { code: -32022, message: 'm', data })
        return era === 'modern' && refuse(response, 404, message?.['id'], { code: -32601, message: 'm' })
      },
    })
    const { url, bridge } = await startBridge(t, { url: server.url })
    const client = await SseClient.open(url, '2025-11-25')
    t.match(await client.request('tools/call', ECHO), ECHOED)
    turned = true
    t.match(await client.request('tools/call', ECHO), { error: { data: { outcome: 'not_executed' } } })
    const next = await SseClient.open(url, '2025-11-25')
    t.match(await next.request('tools/call', ECHO), ECHOED)
    t.equal(bridge.server.verdict?.era, 'modern')
  },
)
