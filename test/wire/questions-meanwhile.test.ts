/** What becomes of a call, and of what belongs to it, while its client thinks about what it was asked. */
import t, { type Test } from 'tap'
import {
  ADA,
  all,
  BLUE,
  COLOUR,
  MODEL,
  NAME,
  of,
  PARIS,
  type Round,
  startAsker,
  talk,
  WAYS,
} from '../support/asking.js'
import { startBridge } from '../support/bridge.js'
import { until } from '../support/eventually.js'
import { outlastIdleLimit } from '../support/idle.js'
import { LegacyHttp, type Plan } from '../support/legacy-http.js'
import { hears, listen, updated } from '../support/listening.js'
import { call, LOG_LEVEL } from '../support/modern.js'

type Json = Record<string, unknown>

async function start(t: Test, way: (typeof WAYS)[number], settings: object = {}, entry: object = {}, plan: Plan = {}) {
  const asker = await startAsker(t, way, plan)
  const { url } = await startBridge(t, { ...asker.server, ...entry }, settings)
  return { ...talk(url, asker), asker, url, answers: () => of(asker) }
}

const progress = (value: number) => ({ method: 'notifications/progress', params: { progress: value } })
const log = (level: string) => ({ method: 'notifications/message', params: { level, data: level } })
const token = (progressToken: unknown, more: Json = {}) => ({ meta: { progressToken, ...more } })
const progressOf = ({ messages }: Round) =>
  messages.filter(({ method }) => method === 'notifications/progress').map(({ params }) => params)
const logsOf = ({ messages }: Round) =>
  messages.filter(({ method }) => method === 'notifications/message').map(({ params }) => (params as Json)['data'])

for (const way of WAYS) {
  t.test(`progress of a server ${way} has the token of the current leg`, async (t) => {
    const { steps, again, signal, call } = await start(t, way)
    // A call that waits for a program to start gets progress about that.
    await call('tools/list', {})
    const tell = [progress(2), progress(3)]
    const parts = [{ tell: progress(1) }, { ask: [NAME], meanwhile: { after: 'go', tell } }, { tell: progress(4) }]
    const first = await steps(parts, {}, token('one'))
    t.same(progressOf(first), [{ progressToken: 'one', progress: 1 }])
    t.match(first.headers['content-type'], /event-stream/)
    t.match(first.message.result, { resultType: 'input_required' }, 'the question is the last event')
    await signal('go')
    const last = await again(first, all(first, ADA), {}, token(2))
    t.same(
      progressOf(last),
      [2, 3, 4].map((value) => ({ progressToken: 2, progress: value })),
    )
    t.same(last.said, [ADA])

    const silent = await steps(parts, {}, token('one'))
    await signal('go')
    t.equal((await again(silent, all(silent, ADA))).messages.length, 1, 'without a token there is no progress')
  })

  t.test(`logs of a server ${way} go to the leg that has requested them`, async (t) => {
    const { steps, again, signal, answers } = await start(t, way)
    const tell = [log('debug'), log('warning')]
    // On a pipe the log of one call could be that of any other that runs: here none does.
    const parts = [{ ask: [NAME], meanwhile: { after: 'meanwhile', tell } }, { wait: 'go' }, { tell: log('error') }]
    const lastLeg = async (first: Round, meta: Json) => {
      const before = answers().length
      const last = again(first, all(first, ADA), {}, { meta })
      await until(() => answers().length > before, 'the answer at the server')
      await signal('meanwhile')
      await signal('go')
      return last
    }
    t.same(logsOf(await lastLeg(await steps(parts), { [LOG_LEVEL]: 'warning' })), ['warning', 'error'])
    const other = await steps(parts, {}, { meta: { [LOG_LEVEL]: 'debug' } })
    t.same(logsOf(await lastLeg(other, {})), [])
  })

  t.test(`a session ${way} with a parked call does not end as idle`, async (t) => {
    const { steps, again, asker } = await start(t, way, { timeouts: { idle: 100 } })
    const first = await steps([{ ask: [NAME] }])
    await outlastIdleLimit(t)
    t.same((await again(first, all(first, ADA))).said, [ADA])
    t.equal(of(asker, 'initialize').length, 1)
  })

  t.test(`a session ${way} with a listener does not end as idle, either`, async (t) => {
    const { url, call, asker } = await start(t, way, { timeouts: { idle: 100 } })
    const stream = await listen(url, { resourceSubscriptions: ['test://x'] }, { capabilities: {} })
    await stream.has(1)
    await outlastIdleLimit(t)
    const touch = { name: 'touch', arguments: { uris: ['test://x'] } }
    await call('tools/call', touch, { meta: { 'io.modelcontextprotocol/clientCapabilities': {} } })
    t.same(await hears(stream, 1), [updated('test://x')])
    t.equal(of(asker, 'initialize').length, 1)
  })

  t.test(`a parked call ${way} does not count as running`, async (t) => {
    const { steps, again, call } = await start(t, way, { limits: { calls: 1, callsPerServer: 1 } })
    const first = await steps([{ ask: [NAME] }])
    t.equal((await call('tools/list', {})).status, 200)
    const second = await steps([{ ask: [COLOUR] }])
    t.same((await again(second, all(second, BLUE))).said, [BLUE])
    t.same((await again(first, all(first, ADA))).said, [ADA])
  })

  t.test(`a session for one call ${way} stays until that is answered`, async (t) => {
    const { steps, again, asker } = await start(t, way, {}, { session: 'per-request' })
    const first = await steps([{ ask: [NAME] }, { ask: [MODEL] }])
    const second = await again(first, all(first, ADA))
    t.same((await again(second, all(second, PARIS))).said, [ADA, PARIS])
    t.equal(of(asker, 'initialize').length, 1)
    t.match((await steps([])).message.result, { resultType: 'complete' })
    t.equal(of(asker, 'initialize').length, 2)
  })

  t.test(`a fetched answer can be fetched again ${way} while there is room`, async (t) => {
    const { steps, again, answers } = await start(t, way, { limits: { parked: 2 } })
    const rounds: Round[] = []
    for (let n = 0; n < 3; n++) {
      const round = await steps([{ ask: [NAME] }], { n })
      t.same((await again(round, all(round, ADA))).said, [ADA])
      rounds.push(round)
    }
    const [first, ...others] = rounds
    for (const round of others) t.same((await again(round, all(round, ADA))).said, [ADA])
    if (first) t.equal((await again(first, all(first, ADA))).message.error?.code, -32602)
    t.equal(answers().length, 3)
  })
}

t.test('a session for one call over HTTP ends when that is answered, and no sooner', async (t) => {
  const legacy = await LegacyHttp.start(t, { asks: true })
  const { url } = await startBridge(t, { url: legacy.url, session: 'per-request' })
  const { steps, again } = talk(url)
  const ended = () => legacy.received.filter(({ method }) => method === 'DELETE').length
  await call(url, 'server/discover')
  await until(() => ended() === 1, 'the end of the session that said what there is')
  const first = await steps([{ ask: [NAME] }])
  t.equal(ended(), 1)
  await again(first, all(first, ADA))
  await until(() => ended() === 2, 'the end of the session')
})

t.test('answers a ping of a server while its client is thinking', async (t) => {
  const { steps, again, asker } = await start(t, 'over stdio')
  const question = { ...NAME, params: { ...NAME.params, _meta: { progressToken: 'patience', 'vendor/key': 1 } } }
  const first = await steps([{ ask: [question, COLOUR] }])
  const told = Object.values(first.requests).find(({ params }) => params?.['message'] === 'Your name?')
  t.same(told?.params?.['_meta'], { 'vendor/key': 1 }, 'the token is the server’s own affair')
  const notes = () => of(asker, 'notifications/progress').map(({ params }) => params)
  await until(() => notes().length > 0, 'the sign of life')
  t.same(notes(), [{ progressToken: 'patience', progress: 1 }])
  await again(first, all(first, ADA))
})

t.test('answers a server of an older revision in that revision', async (t) => {
  const older = await start(t, 'over stdio', {}, {}, { revision: '2025-06-18' })
  const text = (said: string) => ({ type: 'text', text: said })
  const answer = (content: unknown) => ({ role: 'assistant', model: 'm', content })
  const rows: [given: unknown, told: object][] = [
    [text('one'), answer(text('one'))],
    [[text('one')], answer(text('one'))],
    [[text('one'), text('two')], answer(text('one\ntwo'))],
    [[text('one'), { type: 'image', data: '', mimeType: 'image/png' }], { error: { code: -32603 } }],
  ]
  for (const [given, told] of rows) {
    const round = await older.steps([{ ask: [MODEL] }])
    const last = await older.again(round, all(round, answer(given)))
    t.match(last.said, [told], JSON.stringify(given))
  }
  const newest = await start(t, 'over stdio')
  const blocks = [text('one'), text('two')]
  const round = await newest.steps([{ ask: [MODEL] }])
  t.same((await newest.again(round, all(round, answer(blocks)))).said, [answer(blocks)])
  const extra = await newest.steps([{ ask: [NAME] }])
  const more = {
    ...ADA,
    resultType: 'complete',
    other: 1,
    _meta: { 'io.modelcontextprotocol/serverInfo': {}, 'v/k': 1 },
  }
  t.same(
    (await newest.again(extra, all(extra, more))).said,
    [{ ...ADA, _meta: { 'v/k': 1 } }],
    'no more than an answer has',
  )
})
