/** The client of the page, in both eras, against server-everything through the bridge. */
import { createRequire } from 'node:module'
import { pino } from 'pino'
import t, { type Test } from 'tap'
import { Inspector } from '../../src/inspector/inspector.js'
import { completionsOf, connectTry, listOf } from '../../src/inspector/try/client.js'
import type { JsonRecord, TryClientOptions, TryEvent, TryQuestion } from '../../src/inspector/try/types.js'
import type { ServerNow, ServerView } from '../../src/inspector/views.js'
import { startBridge } from '../support/bridge.js'
import { until } from '../support/eventually.js'
import { TOKEN } from '../support/inspector.js'
import { ModernHttp } from '../support/modern-http.js'

const REVISIONS = ['2026-07-28', '2025-11-25', '2025-06-18', '2025-03-26'] as const
const EVERYTHING = createRequire(import.meta.url).resolve('@modelcontextprotocol/server-everything/dist/index.js')

async function start(t: Test, { url: address }: { url?: string } = {}) {
  const inspector = new Inspector(
    { token: TOKEN, payloads: 'all', callsPerSecond: 500, hide: [], try: true },
    { version: '0.0.0', log: pino({ level: 'silent' }), folder: undefined, mayTry: true },
  )
  const entry = address === undefined ? { command: process.execPath, args: [EVERYTHING, 'stdio'] } : { url: address }
  const { bridge } = await startBridge(t, entry, {}, { inspector, recorder: inspector.recorder })
  const url = `${bridge.inspectUrl}/try?server=test`
  const send: TryClientOptions['send'] = ({ headers, ...more }) =>
    fetch(url, { ...more, headers: { ...headers, authorization: `Bearer ${TOKEN}` } })
  const connect = async (
    t: Test,
    revision: string,
    ask: TryClientOptions['ask'] = answer,
    session?: TryClientOptions['session'],
  ) => {
    const events: TryEvent[] = []
    const client = await connectTry({ send, revision, ask, session, on: (event) => events.push(event) })
    t.teardown(() => client.close())
    return { client, events }
  }
  const now = async () => {
    const answer = await fetch(`${bridge.inspectUrl}/servers`, { headers: { authorization: `Bearer ${TOKEN}` } })
    return ((await answer.json()) as { servers: (ServerNow & ServerView)[] }).servers[0]
  }
  return { connect, server: now }
}

async function answer({ method }: TryQuestion): Promise<JsonRecord> {
  if (method === 'roots/list') return { roots: [] }
  if (method === 'elicitation/create') return { action: 'accept', content: { name: 'Zoë', color: 'red' } }
  return { role: 'assistant', content: { type: 'text', text: 'typed by a person' }, model: 'a person' }
}

t.test('lists, calls, and shows progress, in each revision', async (t) => {
  const { connect } = await start(t)
  for (const revision of REVISIONS)
    await t.test(revision, async (t) => {
      const { client, events } = await connect(t, revision)
      t.equal(client.revision, revision)
      const lists = await Promise.all(
        (['tools', 'prompts', 'resources', 'templates'] as const).map((kind) => listOf(client, kind)),
      )
      for (const { items, cut } of lists) t.ok(items.length > 0 && !cut)
      const echoed = await client.call('tools/call', { name: 'echo', arguments: { message: 'hello' } })
      t.match(JSON.stringify(echoed), /hello/)
      const long = { name: 'trigger-long-running-operation', arguments: { duration: 0.2, steps: 2 } }
      let call: number | undefined
      await client.call('tools/call', long, { begun: (id) => (call = id) })
      t.same(
        events.flatMap((event) => (event.kind === 'progress' && event.call === call ? [event.progress] : [])),
        [1, 2],
      )
      await t.rejects(client.call('tools/call', { name: 'no-such-tool', arguments: {} }).then(orThrow))
      await t.rejects(client.call('no/such/method'), { code: -32601 })
    })
})

/** Some revisions answer with a result that is an error. */
function orThrow(result: JsonRecord): void {
  if (result['isError']) throw new Error('tool error')
}

t.test('answers questions of servers', async (t) => {
  const { connect } = await start(t)
  for (const revision of REVISIONS)
    await t.test(revision, async (t) => {
      const { client } = await connect(t, revision)
      const sampling = { name: 'trigger-sampling-request', arguments: { prompt: 'Two and two?', maxTokens: 10 } }
      t.match(JSON.stringify(await client.call('tools/call', sampling)), /typed by a person/)
      if (revision < '2025-06-18') return
      const form = await client.call('tools/call', { name: 'trigger-elicitation-request', arguments: {} })
      t.match(JSON.stringify(form), /Zoë/)
    })
})

t.test('a cancelled call rejects, and the server is told', async (t) => {
  const { connect } = await start(t)
  for (const revision of ['2026-07-28', '2025-11-25'])
    await t.test(revision, async (t) => {
      const { client, events } = await connect(t, revision)
      const cancel = new AbortController()
      const long = { name: 'trigger-long-running-operation', arguments: { duration: 600, steps: 6_000 } }
      const called = client.call('tools/call', long, { signal: cancel.signal })
      called.catch(() => {})
      await until(() => events.some(({ kind }) => kind === 'progress'), 'the call runs')
      cancel.abort(new Error('cancelled here'))
      await t.rejects(called, { message: 'cancelled here' })
      const echoed = await client.call('tools/call', { name: 'echo', arguments: { message: 'still there' } })
      t.match(JSON.stringify(echoed), /still there/)
    })
})

t.test('follows a task to its result, with its questions', async (t) => {
  const { connect } = await start(t)
  for (const revision of ['2026-07-28', '2025-11-25'])
    await t.test(revision, async (t) => {
      let asked = 0
      const { client, events } = await connect(t, revision, async (question) => {
        if (question.method === 'elicitation/create') asked++
        return question.method === 'elicitation/create'
          ? { action: 'accept', content: { interpretation: 'technical' } }
          : answer(question)
      })
      const research = { name: 'simulate-research-query', arguments: { topic: 'python', ambiguous: true } }
      const result = await client.call('tools/call', research, { task: true })
      t.match(JSON.stringify(result), /python/i)
      t.equal(asked, 1)
      t.ok(revision === '2026-07-28' || events.some(({ kind }) => kind === 'task'))
    })
})

t.test('headers repeat the arguments that the schema of a tool names', async (t) => {
  const server = await ModernHttp.start(t)
  const { connect } = await start(t, server)
  const { client } = await connect(t, '2026-07-28')
  const { items } = await listOf(client, 'tools')
  const tool = items.find(({ name }) => name === 'mirrored')
  const args = { region: 'Zürich', count: 3, urgent: true, place: { zone: 'a b' } }
  const result = await client.call('tools/call', { name: 'mirrored', arguments: args }, { tool })
  t.match(JSON.stringify(result), /Zürich/)
  t.match(server.of('tools/call').at(-1)?.headers, {
    'mcp-param-region': '=?base64?WsO8cmljaA==?=',
    'mcp-param-count': '3',
    'mcp-param-urgent': 'true',
    'mcp-param-zone': 'a b',
  })
  await t.rejects(client.call('tools/call', { name: 'mirrored', arguments: args }), /param-header: mcp-param-region/)
})

t.test('a session that was left goes on, without the calls that ran in it, and with new ids', async (t) => {
  const { connect, server } = await start(t)
  const { client, events } = await connect(t, '2025-11-25')
  const long = { name: 'trigger-long-running-operation', arguments: { duration: 600, steps: 6_000 } }
  const called = client.call('tools/call', long)
  called.catch(() => {})
  await until(() => events.some(({ kind }) => kind === 'progress'), 'the call runs')
  await client.leave()
  await t.rejects(called)
  await until(async () => (await server())?.calls === 0, 'the server has been told that the call is cancelled')
  const { client: again, events: later } = await connect(t, '2025-11-25', answer, client.session)
  t.same(again.session, client.session)
  const { items } = await listOf(again, 'tools')
  t.ok(items.length > 0)
  t.equal((await server())?.starts, 1)
  const ids = (all: readonly TryEvent[]) =>
    all.flatMap((event) => (event.kind === 'sent' && 'method' in event.message ? [event.message['id']] : []))
  const first: readonly unknown[] = ids(events).filter((id) => id !== undefined)
  t.notOk(ids(later).some((id) => first.includes(id)))
  await again.close()
  const { client: late } = await connect(t, '2025-11-25', answer, client.session)
  await t.rejects(late.call('ping'), { message: /Session not found/ })
})

t.test('completes arguments', async (t) => {
  const { connect } = await start(t)
  for (const revision of ['2026-07-28', '2025-11-25']) {
    const { client } = await connect(t, revision)
    const ref = { type: 'ref/prompt', name: 'completable-prompt' }
    const values = await completionsOf(client, { ref, argument: { name: 'department', value: 'E' } })
    t.same(values, ['Engineering'])
  }
})
