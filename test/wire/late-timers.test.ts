/**
 * The bridge stands still, with its machine or by SIGSTOP, and goes on after a time limit: what has arrived meanwhile counts. Node
 * then runs timers first. Here everything happens in one turn of the event loop: the answer arrives, and the timers run.
 */
import { writeFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { startBridge } from '../support/bridge.js'
import { holdTimers } from '../support/clock.js'
import { until } from '../support/eventually.js'
import { temporaryFolder } from '../support/folder.js'
import { LegacyClient } from '../support/legacy-client.js'
import { LegacyHttp } from '../support/legacy-http.js'
import { LegacySse } from '../support/legacy-sse.js'
import { type Answer, call } from '../support/modern.js'
import { ModernHttp } from '../support/modern-http.js'
import type { Transcript } from '../support/transcript.js'
import { unkind } from '../support/unkind.js'

type Json = Record<string, unknown>

/** Time limits that no other timer has. */
const LIMIT = 1_234_567
const INITIALIZE = 2_345_678
/** Milliseconds for which an incomplete line may stand still. */
const STILL = 30_000
const DONE = { content: [{ type: 'text', text: 'done' }] }

interface Held {
  server: object
  params: Json
  /** The request has arrived. */
  hasAsked(): boolean
  /** Answers, and returns when the answer is where the bridge can read it. */
  answer(): void
}

const isFor = (name: string) => (message: Json | undefined) => message?.['method'] === name

/** A server over HTTP that holds an answer. Written answers are in the socket at once. */
function held(response: ServerResponse | undefined, text: string, type: string): void {
  response?.writeHead(200, { 'content-type': type }).end(type === 'application/json' ? text : `data: ${text}\n\n`)
}

async function legacyHttp(t: Test, type: string, method = 'tools/call'): Promise<Held> {
  let response: ServerResponse | undefined
  let id: unknown
  const http = await LegacyHttp.start(t, {
    sessions: false,
    override: ({ message }, given) => {
      if (!isFor(method)(message) || response) return false
      response = given
      id = message['id']
      return true
    },
  })
  const capabilities = { tools: {} }
  const welcome = { protocolVersion: '2025-06-18', capabilities, serverInfo: { name: 'held', version: '1' } }
  return {
    server: { url: http.url },
    params: { name: 'echo', arguments: {} },
    hasAsked: () => response !== undefined,
    answer: () => {
      const result = method === 'initialize' ? welcome : DONE
      held(response, JSON.stringify({ jsonrpc: '2.0', id, result }), type)
    },
  }
}

async function modernHttp(t: Test): Promise<Held> {
  let response: ServerResponse | undefined
  let id: unknown
  const http = await ModernHttp.start(t, {
    override: ({ message }, given) => {
      if (!isFor('tools/call')(message)) return false
      response = given
      id = message?.['id']
      return true
    },
  })
  const result = { ...DONE, resultType: 'complete' }
  return {
    server: { url: http.url },
    params: { name: 'echo', arguments: {} },
    hasAsked: () => response !== undefined,
    answer: () => held(response, JSON.stringify({ jsonrpc: '2.0', id, result }), 'application/json'),
  }
}

async function sse(t: Test): Promise<Held> {
  const server = await LegacySse.start(t)
  const asked = () => server.received.find(({ message }) => isFor('tools/call')(message))
  return {
    server: { url: server.url, transport: 'sse' },
    params: { name: 'wait', arguments: { ms: 600_000 } },
    hasAsked: () => asked() !== undefined,
    answer: () => server.push({ jsonrpc: '2.0', id: asked()?.message['id'], result: DONE }),
  }
}

/** Waits without a turn of the event loop. */
function blockUntil(isTrue: () => boolean): void {
  const cell = new Int32Array(new SharedArrayBuffer(4))
  while (!isTrue()) Atomics.wait(cell, 0, 0, 20)
}

function program(t: Test, more: object = {}): Held & Transcript {
  const { server, ...transcript } = unkind(t)
  const file = join(temporaryFolder(t), 'go')
  return {
    ...transcript,
    server,
    params: { name: 'gated', arguments: { ...more, file } },
    hasAsked: () => transcript.messages().some(isFor('tools/call')),
    answer: () => {
      writeFileSync(file, '')
      blockUntil(() => transcript.seen().some(({ line }) => line === 'answered'))
    },
  }
}

type Asked = (params: Json) => Promise<Answer>
const modern =
  async (url: string): Promise<Asked> =>
  (params) =>
    call(url, 'tools/call', params)
async function legacy(url: string): Promise<Asked> {
  const client = await LegacyClient.open(url)
  return (params) => client.call(String(params['name']), params['arguments'] as Json)
}

const LANES: readonly [name: string, start: (t: Test) => Promise<Held> | Held, open: typeof modern, limit?: number][] =
  [
    ['a modern client, a program', (t) => program(t), modern],
    ['a modern client, JSON over HTTP', (t) => legacyHttp(t, 'application/json'), modern],
    ['a modern client, events over HTTP', (t) => legacyHttp(t, 'text/event-stream'), modern],
    ['a modern client, HTTP+SSE', sse, modern],
    ['a legacy client, a modern server', modernHttp, legacy],
    ['a client that waits for a session', (t) => legacyHttp(t, 'application/json', 'initialize'), modern, INITIALIZE],
    ['half a line of a program', (t) => program(t, { half: true }), modern, STILL],
    ['half a line of a program of a legacy client', (t) => program(t, { half: true }), legacy, STILL],
  ]

t.test('an answer counts that arrived before a late time limit fires', async (t) => {
  for (const [name, start, open, limit = LIMIT] of LANES)
    await t.test(name, async (t) => {
      const server = await start(t)
      const timeouts = { call: LIMIT, initialize: INITIALIZE, write: 2 * STILL }
      const { url } = await startBridge(t, server.server, { timeouts })
      const ask = await open(url)
      // There are other limits of this length until a session is open.
      if (limit === STILL) await ask({ name: 'echo', arguments: {} })
      const time = holdTimers(t, limit)
      const answer = ask(server.params)
      await until(() => server.hasAsked() && time.waiting === 1, 'a request that waits')
      server.answer()
      time.pass()
      t.match((await answer).message, { result: { content: [] } })
    })
})

t.test('progress after the total limit ends no call whose answer arrived with it', async (t) => {
  let response: ServerResponse | undefined
  let asked: Json = {}
  const http = await LegacyHttp.start(t, {
    override: ({ message }, given) => {
      if (!isFor('tools/call')(message)) return false
      response = given
      asked = message
      return true
    },
  })
  const { url } = await startBridge(t, { url: http.url }, { timeouts: { callTotal: 1 } })
  const answer = call(url, 'tools/call', { name: 'echo', arguments: {} }, { meta: { progressToken: 'p' } })
  await until(() => response !== undefined, 'the call')
  const { _meta: meta } = asked['params'] as { _meta: { progressToken: unknown } }
  const progress = { method: 'notifications/progress', params: { progressToken: meta.progressToken, progress: 1 } }
  const events = [progress, { id: asked['id'], result: DONE }]
  const text = events.map((event) => `data: ${JSON.stringify({ jsonrpc: '2.0', ...event })}\n\n`).join('')
  response?.writeHead(200, { 'content-type': 'text/event-stream' }).end(text)
  t.match((await answer).message, { result: DONE })
})
