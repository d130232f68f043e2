/** Tasks belong to the caller who has made them, whatever lies between: for others, there is no such task. */
import t, { type Test } from 'tap'
import { startBridge } from '../support/bridge.js'
import { LegacyClient } from '../support/legacy-client.js'
import { LegacyHttp } from '../support/legacy-http.js'
import { call, envelope, headersFor, post } from '../support/modern.js'
import { ModernHttp } from '../support/modern-http.js'
import { modernStdio } from '../support/modern-stdio.js'
import { noRedis, RedisServer } from '../support/redis.js'
import { SseClient } from '../support/sse-client.js'

type Json = Record<string, unknown>
type Ask = (method: string, params?: Json) => Promise<Json>

const TASKS = 'io.modelcontextprotocol/tasks'
const SECRETS = { alice: 'token-of-alice-0123456789', bob: 'token-of-bob-01234567890' }
const AUTH = { auth: { tokens: SECRETS } }
const headersOf = (who: keyof typeof SECRETS) => ({ authorization: `Bearer ${SECRETS[who]}` })
const UNKNOWN = { error: { code: -32602, message: 'Unknown or expired taskId' } }

const TASK_CALL = { name: 'task', arguments: { polls: 1 }, task: { ttl: 60_000 } }

/** A legacy server whose tasks everybody may see who knows their ids. */
async function legacyServer(t: Test, { events = false } = {}): Promise<LegacyHttp> {
  const tasks = new Map<string, Json>()
  return LegacyHttp.start(t, {
    sessions: true,
    capabilities: { tools: {}, tasks: { list: {}, cancel: {}, requests: { tools: { call: {} } } } },
    override: ({ method, message }, response) => {
      const { method: asked, id, params } = message as { method?: string; id?: unknown; params?: Json }
      const isCreated = asked === 'tools/call' && params?.['task'] !== undefined
      if (method !== 'POST' || !(isCreated || asked?.startsWith('tasks/'))) return false
      const answer = (): Json => {
        const times = { createdAt: '2026-01-01T00:00:00Z', lastUpdatedAt: '2026-01-01T00:00:00Z', ttl: 60_000 }
        if (isCreated) {
          const task = { taskId: `t${tasks.size + 1}`, status: 'working', ...times }
          tasks.set(task.taskId, task)
          return { result: { task } }
        }
        if (asked === 'tasks/list') return { result: { tasks: [...tasks.values()], nextCursor: '1.0' } }
        const task = tasks.get(String(params?.['taskId']))
        if (!task) return { error: { code: -32602, message: 'No task' } }
        if (asked === 'tasks/cancel') task['status'] = 'cancelled'
        return { result: asked === 'tasks/result' ? { content: [] } : task }
      }
      const text = JSON.stringify({ jsonrpc: '2.0', id, ...answer() })
      if (!events) response.writeHead(200, { 'content-type': 'application/json' }).end(text)
      else {
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        response.write('id: 1\ndata:\n\n')
        response.end(`id: 2\r\nevent: message\r\ndata: ${text}\r\n\r\n`)
      }
      return true
    },
  })
}

const legacyClients: Record<string, (url: string, headers: Record<string, string>) => Promise<Ask>> = {
  'Streamable HTTP': async (url, headers) => {
    const client = await LegacyClient.open(url, { headers })
    return async (method, params) => (await client.request(method, params)).message
  },
  'HTTP+SSE': async (url, headers) => {
    const client = await SseClient.open(url, '2025-11-25', {}, headers)
    return (method, params) => client.request(method, params)
  },
}

const created = (answer: Json) => (answer as { result: { task: { taskId: string } } }).result.task.taskId
const listed = (answer: Json) =>
  (answer as { result: { tasks: { taskId: string }[] } }).result.tasks.map(({ taskId }) => taskId)

for (const [front, open] of Object.entries(legacyClients))
  for (const events of [false, true])
    t.test(
      `a legacy server's tasks belong to their callers over ${front}, ${events ? 'in events' : 'in JSON'}`,
      async (t) => {
        const server = await legacyServer(t, { events })
        const { url } = await startBridge(t, { url: server.url }, AUTH)
        const alice = await open(url, headersOf('alice'))
        const bob = await open(url, headersOf('bob'))
        const task = created(await alice('tools/call', TASK_CALL))
        t.equal(task, 't1')
        const ofBob = created(await bob('tools/call', TASK_CALL))
        for (const method of ['tasks/get', 'tasks/result', 'tasks/cancel']) {
          t.match(await bob(method, { taskId: task }), UNKNOWN, `${method} of another`)
          t.match(await bob(method, { taskId: 'never' }), UNKNOWN, `${method} of nobody`)
          t.match(await alice(method, { taskId: task }), { result: {} }, `${method} of its own`)
        }
        t.strictSame(listed(await alice('tasks/list')), [task])
        t.strictSame(listed(await bob('tasks/list', {})), [ofBob])
        t.match(await bob('tasks/list', {}), { result: { nextCursor: '1.0' } })
        t.notOk(server.of('tasks/get').some(({ message }) => (message['params'] as Json)['taskId'] === 'never'))
        const again = await open(url, headersOf('alice'))
        t.match(await again('tasks/get', { taskId: task }), { result: { taskId: task } }, 'in another session')
      },
    )

t.test('without sign-in, all callers see all tasks of a legacy server', async (t) => {
  const server = await legacyServer(t)
  const { url } = await startBridge(t, { url: server.url })
  const [one, other] = [await LegacyClient.open(url), await LegacyClient.open(url)]
  const task = created((await one.request('tools/call', TASK_CALL)).message)
  t.match((await other.request('tasks/get', { taskId: task })).message, { result: { taskId: task } })
  t.strictSame(listed((await other.request('tasks/list')).message), [task])
})

t.test('a request that passes unchanged cannot hide that it is about tasks', async (t) => {
  const server = await legacyServer(t)
  const { url } = await startBridge(t, { url: server.url }, AUTH)
  const alice = await LegacyClient.open(url, { headers: headersOf('alice') })
  const bob = await LegacyClient.open(url, { headers: headersOf('bob') })
  const task = created((await alice.request('tools/call', TASK_CALL)).message)
  const own = created((await bob.request('tools/call', TASK_CALL)).message)
  const bodies = [
    `{"jsonrpc":"2.0","id":1,"method":"\\u0074asks\\/get","params":{"taskId":"${task}"}}`,
    `{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":"${own}","taskId":"${task}"}}`,
    `{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":"${task}","task\\u0049d":"${own}"}}`,
    '{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":["t1"]}}',
  ]
  for (const body of bodies) t.match((await bob.post(body)).message, UNKNOWN, body)
  const batch = [{ jsonrpc: '2.0', id: 1, method: 'tasks/get', params: { taskId: task } }]
  const old = await LegacyClient.open(url, { headers: headersOf('bob'), revision: '2025-03-26' })
  t.match((await old.post(batch)).message, [{ id: 1, error: { code: -32602 } }])
  t.equal(server.of('tasks/get').length, 0)
})

/** A modern client of this person. */
const modern =
  (url: string, who?: keyof typeof SECRETS): Ask =>
  async (method, params = {}) => {
    const capabilities = { extensions: { [TASKS]: {} } }
    const meta = { 'io.modelcontextprotocol/clientCapabilities': capabilities }
    return (await call(url, method, params, { meta, headers: who && headersOf(who) })).message
  }

const modernServers: Record<string, (t: Test) => Promise<object>> = {
  'over HTTP': async (t) => ({ url: (await ModernHttp.start(t)).url }),
  'on stdio': async (t) => modernStdio(t).server,
}
const endpoints: Record<
  string,
  { at(url: string): string; prefix: string; settings(server: object, other: object): object }
> = {
  alone: { at: (url) => url, prefix: '', settings: (server) => ({ mcpServers: { mt: server } }) },
  'in a group': {
    at: (url) => new URL('/all/mcp', url).href,
    prefix: 'mt__',
    settings: (server, other) => ({ mcpServers: { mt: server, other }, groups: { all: {} } }),
  },
}

for (const [where, serverOf] of Object.entries(modernServers))
  for (const [name, { at, prefix, settings }] of Object.entries(endpoints))
    t.test(`a modern server's tasks belong to their callers, ${where}, ${name}`, async (t) => {
      const [server, other] = [await serverOf(t), await serverOf(t)]
      const { url } = await startBridge(t, server, { ...settings(server, other), ...AUTH })
      const [alice, bob] = [modern(at(url), 'alice'), modern(at(url), 'bob')]
      const made = await alice('tools/call', { name: `${prefix}task`, arguments: { polls: 9 } })
      const { taskId } = made['result'] as { taskId: string }
      t.ok(taskId.startsWith(`${prefix}task `), taskId)
      t.match(await bob('tasks/get', { taskId }), UNKNOWN)
      t.match(await bob('tasks/get', { taskId: `${prefix}never` }), UNKNOWN)
      t.match(await bob('tasks/update', { taskId, inputResponses: {} }), UNKNOWN)
      t.match(await bob('tasks/cancel', { taskId }), UNKNOWN)
      t.match(await bob('tasks/list'), { error: { code: -32601 } })
      t.match(await alice('tasks/get', { taskId }), { result: { taskId, status: 'working' } })
      t.match(await alice('tasks/update', { taskId, inputResponses: {} }), { result: {} })
      t.match(await alice('tasks/cancel', { taskId }), { result: {} })
    })

t.test('a body about tasks does not pass unread, whatever its headers say', async (t) => {
  const server = await ModernHttp.start(t)
  const { url, bridge } = await startBridge(t, { url: server.url }, AUTH)
  await bridge.server.warmUp()
  const alice = modern(url, 'alice')
  const made = await alice('tools/call', { name: 'task', arguments: { polls: 9 } })
  const { taskId } = made['result'] as { taskId: string }
  const meta = { 'io.modelcontextprotocol/clientCapabilities': { extensions: { [TASKS]: {} } } }
  const params = JSON.stringify({ taskId, _meta: envelope(meta) }).replaceAll('tasks', '\\u0074asks')
  for (const method of ['tasks/get', '\\u0074asks/get', 'tasks\\/get']) {
    const body = `{"jsonrpc":"2.0","id":1,"method":"${method}","params":${params}}`
    const lying = await post(url, body, { ...headersFor('tools/call', { name: 'x' }), ...headersOf('bob') })
    t.match(lying.message, { error: { code: -32020 } })
    const honest = await post(url, body, { ...headersFor('tasks/get', { taskId }), ...headersOf('bob') })
    t.match(honest.message, UNKNOWN)
  }
  t.equal(server.of('tasks/get').length, 0)
})

t.test('a subscription follows only tasks of its caller', async (t) => {
  const server = await ModernHttp.start(t)
  const { url } = await startBridge(t, { url: server.url }, AUTH)
  const made = await modern(url, 'alice')('tools/call', { name: 'task', arguments: { polls: 9 } })
  const { taskId } = made['result'] as { taskId: string }
  const own = await modern(url, 'bob')('tools/call', { name: 'task', arguments: { polls: 9 } })
  const { taskId: ofBob } = own['result'] as { taskId: string }
  const listening = modern(url, 'bob')('subscriptions/listen', { notifications: { taskIds: [taskId, ofBob, 7] } })
  listening.catch(() => {})
  await t.resolves(
    (async () => {
      while (server.of('subscriptions/listen').length === 0) await new Promise((resolve) => setImmediate(resolve))
    })(),
  )
  const [arrived] = server.of('subscriptions/listen')
  t.match(arrived?.message, { params: { notifications: { taskIds: [ofBob] } } })
  t.notMatch(arrived?.body, JSON.stringify(taskId))
  server.touch({ end: true })
  await listening
})

t.test('a task whose caller is not remembered is unknown, as after a restart', async (t) => {
  const server = await ModernHttp.start(t)
  const before = await startBridge(t, { url: server.url }, AUTH)
  const made = await modern(before.url, 'alice')('tools/call', { name: 'task', arguments: { polls: 9 } })
  const { taskId } = made['result'] as { taskId: string }
  await before.bridge.close()
  const after = await startBridge(t, { url: server.url }, AUTH)
  t.match(await modern(after.url, 'alice')('tasks/get', { taskId }), UNKNOWN)
  t.match(await modern(after.url, 'bob')('tasks/get', { taskId }), UNKNOWN)
})

t.test('replicas know whose a task is', { skip: noRedis }, async (t) => {
  const redis = await RedisServer.start(t)
  const settings = { ...AUTH, stateKeys: ['a secret that all the replicas know of'], redis: { url: redis.url } }
  for (const server of [await ModernHttp.start(t), await legacyServer(t)]) {
    const entry = { url: server.url }
    const [one, other] = [await startBridge(t, entry, settings), await startBridge(t, entry, settings)]
    const isModern = server instanceof ModernHttp
    const clientOf = async (url: string, who: keyof typeof SECRETS) =>
      isModern
        ? modern(url, who)
        : (legacyClients['Streamable HTTP'] as (typeof legacyClients)[string])(url, headersOf(who))
    const made = await (await clientOf(one.url, 'alice'))(
      'tools/call',
      isModern ? { name: 'task', arguments: { polls: 9 } } : TASK_CALL,
    )
    const taskId = isModern ? (made['result'] as { taskId: string }).taskId : created(made)
    t.match(await (await clientOf(other.url, 'alice'))('tasks/get', { taskId }), { result: { taskId } })
    t.match(await (await clientOf(other.url, 'bob'))('tasks/get', { taskId }), UNKNOWN)
  }
})

t.test('credentials that are passed on tell callers apart, and those without one', async (t) => {
  const server = await legacyServer(t)
  const { url } = await startBridge(t, { url: server.url }, { auth: { passthrough: true } })
  const alice = await LegacyClient.open(url, { headers: headersOf('alice') })
  const task = created((await alice.request('tools/call', TASK_CALL)).message)
  for (const headers of [headersOf('bob'), {}]) {
    const other = await LegacyClient.open(url, { headers })
    t.match((await other.request('tasks/get', { taskId: task })).message, UNKNOWN)
    t.strictSame(listed((await other.request('tasks/list')).message), [])
  }
})
