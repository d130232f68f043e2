/**
 * Two concurrent calls of one principal to a program whose questions name no call: both calls end, and with `questions: exact` each gets its
 * own questions.
 */
import t from 'tap'
import { ADA, all, NAME, of, startAsker, talk } from '../support/asking.js'
import { startBridge } from '../support/bridge.js'
import { until } from '../support/eventually.js'

const BOB = { action: 'accept', content: { name: 'Bob' } }

t.test('a call whose question went to another call ends, whenever the other one continues', async (t) => {
  const asker = await startAsker(t, 'over stdio')
  const { url } = await startBridge(t, asker.server)
  const here = talk(url)
  // The first question belongs to the second call, but the bridge assigns it to the first.
  const first = here.steps([{ wait: 'go on' }, { ask: [NAME] }])
  await until(() => of(asker, 'tools/call').length === 1, 'the first call at the server')
  const second = here.steps([{ ask: [NAME] }])
  const one = await first
  t.equal(one.status, 200)
  await here.signal('go on')
  const two = await second
  // The first client answers, which the server uses for the second call. The question of the first call went to the second client.
  const retried = await here.again(one, all(one, ADA))
  t.equal(retried.message.result?.['resultType'], 'input_required', 'nobody waits for the client of the other call')
  const ended = await here.again(retried, all(retried, ADA))
  t.same(ended.said, [ADA])
  const other = await here.again(two, all(two, BOB))
  t.ok(other.message.result, 'the other one gets its answer, too')
  t.equal(of(asker, 'tools/call').length, 3, 'both and the signal: nothing is sent twice')
})

t.test('with questions: exact, calls of a tool that has asked get their own questions', async (t) => {
  const asker = await startAsker(t, 'over stdio')
  const { url } = await startBridge(t, { ...asker.server, questions: 'exact' })
  const here = talk(url)
  const known = await here.steps([{ ask: [NAME] }])
  await here.again(known, all(known, ADA))
  const rounds = await Promise.all([
    here.steps([{ wait: 300 }, { ask: [{ ...NAME, params: { ...NAME.params, message: 'of the first?' } }] }]),
    here.steps([{ ask: [{ ...NAME, params: { ...NAME.params, message: 'of the second?' } }] }]),
  ])
  const messages = rounds.map(({ message }) => JSON.stringify(message.result?.['inputRequests']))
  t.match(messages[0], /of the first\?/)
  t.match(messages[1], /of the second\?/)
  const ends = await Promise.all(rounds.map((round, i) => here.again(round, all(round, i === 0 ? ADA : BOB))))
  t.same(
    ends.map(({ said }) => said),
    [[ADA], [BOB]],
  )
})
