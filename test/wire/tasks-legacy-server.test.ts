/** Tasks of legacy servers for modern clients: those that know the extension, and those that do not. */
import t, { type Test } from 'tap'
import {
  ABLE,
  ADA,
  all,
  BLUE,
  COLOUR,
  codeOf,
  MODEL,
  NAME,
  of,
  PARIS,
  type Round,
  type Step,
  startAsker,
  talk,
  WAYS,
} from '../support/asking.js'
import { startBridge } from '../support/bridge.js'
import { until, untilFound } from '../support/eventually.js'
import type { Override, Plan } from '../support/legacy-http.js'
import { hears, listen } from '../support/listening.js'
import { CAPABILITIES, type CallOptions, SERVER_INFO } from '../support/modern.js'
import { problems } from '../support/schema.js'

type Json = Record<string, unknown>

const TASKS = 'io.modelcontextprotocol/tasks'
const KNOWING = { ...ABLE, extensions: { [TASKS]: {} } }
const TOKENS = { alice: 'token-of-alice-0123456789', bob: 'token-of-bob-0123456789' }
const as = (who: keyof typeof TOKENS) => ({ headers: { authorization: `Bearer ${TOKENS[who]}` } })

interface Settings {
  plan?: Plan
  tasks?: string
  capabilities?: object
  settings?: object
}

async function start(t: Test, way: (typeof WAYS)[number], more: Settings = {}) {
  const { plan = {}, tasks, capabilities = KNOWING, settings = {} } = more
  const asker = await startAsker(t, way, plan)
  const started = await startBridge(t, { ...asker.server, ...(tasks && { tasks }) }, settings)
  const client = talk(started.url, { by: asker.by, capabilities })
  const job = (steps: readonly Step[] = [], args: Json = {}, options: CallOptions = {}) =>
    client.call('tools/call', { name: 'job', arguments: { steps, ...args } }, options)
  const about = (method: string, made: Round, more: Json = {}, options: CallOptions = {}) =>
    client.call(method, { taskId: made.message.result?.['taskId'], ...more }, options)
  const get = (made: Round, options?: CallOptions) => about('tasks/get', made, {}, options)
  /** Looks until the task stands so. */
  const when = (made: Round, status: string, options?: CallOptions) =>
    untilFound(async () => {
      const found = await get(made, options)
      return found.message.result?.['status'] === status ? found : undefined
    }, `a task that is ${status}`)
  const calls = () => of(asker, 'tools/call').map(({ params }) => params as Json)
  return { ...client, ...started, asker, job, about, get, when, calls, answers: () => of(asker) }
}

for (const way of WAYS) {
  t.test(`a tool that requires a task is one ${way}, for a client that knows tasks`, async (t) => {
    const { job, get, about, when, call, calls, asker } = await start(t, way)
    const discovered = await call('server/discover', {})
    const capabilities = discovered.message.result?.['capabilities'] as Json
    t.same(capabilities['extensions'], { [TASKS]: {} })
    t.notOk('tasks' in capabilities)

    const made = await job([{ wait: 'end' }], { n: 1 }, { meta: { progressToken: 'p' } })
    t.equal(made.status, 200)
    t.same(problems('ext-tasks', 'CreateTaskResult', made.message.result), [])
    const { resultType, status, ttlMs, pollIntervalMs, taskId, task } = made.message.result as Json
    t.same(
      { resultType, status, ttlMs, pollIntervalMs },
      { resultType: 'task', status: 'working', ttlMs: 3_600_000, pollIntervalMs: 10 },
    )
    t.equal(task, undefined)
    t.notMatch(taskId, /task-/, 'the id of the server is nobody’s business')
    t.same(
      calls().map(({ task }) => task),
      [{ ttl: 3_600_000 }],
    )
    const working = await get(made)
    t.match(working.message.result, { resultType: 'complete', status: 'working', taskId })
    t.same(problems('ext-tasks', 'GetTaskResult', working.message.result), [])
    await call('tools/call', { name: 'signal', arguments: { name: 'end' } })
    const ended = await when(made, 'completed')
    t.same(problems('ext-tasks', 'GetTaskResult', ended.message.result), [])
    t.match(ended.message.result, {
      resultType: 'complete',
      status: 'completed',
      taskId,
      result: { resultType: 'complete', content: [{ text: '[]' }] },
      _meta: { [SERVER_INFO]: { name: 'scripted' } },
    })
    t.notMatch(ended.text, /related-task/)
    const { result, inputRequests, requestState } = ended.message.result as Json
    t.same([inputRequests, requestState], [undefined, undefined])
    t.same((await get(made)).message.result?.['result'], result, 'as often as it is asked for')

    for (const method of ['tasks/result', 'tasks/list'])
      t.same(codeOf(await about(method, made)), { status: 404, code: -32601 }, method)
    const again = await job([], { n: 2 })
    t.match(again.message.result, { resultType: 'task' })
    t.equal(calls().filter(({ name }) => name === 'job').length, 2)
    t.equal(of(asker, 'tools/list').length, 1, 'what the tools are is asked for once')
  })

  t.test(`the end of a task has the form of the extension ${way}`, async (t) => {
    const { job, when } = await start(t, way)
    const tool = await when(await job([], { isError: true }), 'completed')
    t.match(
      tool.message.result?.['result'],
      { isError: true, resultType: 'complete' },
      'a tool that fails has a result',
    )
    const own = await when(await job([{ fail: { code: 4711, message: 'It broke', data: { n: 1 } } }]), 'failed')
    t.same(own.message.result?.['error'], { code: 4711, message: 'It broke', data: { n: 1 } })
    t.same(problems('ext-tasks', 'GetTaskResult', own.message.result), [])
    const reserved = await when(
      await job([{ fail: { code: -32042, message: 'x', data: { url: 'canary' } } }]),
      'failed',
    )
    t.same(reserved.message.result?.['error'], { code: -32603, message: 'x', data: { upstreamCode: -32042 } })
    for (const ended of [own, reserved]) t.notOk('result' in (ended.message.result ?? {}))
  })

  t.test(`a question of a task ${way} is asked when it is polled, and answered by an update`, async (t) => {
    const { job, get, about, when, answers } = await start(t, way)
    const made = await job([{ ask: [NAME, MODEL] }, { ask: [COLOUR] }])
    const asking = await when(made, 'input_required')
    t.same(problems('ext-tasks', 'GetTaskResult', asking.message.result), [])
    const both = await untilAsked(get, made, 2)
    t.same(Object.values(both).sort(byMessage), [told(NAME), told(MODEL)].sort(byMessage))
    t.notMatch(JSON.stringify(both), /related-task/)
    const [name = '', model = ''] = ['elicitation/create', 'sampling/createMessage'].map((method) =>
      Object.keys(both).find((key) => both[key]?.['method'] === method),
    )
    t.same(answers(), [])
    const bad = await about('tasks/update', made, { inputResponses: { [name]: 42, other: ADA } })
    t.match(bad.message.result, { resultType: 'complete' }, 'what is no answer is passed over')
    t.same(codeOf(await about('tasks/update', made, { inputResponses: null })), { status: 200, code: -32602 })
    t.same(answers(), [])
    const update = await about('tasks/update', made, { inputResponses: { [name]: ADA } })
    t.same(problems('ext-tasks', 'UpdateTaskResult', update.message.result), [])
    await until(() => answers().length === 1, 'the answer')
    t.same(Object.keys(await untilAsked(get, made, 1)), [model])
    await about('tasks/update', made, { inputResponses: { [model]: PARIS, [name]: BLUE } })
    const next = await untilAsked(get, made, 1, model)
    const [colour = ''] = Object.keys(next)
    t.notOk([name, model].includes(colour), 'a key is used once')
    // Right away, before anything has been waited for.
    await about('tasks/update', made, { inputResponses: { [colour]: BLUE } })
    const ended = await when(made, 'completed')
    t.match(ended.message.result?.['result'], { content: [{ text: JSON.stringify([ADA, PARIS, BLUE]) }] })
    t.equal(answers().length, 3)
  })

  t.test(`a task with one question after the other ${way} is answered without delay`, async (t) => {
    const { job, get, about, when } = await start(t, way)
    const steps = Array.from({ length: 5 }, (_, n) => ({
      ask: [{ ...NAME, params: { ...NAME.params, message: `${n}` } }],
    }))
    const made = await job(steps)
    const answered = new Set<string>()
    for (let looks = 0; answered.size < 5 && looks < 500; looks++) {
      const { requests } = await get(made)
      const [open] = Object.entries(requests).filter(([key]) => !answered.has(key))
      if (!open) continue
      const [key, { params }] = open
      answered.add(key)
      await about('tasks/update', made, {
        inputResponses: { [key]: { action: 'accept', content: { n: String(params?.['message']) } } },
      })
    }
    const ended = await when(made, 'completed')
    const said = Array.from({ length: 5 }, (_, n) => ({ action: 'accept', content: { n: String(n) } }))
    t.match(ended.message.result?.['result'], { content: [{ text: JSON.stringify(said) }] })
  })

  t.test(`the same tool is an ordinary call ${way} for a client that does not know tasks`, async (t) => {
    const { job, again, calls } = await start(t, way, { capabilities: ABLE })
    const plain = await job([{ wait: 20 }])
    t.match(plain.message.result, { resultType: 'complete', content: [{ text: '[]' }] })
    t.notMatch(plain.text, /related-task|taskId/)
    t.same(
      calls().map(({ task }) => task),
      [{ ttl: 3_600_000 }],
    )
    const asking = await job([{ ask: [NAME, MODEL] }, { ask: [COLOUR] }])
    t.match(asking.message.result, { resultType: 'input_required' })
    t.same(Object.values(asking.requests).sort(byMessage), [told(NAME), told(MODEL)].sort(byMessage))
    const byMethod = Object.fromEntries(
      asking.keys.map((key) => [key, asking.requests[key]?.method === NAME.method ? ADA : PARIS]),
    )
    const second = await again(asking, byMethod)
    t.same(Object.values(second.requests), [told(COLOUR)])
    t.same((await again(second, all(second, BLUE))).said, [ADA, PARIS, BLUE])
    t.match((await job([], { isError: true })).message.result, { resultType: 'complete', isError: true })
    t.match((await job([{ fail: { code: 4711, message: 'It broke' } }])).message.error, {
      code: 4711,
      message: 'It broke',
    })
  })

  t.test(`a client that disconnects, or does not return, cancels the task that it waited for ${way}`, async (t) => {
    const { job, asker } = await start(t, way, { capabilities: ABLE, settings: { timeouts: { answer: 1_000 } } })
    const leaving = new AbortController()
    const waiting = job([{ wait: 'never' }], {}, { signal: leaving.signal })
    await until(() => of(asker, 'tasks/result').length === 1, 'the task to be waited for')
    leaving.abort()
    await t.rejects(waiting, { code: 'ABORT_ERR' })
    await until(() => of(asker, 'tasks/cancel').length === 1, 'the end of the task')
    await job([{ ask: [NAME] }])
    await until(() => of(asker, 'tasks/cancel').length === 2, 'the end of the other')
    t.match(of(asker), [{ result: { action: 'cancel' } }])
  })

  t.test(`a task ${way} is visible only to its owner, and only with the tasks capability`, async (t) => {
    const { job, get, about, call, asker } = await start(t, way, { settings: { auth: { tokens: TOKENS } } })
    const made = await job([{ wait: 'never' }], {}, as('alice'))
    const taskId = String(made.message.result?.['taskId'])
    t.match((await get(made, as('alice'))).message.result, { status: 'working' })
    const before = asker.messages().length
    for (const method of ['tasks/get', 'tasks/update', 'tasks/cancel']) {
      const more = method === 'tasks/update' ? { inputResponses: {} } : {}
      const unknowing = await about(method, made, more, { ...as('alice'), meta: { [CAPABILITIES]: ABLE } })
      t.same(codeOf(unknowing), { status: 400, code: -32021 }, `${method} without the extension`)
      t.same(unknowing.message.error?.data?.['requiredCapabilities'], { extensions: { [TASKS]: {} } })
      const foreign = await about(method, made, more, as('bob'))
      t.same(codeOf(foreign), { status: 200, code: -32602 }, `${method} of another principal`)
      for (const other of [
        '',
        'x',
        'task-1',
        `${taskId}A`,
        taskId.slice(0, -1),
        `${taskId.slice(0, -1)}${taskId.endsWith('A') ? 'B' : 'A'}`,
      ]) {
        const unknown = await call(method, { taskId: other, ...more }, as('alice'))
        t.same(codeOf(unknown), { status: 200, code: -32602 }, `${method} of ${JSON.stringify(other)}`)
        t.equal(unknown.message.error?.message, foreign.message.error?.message, 'which of them it is, is not told')
      }
      const { headers } = as('alice')
      const misnamed = await about(method, made, more, { headers: { ...headers, 'mcp-name': 'other' } })
      t.same(codeOf(misnamed), { status: 400, code: -32020 }, `${method} under another name`)
      const unnamed = await about(method, made, more, { headers: { ...headers, 'mcp-name': undefined } })
      t.same(codeOf(unnamed), { status: 400, code: -32020 }, `${method} without a name`)
    }
    t.equal(asker.messages().length, before, 'the server has heard nothing of that')
  })

  t.test(`a task that is cancelled ${way} ends, and can be cancelled again`, async (t) => {
    const { job, about, when, asker } = await start(t, way)
    const made = await job([{ wait: 'never' }])
    const first = await about('tasks/cancel', made)
    t.same(problems('ext-tasks', 'CancelTaskResult', first.message.result), [])
    const cancelled = await when(made, 'cancelled')
    t.same(problems('ext-tasks', 'GetTaskResult', cancelled.message.result), [])
    t.match((await about('tasks/cancel', made)).message.result, { resultType: 'complete' })
    const done = await job([])
    await when(done, 'completed')
    t.match((await about('tasks/cancel', done)).message.result, { resultType: 'complete' })
    t.equal(of(asker, 'tasks/cancel').length, 3)
    t.match((await when(done, 'completed')).message.result?.['result'], { content: [{ text: '[]' }] })
  })

  t.test(`the configuration decides which calls are tasks ${way}`, async (t) => {
    const chore = { name: 'chore', arguments: {} }
    const auto = await start(t, way)
    await auto.call('tools/list', {})
    t.match((await auto.call('tools/call', chore)).message.result, { resultType: 'complete' })

    const eager = await start(t, way, { tasks: 'async' })
    await eager.call('tools/list', {})
    const made = await eager.call('tools/call', chore)
    t.match(made.message.result, { resultType: 'task' })
    await eager.when(made, 'completed')
    const unknowing = await eager.call('tools/call', chore, { meta: { [CAPABILITIES]: ABLE } })
    t.match(unknowing.message.result, { resultType: 'complete' }, 'nobody gets one who does not know what it is')

    const off = await start(t, way, { tasks: 'off' })
    t.notMatch((await off.call('server/discover', {})).text, /tasks/)
    t.equal((await off.job()).message.error?.code, -32601)
    t.same(codeOf(await off.call('tasks/get', { taskId: 'x' })), { status: 404, code: -32601 })
    t.match(off.calls(), [{ name: 'job', task: undefined }])
  })

  t.test(`a listener of a task ${way} gets each change of its state`, async (t) => {
    const { url, job, about, call } = await start(t, way)
    const made = await job([{ ask: [NAME] }, { wait: 'end' }])
    const taskId = made.message.result?.['taskId']
    const stream = await listen(url, { taskIds: [taskId, 'unknown'] }, { id: 'l', capabilities: KNOWING })
    await stream.has(1)
    t.match(stream.messages[0], { params: { notifications: { taskIds: [taskId] } } })
    t.notMatch(stream.messages[0], { params: { notifications: { taskIds: ['unknown'] } } })
    const asked = () => stream.messages.find(({ params }) => (params as Json)['status'] === 'input_required')
    await until(() => asked() !== undefined, `what the task asks (${stream.text})`)
    const { inputRequests } = asked()?.['params'] as { inputRequests: Json }
    const [key = ''] = Object.keys(inputRequests)
    await about('tasks/update', made, { inputResponses: { [key]: ADA } })
    await call('tools/call', { name: 'signal', arguments: { name: 'end' } })
    const ended = () => stream.messages.find(({ params }) => (params as Json)['status'] === 'completed')
    await until(() => ended() !== undefined, `the end of the task (${stream.text})`)
    for (const message of stream.messages.slice(1)) {
      t.same(problems('ext-tasks', 'TaskStatusNotification', message), [])
      t.match(message, { method: 'notifications/tasks', params: { taskId } })
    }
    t.match(ended(), { params: { result: { content: [{ text: JSON.stringify([ADA]) }] } } })
    t.ok((await hears(stream, 2)).length >= 2)
    t.notOk(stream.over, 'a subscription goes on')
    stream.leave()
  })

  t.test(`tasks ${way} leave room for calls, however many there are`, async (t) => {
    const { job, steps, again, when } = await start(t, way)
    const made: Round[] = []
    for (let n = 0; n < 12; n++) made.push(await job([], { n }))
    for (const one of made) await when(one, 'completed')
    const asking = await steps([{ ask: [NAME] }])
    t.same((await again(asking, all(asking, ADA))).said, [ADA])
  })

  t.test(`a question of a call ${way} is not taken for one of a task`, async (t) => {
    const { job, get, steps, again, about, when } = await start(t, way)
    const made = await job([{ ask: [COLOUR] }])
    const ofTask = await untilAsked(get, made, 1)
    const asking = await steps([{ ask: [NAME] }])
    t.same(Object.values(asking.requests), [told(NAME)])
    t.same((await get(made)).message.result?.['inputRequests'], ofTask)
    t.same((await again(asking, all(asking, ADA))).said, [ADA])
    const [key = ''] = Object.keys(ofTask)
    await about('tasks/update', made, { inputResponses: { [key]: BLUE } })
    t.match((await when(made, 'completed')).message.result?.['result'], { content: [{ text: JSON.stringify([BLUE]) }] })
  })

  t.test(`a task of a server ${way} that is gone is reported as gone`, async (t) => {
    const { job, get, call, asker, bridge } = await start(t, way, { plan: { crashOnTask: true } })
    const made = await job([{ wait: 'never' }])
    t.match(made.message.result, { resultType: 'task' })
    const dying = await get(made)
    t.equal(dying.message.error?.code, -32603)
    t.match(dying.message.error?.data, { reason: 'upstream_closed' }, 'it is not the bridge that has failed')
    t.equal((await call('tools/list', {})).status, 200)
    t.ok(of(asker, 'tasks/get').length >= 1)
    await bridge.close()
  })
}

t.test('a task over HTTP whose session the server has forgotten is unknown', async (t) => {
  let lost = false
  const override: Override = ({ headers }, response) => {
    if (!lost || headers['mcp-session-id'] !== 'session-1') return false
    response.writeHead(404).end()
    return true
  }
  const { job, get } = await start(t, 'on the stream of the session over HTTP', { plan: { override } })
  const made = await job([{ wait: 'never' }])
  lost = true
  t.same(codeOf(await get(made)), { status: 200, code: -32602 })
})

type Get = (made: Round) => Promise<Round>

/** Looks until the task asks so many things, other than what has been answered. */
async function untilAsked(get: Get, made: Round, count: number, ...answered: string[]): Promise<Round['requests']> {
  return untilFound(async () => {
    const { requests } = await get(made)
    const open = Object.entries(requests).filter(([key]) => !answered.includes(key))
    return open.length === count ? Object.fromEntries(open) : undefined
  }, `${count} questions of the task`)
}

/** A question as a modern client is asked it. */
function told({ method, params }: typeof NAME) {
  return { method, params: method === 'elicitation/create' ? { mode: 'form', ...params } : params }
}

function byMessage(a: object, b: object): number {
  return JSON.stringify(a) < JSON.stringify(b) ? -1 : 1
}
