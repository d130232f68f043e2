/** Tasks of modern servers for legacy clients, which know nothing of them. Numbers are those of test/invariants.md. */
import t, { type Test } from 'tap'
import { answered, asked, connect, converse, FRONTS, type Opening, type Replies } from '../support/asked-clients.js'
import { until } from '../support/eventually.js'
import { besideTheQuestion } from '../support/legacy-client.js'
import { CAPABILITIES } from '../support/modern.js'
import { ModernHttp } from '../support/modern-http.js'
import { modernStdio } from '../support/modern-stdio.js'

type Json = Record<string, unknown>

const TASKS = 'io.modelcontextprotocol/tasks'
const REVISIONS = ['2024-11-05', '2025-11-25']
const NAME = {
  method: 'elicitation/create',
  params: {
    mode: 'form',
    message: 'Name?',
    requestedSchema: { type: 'object', properties: { name: { type: 'string' } } },
  },
}
const MODEL = {
  method: 'sampling/createMessage',
  params: { messages: [{ role: 'user', content: { type: 'text', text: 'Capital?' } }], maxTokens: 9 },
}
const ADA = { action: 'accept', content: { name: 'Ada' } }
const PARIS = { role: 'assistant', model: 'm', content: { type: 'text', text: 'Paris' } }
const REPLIES: Replies = {
  'elicitation/create': () => ({ result: ADA }),
  'sampling/createMessage': () => ({ result: PARIS }),
}

interface Server {
  entry: object
  messages(): Json[]
  violations(): unknown[]
}

const SERVERS = {
  'over HTTP': async (t: Test): Promise<Server> => {
    const modern = await ModernHttp.start(t)
    return {
      entry: { url: modern.url },
      messages: () => modern.received.map(({ message = {} }) => message),
      violations: () => besideTheQuestion(modern.violations()),
    }
  },
  'over stdio': async (t: Test): Promise<Server> => {
    const { server, messages, violations } = modernStdio(t)
    return { entry: server, messages, violations: () => besideTheQuestion(violations()) }
  },
}

const task = (args: Json = {}) => ({ name: 'task', arguments: args })

// What is done here is to wait, most of the time.
t.jobs = 8
for (const [where, startServer] of Object.entries(SERVERS)) {
  const start = async (t: Test, front: (typeof FRONTS)[number], opening: Opening = {}) => {
    const server = await startServer(t)
    const of = (method: string) => server.messages().filter((message) => message['method'] === method)
    const declared = () =>
      of('tools/call').map(({ params }) => {
        const { _meta } = params as { _meta: Record<string, { extensions?: Json }> }
        return _meta[CAPABILITIES]?.extensions ?? {}
      })
    return { server, of, declared, client: await connect(t, front, server.entry, opening) }
  }

  for (const front of FRONTS) {
    t.test(
      `a tool that requires a task of a server ${where} is an ordinary call over ${front}`,
      { buffered: true },
      async (t) => {
        const { server, of, declared, client } = await start(t, front)
        const { answer } = await converse(client, 1, task({ say: 'at last', polls: 2 }), {})
        t.same(answer.result, { content: [{ type: 'text', text: 'at last' }] })
        t.same(declared(), [{}, { [TASKS]: {} }], 'refused, and called again as somebody who knows tasks')
        t.equal(of('tasks/get').length, 3)
        t.same(of('tasks/cancel'), [])
        t.equal(client.heard(1).filter(({ id }) => id === 1).length, 1)
        t.notMatch(JSON.stringify(client.heard(1)), /task/)
        t.same(server.violations(), [])
      },
    )

    t.test(
      `questions of a task of a server ${where} are asked over ${front}, each once`,
      { buffered: true },
      async (t) => {
        const { server, of, client } = await start(t, front)
        const { answer, asked: all } = await converse(client, 1, task({ ask: { name: NAME, model: MODEL } }), REPLIES)
        t.match(answer.result, { content: [{ text: 'done' }] })
        t.same(all.map(({ method }) => method).sort(), [NAME.method, MODEL.method])
        const updates = of('tasks/update').map(({ params }) => (params as { inputResponses: Json }).inputResponses)
        t.same(Object.assign({}, ...updates), { name: ADA, model: PARIS })
        t.same(server.violations(), [])
      },
    )

    t.test(`the call over ${front} ends as the task of a server ${where} does`, { buffered: true }, async (t) => {
      const { server, client } = await start(t, front)
      const failed = await converse(client, 1, task({ end: 'failed', error: { code: 4711, message: 'It broke' } }), {})
      t.same(failed.answer.error, { code: 4711, message: 'It broke' })
      const reserved = await converse(client, 2, task({ end: 'failed', error: { code: -32077, message: 'x' } }), {})
      t.same(reserved.answer.error, { code: -32603, message: 'x', data: { upstreamCode: -32077 } })
      const tool = await converse(client, 3, task({ isError: true, say: 'no' }), {})
      t.same(tool.answer.result, { content: [{ type: 'text', text: 'no' }], isError: true })
      const cancelled = await converse(client, 4, task({ end: 'cancelled' }), {})
      t.equal(cancelled.answer.error?.['code'], -32603)
      t.same(server.violations(), [])
    })

    t.test(`a cancelled call over ${front} cancels the task of a server ${where}`, { buffered: true }, async (t) => {
      const { of, client } = await start(t, front)
      await client.begin('a', 'tools/call', task({ polls: 1_000 }))
      await until(() => of('tasks/get').length > 0, 'the task to be looked at')
      await client.say({ method: 'notifications/cancelled', params: { requestId: 'a' } })
      await until(() => of('tasks/cancel').length === 1, 'the end of the task')
      await client.begin('b', 'tools/call', task({ ask: { name: NAME } }))
      await asked(client, 'b', 1)
      await client.say({ method: 'notifications/cancelled', params: { requestId: 'b' } })
      await until(() => of('tasks/cancel').length === 2, 'the end of the task that was asking')
      t.same(of('tasks/update'), [])
      t.equal(new Set(of('tasks/cancel').map(({ params }) => (params as { taskId: string }).taskId)).size, 2)
    })
  }

  t.test(`the status of a task of a server ${where} is progress, if requested`, { buffered: true }, async (t) => {
    for (const revision of REVISIONS) {
      const { client } = await start(t, 'HTTP', { revision })
      await client.begin(1, 'tools/call', task({ polls: 2 }), { progressToken: 'p' })
      await answered(client, 1)
      const progress = client.heard(1).filter(({ method }) => method === 'notifications/progress')
      const message = revision === '2024-11-05' ? {} : { message: 'At it' }
      t.match(progress[0]?.['params'], { progressToken: 'p', progress: 1, ...message }, revision)
      t.equal(progress.length, 1)
      const silent = await converse(client, 2, task(), {})
      t.match(silent.answer.result, { content: [{ text: 'done' }] })
      t.equal(client.heard(2).length, 1)
    }
  })
}

t.test('a call is repeated only for tasks, and only once', async (t) => {
  const refusal = (requiredCapabilities: object) => ({ code: -32021, message: 'No', data: { requiredCapabilities } })
  const rows: [required: object, calls: number][] = [
    [{ extensions: { [TASKS]: {} } }, 2],
    [{ extensions: { [TASKS]: {}, 'com.example/x': {} } }, 1],
    [{ extensions: { [TASKS]: {} }, sampling: {} }, 1],
    [{ sampling: {} }, 1],
    [{}, 1],
  ]
  for (const [required, calls] of rows) {
    const modern = await ModernHttp.start(t, {
      override: ({ message }, response) => {
        if (message?.['method'] !== 'tools/call') return false
        const body = JSON.stringify({ jsonrpc: '2.0', id: message['id'], error: refusal(required) })
        response.writeHead(400, { 'content-type': 'application/json' }).end(body)
        return true
      },
    })
    const client = await connect(t, 'HTTP', { url: modern.url })
    const { answer } = await converse(client, 1, task(), {})
    t.equal(answer.error?.['code'], -32603, JSON.stringify(required))
    t.equal(modern.of('tools/call').length, calls)
  }
})

t.test("a client's request for a task is ignored for a server of another era", async (t) => {
  const modern = await ModernHttp.start(t)
  const client = await connect(t, 'HTTP', { url: modern.url })
  const { answer } = await converse(client, 1, { name: 'echo', arguments: { n: 1 }, task: { ttl: 1 } }, {})
  t.same(answer.result?.['structuredContent'], { n: 1 })
  t.notOk('task' in (modern.of('tools/call')[0]?.message?.['params'] as Json))
  t.same(besideTheQuestion(modern.violations()), [])
})
