/** Servers over HTTP that close the stream of a call before they have answered (SEP-1699). Numbers as in test/invariants.md. */
import t, { type Test } from 'tap'
import { ADA, all, NAME, talk } from '../support/asking.js'
import { startBridge } from '../support/bridge.js'
import { until } from '../support/eventually.js'
import { LegacyHttp, type Override } from '../support/legacy-http.js'

async function start(t: Test) {
  /** When streams were taken up again, and after which event. */
  const resumed: { at: number; after: unknown; session: unknown }[] = []
  const override: Override = ({ method, headers }) => {
    if (method === 'GET' && headers['last-event-id'] !== undefined)
      resumed.push({ at: Date.now(), after: headers['last-event-id'], session: headers['mcp-session-id'] })
    return false
  }
  const legacy = await LegacyHttp.start(t, { asks: true, override })
  const { url } = await startBridge(t, { url: legacy.url })
  return { legacy, resumed, ...talk(url) }
}

const progress = (value: number) => ({ tell: { method: 'notifications/progress', params: { progress: value } } })
const token = { meta: { progressToken: 't' } }

t.test('resumes a stream that a server closes, after its retry time, and the client sees one reply', async (t) => {
  const { steps, resumed, legacy } = await start(t)
  const started = Date.now()
  const answer = await steps([progress(1), { leave: 500 }, progress(2), { wait: 50 }, progress(3)], {}, token)
  t.match(answer.message.result, { resultType: 'complete', content: [{ text: '[]' }] })
  t.same(
    answer.messages.slice(0, -1).map(({ params }) => params),
    [1, 2, 3].map((value) => ({ progressToken: 't', progress: value })),
  )
  t.equal(answer.messages.length, 4)
  t.equal(resumed.length, 1)
  t.ok(Number(resumed[0]?.at) - started >= 500, 'not before the time that the server asked for')
  t.match(resumed[0], { after: /^event-/, session: 'session-1' })
  t.equal(legacy.of('tools/call').length, 1)
})

t.test('a server may close a stream any number of times without a message', async (t) => {
  const { steps, resumed, legacy, signal } = await start(t)
  const answering = steps([{ leave: 100 }, { wait: 'once' }, { leave: 100 }, { wait: 'twice' }])
  await until(() => resumed.length === 1, 'the stream being taken up')
  await signal('once')
  await until(() => resumed.length === 2, 'the stream being taken up again')
  await signal('twice')
  const answer = await answering
  t.match(answer.message.result, { resultType: 'complete' })
  t.equal(answer.messages.length, 1)
  t.equal(new Set(resumed.map(({ after }) => after)).size, 2)
  t.equal(legacy.of('tools/call').filter(({ body }) => body.includes('"steps"')).length, 1)
})

t.test('a question on a resumed stream belongs to its call', async (t) => {
  const { steps, again, legacy } = await start(t)
  const first = await steps([{ leave: 100 }, { ask: [NAME] }, { wait: 100 }])
  t.match(first.message.result, { resultType: 'input_required' })
  t.same((await again(first, all(first, ADA))).said, [ADA])
  const parked = await steps([{ ask: [NAME] }, { leave: 100 }, { wait: 100 }])
  t.same((await again(parked, all(parked, ADA))).said, [ADA], 'also while nobody reads')
  t.equal(legacy.of('tools/call').length, 2)
})
