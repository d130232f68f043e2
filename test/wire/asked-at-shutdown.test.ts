/** Calls that wait for their own clients, or between two requests to the server, when the bridge shuts down or their server is removed. */
import t, { type Test } from 'tap'
import { answered, asked, type Client, connect, FRONTS } from '../support/asked-clients.js'
import { startAsker } from '../support/asking.js'
import { settingsOf } from '../support/bridge.js'
import { until } from '../support/eventually.js'
import { ModernHttp } from '../support/modern-http.js'
import { modernStdio } from '../support/modern-stdio.js'

type Json = Record<string, unknown>

const NAME = {
  method: 'elicitation/create',
  params: { mode: 'form', message: 'Name?', requestedSchema: { type: 'object', properties: {} } },
}
const MODEL = {
  method: 'sampling/createMessage',
  params: { messages: [{ role: 'user', content: { type: 'text', text: 'Capital?' } }], maxTokens: 9 },
}

/** What a call waits for, with the number of questions that come first. */
const WAITING: Record<string, { params: Json; questions: number }> = {
  'a person': { params: { name: 'ask', arguments: { rounds: [{ name: NAME }] } }, questions: 1 },
  'a model': { params: { name: 'ask', arguments: { rounds: [{ model: MODEL }] } }, questions: 1 },
  'a person, one after another': {
    params: { name: 'ask', arguments: { rounds: [{ one: NAME, other: NAME }] } },
    questions: 1,
  },
  'a server that asks to be called again': {
    params: { name: 'ask', arguments: { rounds: [{ name: NAME }, ...Array.from({ length: 20 }, () => null)] } },
    questions: 1,
  },
  'a task of the server': {
    params: { name: 'task', arguments: { polls: 100_000, pollIntervalMs: 500 } },
    questions: 0,
  },
  'a task of the server that asks': { params: { name: 'task', arguments: { ask: { name: NAME } } }, questions: 1 },
}

const SERVERS: Record<
  string,
  (t: Test) => Promise<{ entry: object; settings?: object; prefix?: string; calls(): number }>
> = {
  'a server over HTTP': async (t) => {
    const modern = await ModernHttp.start(t)
    return { entry: { url: modern.url }, calls: () => modern.of('tools/call').length }
  },
  'a program': async (t) => {
    const { server, messages } = modernStdio(t)
    return { entry: server, calls: () => messages().filter(({ method }) => method === 'tools/call').length }
  },
  'a group': async (t) => {
    const modern = await ModernHttp.start(t)
    const other = await startAsker(t, 'over stdio')
    const mcpServers = { it: { url: modern.url }, other: other.server }
    const settings = { mcpServers, groups: { all: { servers: ['it', 'other'] } } }
    return { entry: {}, settings, prefix: 'it__', calls: () => modern.of('tools/call').length }
  },
}

/** The answer, and the line of the log about it. */
async function shutDown(client: Client & Awaited<ReturnType<typeof connect>>, id: unknown) {
  await client.bridge.close()
  const { error } = await answered(client, id)
  await until(() => client.log.some(({ event }) => event === 'call'), 'the line of the call')
  return { error, lines: client.log.filter(({ event, method }) => event === 'call' && method !== 'initialize') }
}

const INTERRUPTED = { data: { reason: 'draining', outcome: 'unknown' } }

for (const [where, start] of Object.entries(SERVERS))
  for (const front of FRONTS)
    for (const [what, { params, questions }] of Object.entries(WAITING).slice(0, front === 'HTTP' ? undefined : 1))
      t.test(`a call over ${front} of ${where} that waits for ${what} fails as interrupted`, async (t) => {
        const { entry, settings, prefix = '', calls } = await start(t)
        const client = await connect(t, front, entry, { settings: { ...settings, timeouts: { drainTimeout: 1 } } })
        await client.begin('call', 'tools/call', { ...params, name: `${prefix}${params['name']}` })
        await until(() => calls() > 0, 'the call at the server')
        if (questions > 0) {
          const [first] = await asked(client, 'call', questions)
          if (what.includes('again')) {
            await client.say({ id: first?.id, result: { action: 'decline' } })
            await until(() => calls() > 1, 'the second call at the server')
          }
        }
        const { error, lines } = await shutDown(client, 'call')
        t.match(error, INTERRUPTED)
        t.match(lines.at(-1), { outcome: 'fault', fault: 'interrupted', method: 'tools/call' })
      })

t.test(
  'a client that waits for the result of a task whose call waits for it hears that it was interrupted',
  async (t) => {
    const modern = await ModernHttp.start(t)
    const settings = { compat: { emulateTasks: true }, timeouts: { drainTimeout: 1 } }
    const client = await connect(t, 'HTTP+SSE', { url: modern.url }, { revision: '2025-11-25', settings })
    await client.begin('call', 'tools/call', { name: 'ask', arguments: { rounds: [{ name: NAME }] }, task: {} })
    const { result } = await answered(client, 'call')
    const { taskId } = result?.['task'] as Json
    await client.begin('result', 'tasks/result', { taskId: taskId as string })
    await asked(client, 'result', 1)
    const { error } = await shutDown(client, 'result')
    t.match(error, INTERRUPTED)
  },
)

for (const [where, start] of Object.entries(SERVERS))
  t.test(`a call of ${where} that follows a task ends well if the task ends in time`, async (t) => {
    const { entry, settings, prefix = '', calls } = await start(t)
    const client = await connect(t, 'HTTP', entry, { settings: { ...settings, timeouts: { drainTimeout: 3_600_000 } } })
    const params = { name: `${prefix}task`, arguments: { polls: 2, pollIntervalMs: 500 } }
    await client.begin('call', 'tools/call', params)
    await until(() => calls() > 0, 'the call at the server')
    const closed = client.bridge.close()
    t.match(await answered(client, 'call'), { result: { content: Array }, error: undefined })
    await closed
  })

for (const front of FRONTS)
  t.test(`a call over ${front} that waits for a person fails as interrupted when its server is removed`, async (t) => {
    const modern = await ModernHttp.start(t)
    const settings = { timeouts: { drainTimeout: 1 } }
    const client = await connect(t, front, { url: modern.url }, { settings })
    await client.begin('call', 'tools/call', { name: 'ask', arguments: { rounds: [{ name: NAME }] } })
    await asked(client, 'call', 1)
    await client.bridge.reload(settingsOf({ mcpServers: { other: { url: modern.url } }, ...settings }))
    t.match((await answered(client, 'call')).error, INTERRUPTED)
  })
