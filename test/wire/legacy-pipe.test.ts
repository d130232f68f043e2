/** Both eras on one pipe: each line is answered in the dialect that it came in. Numbers are those of test/invariants.md. */
import t, { type Test } from 'tap'
import { until } from '../support/eventually.js'
import { initialize } from '../support/legacy-client.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { envelope } from '../support/modern.js'
import { ModernHttp } from '../support/modern-http.js'
import { modernStdio } from '../support/modern-stdio.js'
import { openPipe, type Pipe } from '../support/pipe.js'

type Json = Record<string, unknown>

/** Writes a message without any envelope. */
function say(pipe: Pipe, message: Json): void {
  pipe.line(JSON.stringify({ jsonrpc: '2.0', ...message }))
}

async function answerTo(pipe: Pipe, id: unknown): Promise<Json> {
  const found = () => pipe.messages().find((message) => message['id'] === id && !('method' in message))
  await until(() => found() !== undefined, `an answer to ${JSON.stringify(id)}`)
  return found() as Json
}

async function ask(pipe: Pipe, id: unknown, method: string, params?: Json): Promise<Json> {
  say(pipe, { id, method, ...(params && { params }) })
  return answerTo(pipe, id)
}

/** Opens the session of the pipe. */
async function shakeHands(pipe: Pipe, revision = '2025-11-25'): Promise<Json> {
  pipe.line(initialize(revision))
  const answer = await answerTo(pipe, 'hello')
  say(pipe, { method: 'notifications/initialized' })
  return answer
}

async function servers(t: Test): Promise<[name: string, server: object, plan?: object][]> {
  return [
    ['modern over HTTP', { url: (await ModernHttp.start(t)).url }],
    ['modern on stdio', modernStdio(t, { banner: 'Welcome! {"jsonrpc":', stderr: 'noise' }).server],
    ['legacy on stdio', legacyStdio(t, { banner: 'Welcome! {"jsonrpc":', stderr: 'noise' }).server],
  ]
}

t.test('answers lines of both eras on one pipe, each in its own form', async (t) => {
  for (const [name, server] of await servers(t)) {
    const pipe = openPipe(t, server)
    t.match(await pipe.call('tools/list', {}, { id: 'm1' }), { result: { resultType: 'complete' } }, name)
    t.match(await shakeHands(pipe), { result: { protocolVersion: '2025-11-25' } }, name)
    for (let n = 0; n < 3; n++) {
      const params = { name: 'echo', arguments: { n } }
      const [legacy, modern] = await Promise.all([
        ask(pipe, `l${n}`, 'tools/call', params),
        pipe.call('tools/call', params, { id: `m${n}` }),
      ])
      t.match(legacy['result'], { structuredContent: { n } }, name)
      t.match(modern['result'], { structuredContent: { n }, resultType: 'complete' }, name)
      t.notOk('resultType' in (legacy['result'] as Json), name)
      t.notMatch(JSON.stringify(legacy), /io\.modelcontextprotocol/, name)
    }
    t.match(await ask(pipe, 'p', 'ping'), { result: {} })
    t.match(await pipe.call('ping', {}, { id: 'mp' }), { error: { code: -32601 } }, 'modern clients have no ping')
    await pipe.end()
    t.doesNotThrow(() => pipe.messages(), 'nothing but messages has come out')
  }
})

t.test('only messages are written when a server dies, and both eras continue', async (t) => {
  for (const [name, server] of await servers(t)) {
    const pipe = openPipe(t, server)
    await shakeHands(pipe)
    t.match(await ask(pipe, 1, 'tools/call', { name: 'crash' }), { error: { code: -32603 } }, name)
    t.match(await pipe.call('tools/call', { name: 'echo', arguments: {} }, { id: 'm' }), { result: {} }, name)
    await pipe.end()
    t.doesNotThrow(() => pipe.messages(), name)
  }
})

t.test('before initialize only ping works, and other requests get the reason', async (t) => {
  const modern = await ModernHttp.start(t)
  const pipe = openPipe(t, { url: modern.url })
  t.same((await ask(pipe, 1, 'ping'))['result'], {})
  t.match(await ask(pipe, 2, 'tools/list'), { error: { code: -32600 } })
  const { error } = (await ask(pipe, 3, 'subscriptions/listen')) as { error: Json }
  t.match(error, { code: -32602, data: { missing: /protocolVersion/, supported: ['2026-07-28'] } })
  say(pipe, { method: 'notifications/initialized' })
  say(pipe, { id: 5, result: {} })
  await ask(pipe, 6, 'ping')
  t.equal(pipe.messages().length, 4, 'notifications and answers are passed over')
  t.equal(modern.of('tools/list').length, 0)
})

t.test('a second initialize on a pipe opens another session, and calls of the first are answered', async (t) => {
  for (const [name, server] of await servers(t)) {
    const pipe = openPipe(t, server)
    await shakeHands(pipe)
    say(pipe, { id: 'slow', method: 'tools/call', params: { name: 'wait', arguments: { ms: 100, say: 'done' } } })
    pipe.line(initialize('2025-06-18', {}, 'again'))
    t.match(await answerTo(pipe, 'again'), { result: { protocolVersion: '2025-06-18' } }, name)
    say(pipe, { method: 'notifications/initialized' })
    t.ok((await answerTo(pipe, 'slow'))['result'], name)
    t.ok((await ask(pipe, 1, 'tools/list'))['result'], name)
    pipe.line(initialize('2025-11-25', {}, 'third'))
    t.match(await answerTo(pipe, 'third'), { result: { protocolVersion: '2025-11-25' } }, name)
    t.ok((await ask(pipe, 2, 'tools/list'))['result'], name)
  }
})

t.test('refuses an id that is open on the pipe, also in the other era', async (t) => {
  const pipe = openPipe(t, modernStdio(t).server)
  await shakeHands(pipe)
  const params = { name: 'wait', arguments: { ms: 700 } }
  say(pipe, { id: 'one', method: 'tools/call', params })
  const refusals = () => pipe.messages().filter(({ error }) => (error as Json | undefined)?.['code'] === -32600)
  say(pipe, { id: 'one', method: 'ping' })
  pipe.line(JSON.stringify({ jsonrpc: '2.0', id: 'one', method: 'tools/list', params: { _meta: envelope() } }))
  await until(() => refusals().length === 2)
  await until(() => pipe.messages().some(({ id, result }) => id === 'one' && result !== undefined))
  t.match(await ask(pipe, 'two', 'ping'), { result: {} })
})

t.test('a cancellation on the pipe reaches the server, whatever its transport', async (t) => {
  const http = await ModernHttp.start(t)
  const over = openPipe(t, { url: http.url })
  await shakeHands(over)
  say(over, { id: 5, method: 'tools/call', params: { name: 'wait', arguments: { ms: 60_000 } } })
  await until(() => http.of('tools/call').length === 1)
  say(over, { method: 'notifications/cancelled', params: { requestId: 5 } })
  await until(() => http.cancelled.some(({ message }) => message?.['method'] === 'tools/call'))
  await ask(over, 6, 'ping')
  t.notOk(
    over.messages().some(({ id }) => id === 5),
    'no answer is owed',
  )

  for (const stdio of [modernStdio(t), legacyStdio(t)]) {
    const pipe = openPipe(t, stdio.server)
    await shakeHands(pipe)
    say(pipe, { id: 5, method: 'tools/call', params: { name: 'wait', arguments: { ms: 60_000 } } })
    const sent = () => stdio.messages().find(({ method }) => method === 'tools/call')
    await until(() => sent() !== undefined)
    say(pipe, { method: 'notifications/cancelled', params: { requestId: 5, reason: 'Enough' } })
    const cancelled = () => stdio.messages().filter(({ method }) => method === 'notifications/cancelled')
    await until(() => cancelled().length === 1)
    t.match(cancelled()[0], { params: { requestId: sent()?.['id'] } })
    await ask(pipe, 6, 'ping')
    t.notOk(pipe.messages().some(({ id }) => id === 5))
  }
})

t.test('changes at the server are reported on the pipe', async (t) => {
  const modern = await ModernHttp.start(t)
  const pipe = openPipe(t, { url: modern.url })
  await shakeHands(pipe, '2024-11-05')
  await until(() => modern.subscriptions === 1)
  t.same((await ask(pipe, 1, 'resources/subscribe', { uri: 'test://static' }))['result'], {})
  modern.touch({ prompts: true, uris: ['test://static'] })
  const told = () => pipe.messages().filter(({ method }) => method !== undefined)
  await until(() => told().length === 2)
  t.same(told(), [
    { jsonrpc: '2.0', method: 'notifications/prompts/list_changed' },
    { jsonrpc: '2.0', method: 'notifications/resources/updated', params: { uri: 'test://static' } },
  ])
})

t.test('the end of the input ends the calls of the session, and its subscription', async (t) => {
  const modern = await ModernHttp.start(t)
  const pipe = openPipe(t, { url: modern.url })
  await shakeHands(pipe)
  await until(() => modern.subscriptions === 1)
  say(pipe, { id: 1, method: 'tools/call', params: { name: 'wait', arguments: { ms: 60_000 } } })
  await until(() => modern.of('tools/call').length === 1)
  await pipe.end()
  await until(() => modern.subscriptions === 0)
  await until(() => modern.cancelled.some(({ message }) => message?.['method'] === 'tools/call'))
  t.notOk(pipe.messages().some(({ id }) => id === 1))
})

t.test('answers a batch of 2025-03-26 on one line, and refuses it in other revisions', async (t) => {
  const batch = [
    { jsonrpc: '2.0', id: 'a', method: 'tools/call', params: { name: 'echo', arguments: { n: 1 } } },
    { jsonrpc: '2.0', method: 'notifications/x' },
    { jsonrpc: '2.0', id: 'b', method: 'ping' },
  ]
  for (const [name, server] of await servers(t)) {
    for (const revision of ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25']) {
      const pipe = openPipe(t, server)
      await shakeHands(pipe, revision)
      const before = pipe.messages().length
      pipe.line(JSON.stringify(batch))
      await until(() => pipe.messages().length > before, `an answer to a batch (${name}, ${revision})`)
      const answer = pipe.messages()[before] as unknown
      if (revision === '2025-03-26') {
        const answers = answer as { id: string; result: Json }[]
        t.same(answers.map(({ id }) => id).sort(), ['a', 'b'], name)
        t.match(answers.find(({ id }) => id === 'a')?.result, { content: [{ text: '{"n":1}' }] }, name)
      } else {
        t.match(answer, { error: { code: -32600 } }, `${name}, ${revision}`)
        t.notOk('id' in (answer as Json))
      }
      await pipe.end()
    }
  }
})

t.test('refuses a whole invalid batch on a pipe, with an error', async (t) => {
  const pipe = openPipe(t, modernStdio(t).server)
  await shakeHands(pipe, '2025-03-26')
  const refused = async (batch: object[]) => {
    const before = pipe.messages().length
    pipe.line(JSON.stringify(batch))
    await until(() => pipe.messages().length > before, 'an answer to a batch')
    return pipe.messages()[before]
  }
  const ping = (id: number) => ({ jsonrpc: '2.0', id, method: 'ping' })
  const many = await refused(Array.from({ length: 101 }, (_, n) => ping(n)))
  t.match(many, { error: { code: -32600 } })
  const opening = await refused([ping(1), JSON.parse(initialize('2025-03-26')) as object])
  t.match(opening, { error: { code: -32600 } })
  const empty = await refused([])
  t.match(empty, { error: { code: -32600 } })
  for (const answer of [many, opening, empty]) t.notOk('id' in (answer ?? {}))
})
