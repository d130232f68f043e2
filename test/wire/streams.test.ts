/** Progress, logs and cancellation: whose they are, and that nobody else gets them. Numbers are those of test/invariants.md. */
import t from 'tap'
import { startBridge } from '../support/bridge.js'
import { holdTimers } from '../support/clock.js'
import { until } from '../support/eventually.js'
import { LegacyHttp } from '../support/legacy-http.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { type Answer, call, LOG_LEVEL } from '../support/modern.js'

/** A time limit of calls, which no other timer has. */
const CALL = 1_234_567

/** Milliseconds that a call takes for others to begin and to log in the meantime. */
const MEANWHILE = 5_000

const progressOf = ({ messages }: Answer) =>
  messages
    .filter(({ method }) => method === 'notifications/progress')
    .map(({ params }) => params as { progressToken: unknown; progress: number })
const logsOf = ({ messages }: Answer) =>
  messages
    .filter(({ method }) => method === 'notifications/message')
    .map(({ params }) => (params as { level: string }).level)

t.test('streams over HTTP have logs and progress', async (t) => {
  const legacy = await LegacyHttp.start(t)
  await shared(t, { url: legacy.url }, (method) => legacy.of(method).map(({ message }) => message['params']))

  t.test('logs on the stream of the session go to the one call that runs', async (t) => {
    const { url } = await startBridge(t, { url: legacy.url })
    const args = { levels: ['debug', 'warning'], standalone: true, ms: 100 }
    const answer = await call(url, 'tools/call', { name: 'log', arguments: args }, { meta: { [LOG_LEVEL]: 'info' } })
    t.same(logsOf(answer), ['warning'])
  })

  t.test('a stream has neither ids nor retry times, and no proxy may buffer it', async (t) => {
    const { url } = await startBridge(t, { url: legacy.url })
    const answer = await call(url, 'tools/call', { name: 'progress', arguments: {} }, { meta: { progressToken: 1 } })
    t.match(answer.headers['content-type'], /^text\/event-stream/)
    t.notMatch(answer.text, /^(?:id|retry):/m)
    t.equal(answer.headers['x-accel-buffering'], 'no')
    t.equal(answer.headers['cache-control'], 'no-store, no-transform')
  })
})

t.test('streams over stdio have logs and progress', async (t) => {
  const stdio = legacyStdio(t)
  await shared(t, stdio.server, (wanted) =>
    stdio
      .messages()
      .filter(({ method }) => method === wanted)
      .map(({ params }) => params),
  )
})

async function shared(t: import('tap').Test, server: object, received: (method: string) => unknown[]): Promise<void> {
  const { url } = await startBridge(t, server)
  const log = (levels: readonly string[], ms: number, logLevel?: string) => {
    const params = { name: 'log', arguments: { levels, ms, standalone: true } }
    return call(url, 'tools/call', params, { meta: logLevel === undefined ? {} : { [LOG_LEVEL]: logLevel } })
  }

  t.test('logs that name no call all arrive, each once, at the oldest call that requested them', async (t) => {
    const running: Promise<Answer>[] = []
    const begin = async (...args: Parameters<typeof log>) => {
      const before = received('tools/call').length
      running.push(log(...args))
      await until(() => received('tools/call').length > before, 'the call at the server')
    }
    await begin([], MEANWHILE)
    await begin([], MEANWHILE, 'error')
    await begin(['info'], MEANWHILE, 'info')
    await begin(['error', 'warning'], 200, 'debug')
    await begin(['debug'], 200)
    t.same((await Promise.all(running)).map(logsOf), [[], ['error'], ['info', 'warning'], ['debug'], []])
  })

  const progress = (args: object, progressToken?: unknown) =>
    call(
      url,
      'tools/call',
      { name: 'progress', arguments: args as Record<string, unknown> },
      { meta: progressToken === undefined ? {} : { progressToken } },
    )

  t.test('a call that requests no logs gets none, and an unknown level is an error', async (t) => {
    t.same(logsOf(await call(url, 'tools/call', { name: 'log', arguments: {} })), [])
    const loud = await call(url, 'tools/call', { name: 'log', arguments: {} }, { meta: { [LOG_LEVEL]: 'loud' } })
    t.match({ status: loud.status, code: loud.message.error?.code }, { status: 400, code: -32602 })
  })

  t.test('a call with level warning gets warnings and worse, before the result', async (t) => {
    const answer = await call(
      url,
      'tools/call',
      { name: 'log', arguments: { levels: ['debug', 'warning', 'info', 'error'] } },
      { meta: { [LOG_LEVEL]: 'warning' } },
    )
    t.same(logsOf(answer), ['warning', 'error'])
    t.ok(answer.message.result, 'the result is last')
  })

  t.test("progress has the client's own token, increases, and comes before the result, or not at all", async (t) => {
    for (const token of ['t', '', 0, 7, 'x'.repeat(100)]) {
      const answer = await progress({}, token)
      t.same(
        progressOf(answer).map(({ progress }) => progress),
        [1, 2, 3, 4, 5],
        String(token),
      )
      t.ok(progressOf(answer).every(({ progressToken }) => progressToken === token))
      t.ok(answer.message.result)
    }
    t.same(
      progressOf(await progress({ values: [1, 1, 3, 2, 4] }, 't')).map(({ progress }) => progress),
      [1, 3, 4],
    )
    const silent = await progress({})
    t.same(silent.messages.length, 1)
    t.match(silent.headers['content-type'], /^application\/json/)
    for (const stray of [1, 't', '0', -1, 999_999]) {
      t.ok(
        progressOf(await progress({ stray, ms: 30 }, 't')).every(({ progress }) => progress !== 9),
        `stray ${stray}`,
      )
    }
  })

  t.test('equal ids and tokens do not meet', async (t) => {
    const answers = await Promise.all(
      Array.from({ length: 10 }, (_, n) =>
        call(
          url,
          'tools/call',
          { name: 'progress', arguments: { values: [n + 1, n + 100], ms: 20 * (10 - n) } },
          { id: 1, meta: { progressToken: 't' } },
        ),
      ),
    )
    answers.forEach((answer, n) => {
      t.same(
        progressOf(answer).map(({ progress }) => progress),
        [n + 1, n + 100],
      )
      t.equal(answer.message['id'], 1)
    })
    const said = await Promise.all(
      Array.from({ length: 10 }, (_, n) =>
        call(url, 'tools/call', { name: 'wait', arguments: { ms: 10 * (10 - n), say: `say ${n}` } }, { id: 1 }),
      ),
    )
    said.forEach(({ text }, n) => t.ok(text.includes(`say ${n}"`)))
  })

  t.test('a client that disconnects in mid-call cancels it, once, with the id that the server knows', async (t) => {
    const before = received('notifications/cancelled').length
    const arrived = received('tools/call').length
    const controller = new AbortController()
    const leaving = call(
      url,
      'tools/call',
      { name: 'progress', arguments: { ms: 60_000 } },
      { id: 0, meta: { progressToken: 't' }, signal: controller.signal },
    )
    until(() => received('tools/call').length > arrived, 'the call at the server').then(
      () => controller.abort(),
      t.threw,
    )
    await t.rejects(leaving, { code: 'ABORT_ERR' })
    await until(() => received('notifications/cancelled').length > before, 'the cancellation')
    const quiet = new AbortController()
    const waiting = call(url, 'tools/call', { name: 'wait', arguments: { ms: 60_000 } }, { signal: quiet.signal })
    until(() => received('tools/call').length > arrived + 1, 'the call at the server').then(
      () => quiet.abort(),
      t.threw,
    )
    await t.rejects(waiting, { code: 'ABORT_ERR' })
    await until(
      () => received('notifications/cancelled').length > before + 1,
      'the cancellation of a call that had said nothing yet',
    )
    t.equal((await call(url, 'tools/list')).status, 200)
    t.equal(received('notifications/cancelled').length, before + 2)
    for (const params of received('notifications/cancelled'))
      t.ok(Number((params as { requestId: number }).requestId) >= 1)
  })

  t.test('cancels a call that takes too long, also at the server', async (t) => {
    const before = received('notifications/cancelled').length
    const timeLimit = holdTimers(t, CALL)
    const impatient = await startBridge(t, server, { timeouts: { call: CALL } })
    const arrived = received('tools/call').length
    const answering = call(impatient.url, 'tools/call', { name: 'wait', arguments: { ms: 60_000 } })
    await until(() => received('tools/call').length > arrived, 'the call at the server')
    timeLimit.pass()
    const answer = await answering
    t.equal(answer.status, 200)
    t.match(answer.message.error, { code: -32603, data: { reason: 'upstream_timeout', outcome: 'unknown' } })
    await until(() => received('notifications/cancelled').length > before)
    const alive = await call(impatient.url, 'tools/call', { name: 'wait', arguments: { ms: 100 } })
    t.ok(alive.message.result)
  })

  t.test('a slow answer becomes a stream with keep-alive comments', async (t) => {
    const patient = await startBridge(t, server, { timeouts: { commitAfter: 50, keepAlive: 50 } })
    const answer = await call(patient.url, 'tools/call', { name: 'wait', arguments: { ms: 1_500 } })
    t.match(answer.headers['content-type'], /^text\/event-stream/)
    t.match(answer.text, /^: keep-alive$/m)
    t.ok(answer.message.result)
    const failing = await call(patient.url, 'tools/call', { name: 'crash', arguments: {} })
    t.equal(failing.message.error?.code, -32603)
  })

  t.test('refuses a question that the client did not declare, and names the missing capability', async (t) => {
    const ask = (args: object) =>
      call(url, 'tools/call', { name: 'ask', arguments: { method: 'elicitation/create', ...args } })
    const answered = await ask({})
    t.match(answered.text, /-32601/, 'the server hears that nobody knows the method')
    const failed = await ask({ strict: true })
    t.equal(failed.status, 400)
    t.match(failed.message.error, { code: -32021, data: { requiredCapabilities: { elicitation: { form: {} } } } })
    const sampling = await ask({ method: 'sampling/createMessage', strict: true })
    t.match(sampling.message.error, { code: -32021, data: { requiredCapabilities: { sampling: {} } } })
    t.match((await ask({ method: 'ping' })).text, /"text":"\{\}"/, 'ping is answered')
  })
}
