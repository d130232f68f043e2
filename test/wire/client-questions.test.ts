/**
 * Modern servers that ask something, and legacy clients that are asked it in the middle of their call. Numbers are those of
 * test/invariants.md.
 */
import t, { type Test } from 'tap'
import {
  answered,
  asked,
  connect,
  converse,
  EVERYTHING,
  FRONTS,
  httpClient,
  type Opening,
  questions,
  type Replies,
} from '../support/asked-clients.js'
import { startBridge } from '../support/bridge.js'
import type { EventStream } from '../support/events.js'
import { until } from '../support/eventually.js'
import { besideTheQuestion, LegacyClient } from '../support/legacy-client.js'
import { ModernHttp } from '../support/modern-http.js'
import { modernStdio } from '../support/modern-stdio.js'
import { problems } from '../support/schema.js'

type Json = Record<string, unknown>

const NAME = {
  method: 'elicitation/create',
  params: {
    mode: 'form',
    message: 'Name?',
    requestedSchema: { type: 'object', properties: { name: { type: 'string' } } },
  },
}
const PAGE = { method: 'elicitation/create', params: { mode: 'url', message: 'Look', url: 'https://example.com/' } }
const MODEL = {
  method: 'sampling/createMessage',
  params: { messages: [{ role: 'user', content: { type: 'text', text: 'Capital?' } }], maxTokens: 9 },
}
const ROOTS = { method: 'roots/list' }

const ADA = { action: 'accept', content: { name: 'Ada' } }
const PARIS = { role: 'assistant', model: 'm', content: { type: 'text', text: 'Paris' } }
const FOLDERS = { roots: [{ uri: 'file:///a' }] }
const REPLIES: Replies = {
  'elicitation/create': () => ({ result: ADA }),
  'sampling/createMessage': () => ({ result: PARIS }),
  'roots/list': () => ({ result: FOLDERS }),
}
const ask = (...rounds: unknown[]) => ({ name: 'ask', arguments: { rounds } })
const told = ({ result }: { result?: Json }) => result?.['structuredContent']

interface Server {
  entry: object
  /** Calls of tools that have reached it. */
  calls(): Json[]
  /** All that is not as it has to be. */
  violations(): unknown[]
}

const SERVERS = {
  'over HTTP': async (t: Test): Promise<Server> => {
    const modern = await ModernHttp.start(t)
    return {
      entry: { url: modern.url },
      calls: () => modern.of('tools/call').map(({ message = {} }) => message),
      violations: () => besideTheQuestion(modern.violations()),
    }
  },
  'over stdio': async (t: Test): Promise<Server> => {
    const { server, messages, violations } = modernStdio(t)
    const calls = () => messages().filter(({ method }) => method === 'tools/call')
    return { entry: server, calls, violations: () => besideTheQuestion(violations()) }
  },
}

const paramsOf = (call: Json | undefined) => (call?.['params'] ?? {}) as Json

for (const [where, startServer] of Object.entries(SERVERS)) {
  for (const front of FRONTS) {
    const pair = `a client over ${front} of a server ${where}`
    const start = async (t: Test, opening: Opening = {}) => {
      const server = await startServer(t)
      return { server, client: await connect(t, front, server.entry, opening) }
    }

    t.test(`a server's question reaches ${pair} in its call, which is repeated with the answer`, async (t) => {
      const { server, client } = await start(t)
      await client.begin('call', 'tools/call', ask({ 'the name': NAME }))
      const [question] = await asked(client, 'call', 1)
      t.match(question, { jsonrpc: '2.0', method: NAME.method, params: NAME.params })
      t.ok(Number.isInteger(question?.id) && Number(question?.id) >= 1)
      t.same(problems('2025-11-25', 'ElicitRequest', question), [])
      t.equal(server.calls().length, 1)
      const extra = { resultType: 'complete', other: 1, _meta: { 'io.modelcontextprotocol/serverInfo': {}, 'v/k': 1 } }
      await client.say({ id: question?.id, result: { ...ADA, ...extra } })
      const answer = await answered(client, 'call')
      t.same(told(answer), { 'the name': { ...ADA, _meta: { 'v/k': 1 } } })
      t.notMatch(JSON.stringify(client.heard('call')), /resultType|requestState|inputRequests/)
      const [first, second] = server.calls()
      t.equal(server.calls().length, 2)
      t.not(second?.['id'], first?.['id'])
      const { inputResponses, requestState, _meta: _, ...rest } = paramsOf(second)
      t.same(Object.keys(inputResponses as Json), ['the name'])
      t.type(requestState, 'string')
      t.same(rest, ask({ 'the name': NAME }), 'nothing else of it has changed')
      t.same(server.violations(), [])
    })

    t.test(`asks ${pair} everything that it has declared, as often as needed`, async (t) => {
      const { server, client } = await start(t)
      const rounds = ask({ name: NAME }, { model: MODEL, roots: ROOTS }, { again: NAME, page: PAGE })
      const { answer, asked: all } = await converse(client, 1, rounds, REPLIES)
      const page = { action: 'accept' }
      t.same(told(answer), { name: ADA, model: PARIS, roots: FOLDERS, again: ADA, page })
      t.equal(all.length, 5)
      t.equal(new Set(all.map(({ id }) => id)).size, 5, 'under ids of their own')
      t.match(all.find(({ params }) => params?.['mode'] === 'url')?.params, { elicitationId: String })
      t.equal(server.calls().length, 4)
      const stateless = await converse(client, 2, { name: 'ask-stateless', arguments: {} }, REPLIES)
      t.same(told(stateless.answer), { name: ADA })
      t.notOk('requestState' in paramsOf(server.calls().at(-1)), 'no state where none was given')
      t.same(server.violations(), [])
    })

    t.test(`${pair} may answer under the id as a string`, async (t) => {
      const { client } = await start(t)
      await client.begin('call', 'tools/call', ask({ 'the name': NAME }))
      const [question] = await asked(client, 'call', 1)
      await client.say({ id: String(question?.id), result: ADA })
      t.same(told(await answered(client, 'call')), { 'the name': ADA })
    })

    t.test(`concurrent calls of ${pair} are separate`, async (t) => {
      const { server, client } = await start(t)
      const rounds = (n: number) => [
        { p: { ...MODEL, params: { ...MODEL.params, systemPrompt: `call ${n}, first` } } },
        { q: { ...NAME, params: { ...NAME.params, message: `call ${n}, then` } }, r: ROOTS },
        { s: { ...MODEL, params: { ...MODEL.params, systemPrompt: `call ${n}, last` } } },
      ]
      const ids = [0, 1, '1', 'x']
      await Promise.all(ids.map((id, n) => client.begin(id, 'tools/call', ask(...rounds(n)))))
      const seen = new Set<number>()
      const done = (id: unknown) => client.heard(id).some((message) => message['id'] === id && !('method' in message))
      while (!ids.every(done)) {
        const open = () => ids.flatMap((id) => questions(client, id)).filter(({ id }) => !seen.has(id))
        await until(() => open().length > 0 || ids.every(done), 'the next question')
        for (const { id, method, params } of open().reverse()) {
          if (seen.has(id)) continue
          seen.add(id)
          const about = String(params?.['systemPrompt'] ?? params?.['message'])
          const replies: Record<string, Json> = {
            'sampling/createMessage': { ...PARIS, model: about },
            'elicitation/create': { action: 'accept', content: { name: about } },
            'roots/list': FOLDERS,
          }
          await client.say({ id, result: replies[method] })
        }
      }
      for (const [n, id] of ids.entries()) {
        t.same(told(await answered(client, id)), {
          p: { ...PARIS, model: `call ${n}, first` },
          q: { action: 'accept', content: { name: `call ${n}, then` } },
          r: FOLDERS,
          s: { ...PARIS, model: `call ${n}, last` },
        })
      }
      t.same(server.violations(), [])
    })

    t.test(`an invalid answer of ${pair} is not an answer`, async (t) => {
      const { server, client } = await start(t)
      const error = { code: -1, message: 'I would rather not' }
      const no: Replies = { ...REPLIES, 'elicitation/create': () => ({ error }) }
      const dismissed = await converse(client, 1, ask({ name: NAME }), no)
      t.same(told(dismissed.answer), { name: { action: 'cancel' } })
      for (const [n, nonsense] of [{}, { action: 'maybe' }, { action: 'accept', content: { a: {} } }].entries()) {
        const replies: Replies = { 'elicitation/create': () => ({ result: nonsense }) }
        const { answer } = await converse(client, `n${n}`, ask({ name: NAME }), replies)
        t.same(told(answer), { name: { action: 'cancel' } }, JSON.stringify(nonsense))
      }
      const before = server.calls().length
      const rows: [question: object, replies: Replies, text: RegExp][] = [
        [MODEL, { 'sampling/createMessage': () => ({ error }) }, /rather not/],
        [ROOTS, { 'roots/list': () => ({ error }) }, /rather not/],
        [MODEL, { 'sampling/createMessage': () => ({ result: { role: 'assistant' } }) }, /an invalid answer/],
        [ROOTS, { 'roots/list': () => ({ result: { roots: [7] } }) }, /an invalid answer/],
      ]
      for (const [n, [question, replies, text]] of rows.entries()) {
        const { answer } = await converse(client, `m${n}`, ask({ q: question }), replies)
        t.match(answer.result, { isError: true, content: [{ type: 'text', text }] })
      }
      t.equal(server.calls().length, before + rows.length, 'it is not called again')
      t.same(server.violations(), [])
    })

    t.test(`${pair} that cancels its call during a question ends it`, async (t) => {
      const { server, client } = await start(t)
      await client.begin('a', 'tools/call', ask({ name: NAME, other: NAME }))
      const [question] = await asked(client, 'a', 1)
      await client.say({ method: 'notifications/cancelled', params: { requestId: 'a' } })
      const withdrawn = () =>
        client.heard('a').some(({ method, params }) => {
          return method === 'notifications/cancelled' && (params as Json)['requestId'] === question?.id
        })
      await until(withdrawn, 'the question to be taken back')
      await client.say({ id: question?.id, result: ADA })
      const { answer } = await converse(client, 'b', ask({ name: NAME }), REPLIES)
      t.same(told(answer), { name: ADA }, 'and the next one is asked again')
      t.equal(server.calls().length, 3, 'nothing more was sent for it')
      const answers = client.heard('a').filter(({ id, method }) => id === 'a' && method === undefined)
      // A stream that can be taken up again has to end in something.
      t.match(answers, front === 'HTTP' ? [{ error: { code: -32603 } }] : [])
    })

    t.test(`${pair} that cancels a waiting call delays nobody`, async (t) => {
      const { client, server } = await start(t)
      await client.begin('a', 'tools/call', ask({ name: NAME }))
      const [first] = await asked(client, 'a', 1)
      await client.begin('b', 'tools/call', ask({ name: NAME }))
      await until(() => server.calls().length === 2, 'the second call')
      await client.begin('c', 'tools/call', ask({ model: MODEL }))
      // By now the second waits for the first to be answered; what a model is asked does not wait.
      await until(() => questions(client, 'c').some(({ method }) => method === MODEL.method), 'the third to be asked')
      const forms = ['a', 'b'].flatMap((id) => questions(client, id)).filter(({ method }) => method === NAME.method)
      t.same([...new Set(forms.map(({ id }) => id))], [first?.id], 'one dialogue is open at a time')
      await client.say({ method: 'notifications/cancelled', params: { requestId: 'b' } })
      await client.begin('d', 'tools/call', ask({ name: NAME }))
      await client.say({ id: first?.id, result: ADA })
      t.same(told(await answered(client, 'a')), { name: ADA })
      const other = () => questions(client, 'd').find(({ method, id }) => method === NAME.method && id !== first?.id)
      await until(() => other() !== undefined, 'the last to be asked')
      await client.say({ id: other()?.id, result: ADA })
      t.same(told(await answered(client, 'd')), { name: ADA })
    })

    t.test(`repeats a call of ${pair} with only a state, which the client does not notice`, async (t) => {
      const { server, client } = await start(t)
      const { answer, asked: all } = await converse(client, 1, { name: 'ask-later', arguments: {} }, {})
      t.match(answer.result, { content: [{ type: 'text' }] })
      t.same(all, [])
      t.equal(client.heard(1).filter(({ id }) => id === 1).length, 1)
      const [first, ...others] = server.calls().map(paramsOf)
      t.equal(others.length, 2)
      t.notOk('requestState' in (first ?? {}))
      for (const params of others) {
        t.type(params['requestState'], 'string')
        t.notOk('inputResponses' in params)
      }
      const mixed = await converse(client, 2, ask(null, { name: NAME }, null), REPLIES)
      t.same(told(mixed.answer), { name: ADA })
      t.same(server.violations(), [])
    })
  }
}

t.test('a question comes on the stream of its own call, whatever others are open', async (t) => {
  const modern = await ModernHttp.start(t)
  const { url } = await startBridge(t, { url: modern.url })
  const client = await LegacyClient.open(url, { capabilities: EVERYTHING })
  const listening = await client.listen()
  const calls = await Promise.all(
    ['one', 'two'].map((id) => client.stream('tools/call', ask({ [id]: { ...MODEL } }), { id })),
  )
  const asking = (stream: EventStream) => stream.messages.filter(({ method }) => method === MODEL.method)
  for (const stream of calls) await until(() => asking(stream).length === 1, 'its question')
  const ids = calls.map((stream) => asking(stream)[0]?.['id'])
  t.equal(new Set(ids).size, 2)
  for (const [n, id] of ids.entries()) {
    const accepted = await client.post({ jsonrpc: '2.0', id, result: { ...PARIS, model: String(n) } })
    t.same([accepted.status, accepted.text], [202, ''])
  }
  for (const [n, stream] of calls.entries()) {
    await stream.ended()
    const [id = ''] = ['one', 'two'].slice(n)
    t.same(told(stream.answer(id) ?? {}), { [id]: { ...PARIS, model: String(n) } })
  }
  t.same(asking(listening), [])
})

t.test('accepts an answer only in the session that was asked', async (t) => {
  const modern = await ModernHttp.start(t)
  const { url } = await startBridge(t, { url: modern.url })
  const [client, other] = await Promise.all([0, 1].map(() => LegacyClient.open(url, { capabilities: EVERYTHING })))
  if (!client || !other) throw new Error('There are two of them')
  const stream = await client.stream('tools/call', ask({ name: NAME }), { id: 1 })
  await until(() => stream.messages.length > 0, 'the question')
  const id = stream.messages[0]?.['id']
  await other.post({ jsonrpc: '2.0', id, result: { action: 'accept', content: { name: 'Eve' } } })
  for (const wrong of [String(id), 4711, -1]) await client.post({ jsonrpc: '2.0', id: wrong, result: ADA })
  await client.post({ jsonrpc: '2.0', id, result: ADA })
  await client.post({ jsonrpc: '2.0', id, result: { action: 'decline' } })
  await stream.ended()
  t.same(told(stream.answer(1) ?? {}), { name: ADA })
})

t.test('returns a state byte for byte, under any key of the question', async (t) => {
  const state = String.raw`"a\/b\u00e9\ud83d\ude00 \"é" `.trim()
  const key = String.raw`"\u0061\"__proto__ é"`
  const answer = (id: unknown, result: string) => `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${result}}`
  const asking = `{"resultType":"input_required","inputRequests":{${key}:${JSON.stringify(MODEL)},"__proto__":${JSON.stringify(ROOTS)}},"requestState":${state}}`
  const retries: string[] = []
  const modern = await ModernHttp.start(t, {
    override: ({ message, body }, response) => {
      if (message?.['method'] !== 'tools/call') return false
      const retry = 'requestState' in (message['params'] as Json)
      if (retry) retries.push(body)
      const result = retry ? '{"resultType":"complete","content":[]}' : asking
      response.writeHead(200, { 'content-type': 'application/json' }).end(answer(message['id'], result))
      return true
    },
  })
  const { url } = await startBridge(t, { url: modern.url })
  const client = await httpClient(url)
  const { answer: last } = await converse(client, 1, { name: 'x', arguments: { n: 1 } }, REPLIES)
  t.same(last.result, { content: [] })
  t.equal(retries.length, 1)
  t.ok(retries[0]?.includes(`"requestState":${state}`), `${retries[0]}`)
  const { inputResponses } = (JSON.parse(retries[0] ?? '') as { params: { inputResponses: Json } }).params
  t.same(Object.entries(inputResponses), [
    ['a"__proto__ é', PARIS],
    ['__proto__', FOLDERS],
  ])
})

t.test('asks nothing that a client has not declared, and does not call the server again', async (t) => {
  const modern = await ModernHttp.start(t)
  const rows: [declared: Json, question: object][] = [
    [{}, NAME],
    [{ sampling: {} }, NAME],
    [{ elicitation: {} }, PAGE],
    [{ elicitation: { url: {} } }, NAME],
    [{ sampling: {} }, { ...MODEL, params: { ...MODEL.params, tools: [] } }],
    [{ elicitation: {} }, ROOTS],
  ]
  for (const [capabilities, question] of rows) {
    const client = await connect(t, 'HTTP', { url: modern.url }, { capabilities })
    const before = modern.of('tools/call').length
    const call = { name: 'ask', arguments: { rounds: [{ q: question }], regardless: true } }
    const { answer, asked: all } = await converse(client, 1, call, REPLIES)
    t.equal(answer.error?.['code'], -32603, JSON.stringify(capabilities))
    t.same(all, [])
    t.equal(modern.of('tools/call').length, before + 1)
  }
})

t.test('bounds the number of questions', async (t) => {
  const modern = await ModernHttp.start(t)
  const client = await connect(t, 'HTTP', { url: modern.url })
  const rounds = Array.from({ length: 20 }, (_, n) => ({ [`q${n}`]: ROOTS }))
  const { answer, asked: all } = await converse(client, 1, ask(...rounds), REPLIES)
  t.equal(answer.error?.['code'], -32603)
  t.equal(all.length, 16)
})

t.test('outside of tool calls, an unanswered question is an error', async (t) => {
  const answer = (id: unknown, result: object) => JSON.stringify({ jsonrpc: '2.0', id, result })
  const modern = await ModernHttp.start(t, {
    override: ({ message }, response) => {
      if (message?.['method'] !== 'prompts/get') return false
      const asking = { resultType: 'input_required', inputRequests: { q: MODEL }, requestState: 's' }
      response.writeHead(200, { 'content-type': 'application/json' }).end(answer(message['id'], asking))
      return true
    },
  })
  const client = await connect(t, 'HTTP', { url: modern.url })
  const codes: [said: number, told: number][] = [
    [-1, -1],
    [-32601, -32601],
    [-32050, -32603],
    [-32042, -32603],
  ]
  for (const [n, [code, expected]] of codes.entries()) {
    const replies: Replies = { 'sampling/createMessage': () => ({ error: { code, message: 'No' } }) }
    const { answer: last } = await converse(client, n, { name: 'greet' }, replies, 'prompts/get')
    t.same(last.error, { code: expected, message: 'No' })
  }
  t.equal(modern.of('prompts/get').length, codes.length)
})

t.test('progress of a call increases over all its rounds, and its logs have the current level', async (t) => {
  const note = (method: string, params: object) => `data: ${JSON.stringify({ jsonrpc: '2.0', method, params })}\n\n`
  const levels: unknown[] = []
  const modern = await ModernHttp.start(t, {
    override: ({ message }, response) => {
      if (message?.['method'] !== 'tools/call') return false
      const { _meta, requestState } = message['params'] as { _meta: Json; requestState?: string }
      levels.push(_meta['io.modelcontextprotocol/logLevel'])
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      const { progressToken } = _meta
      for (const progress of requestState ? [1, 2, 3] : [1, 2])
        response.write(note('notifications/progress', { progressToken, progress }))
      const asking = { resultType: 'input_required', inputRequests: { q: ROOTS }, requestState: 's' }
      const result = requestState ? { resultType: 'complete', content: [] } : asking
      response.end(`data: ${JSON.stringify({ jsonrpc: '2.0', id: message['id'], result })}\n\n`)
      return true
    },
  })
  const { url } = await startBridge(t, { url: modern.url })
  const client = await LegacyClient.open(url, { capabilities: EVERYTHING })
  const stream = await client.stream('tools/call', { name: 'x' }, { id: 1, meta: { progressToken: 'p' } })
  await until(() => stream.messages.some(({ method }) => method === 'roots/list'), 'the question')
  await client.request('logging/setLevel', { level: 'debug' })
  const { id } = stream.messages.find(({ method }) => method === 'roots/list') ?? {}
  await client.post({ jsonrpc: '2.0', id, result: FOLDERS })
  await stream.ended()
  const progress = stream.messages.filter(({ method }) => method === 'notifications/progress')
  t.same(
    progress.map(({ params }) => params),
    [1, 2, 3].map((value) => ({ progressToken: 'p', progress: value })),
  )
  t.same(levels, [undefined, 'debug'])
})
