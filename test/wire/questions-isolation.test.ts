/**
 * Whose a question is: sessions with servers that ask belong to one principal and one set of capabilities, and what is asked
 * in the middle of a call is asked of its client. Numbers are those of docs/invariants.md.
 */
import t, { type Test } from 'tap'
import { parseObject } from '../../src/rpc/splice.js'
import {
  ABLE,
  ADA,
  all,
  BLUE,
  COLOUR,
  MODEL,
  NAME,
  of,
  PARIS,
  type Question,
  startAsker,
  talk,
  WAYS,
} from '../support/asking.js'
import { createBridge, startBridge } from '../support/bridge.js'
import { until } from '../support/eventually.js'
import type { Plan } from '../support/legacy-http.js'
import { CAPABILITIES } from '../support/modern.js'

const TOKENS = { alice: 'token-of-alice-0123456789', bob: 'token-of-bob-0123456789' }
const as = (who: keyof typeof TOKENS, capabilities: object = ABLE) => ({
  headers: { authorization: `Bearer ${TOKENS[who]}` },
  meta: { [CAPABILITIES]: capabilities },
})

async function start(t: Test, way: (typeof WAYS)[number], settings: object = {}, server: object = {}, plan: Plan = {}) {
  const asker = await startAsker(t, way, plan)
  const started = await startBridge(t, { ...asker.server, ...server }, settings)
  /** Sessions in which tools were called, in the order of the calls. */
  const sessions = () =>
    asker
      .seen()
      .filter(({ message }) => message['method'] === 'tools/call')
      .map(({ session }) => session)
  return { ...talk(started.url, asker), ...started, asker, sessions }
}

for (const way of WAYS) {
  t.test(`39 principals and capability sets never share a session with a server that asks ${way}`, async (t) => {
    const { steps, again, sessions } = await start(t, way, { auth: { tokens: TOKENS } })
    const who = [
      as('alice'),
      as('bob'),
      as('alice', { elicitation: {} }),
      as('bob', { elicitation: {} }),
      as('alice', { elicitation: { form: {}, url: {} } }),
    ]
    // All at once, under the same ids, and one after the other.
    const rounds = await Promise.all(who.map((one) => steps([{ ask: [NAME] }], {}, { ...one, id: 1 })))
    for (const round of rounds) t.match(round.message.result, { resultType: 'input_required' })
    t.equal(new Set(sessions()).size, 5)
    const names = who.map((_, n) => ({ action: 'accept', content: { name: `answer of ${n}` } }))
    for (const [n, round] of rounds.entries())
      t.same((await again(round, all(round, names[n]), {}, who[n])).said, [names[n]], 'each is told the own answer')
    const first = sessions()
    for (const one of who) await steps([], {}, one)
    t.same(sessions().slice(5).sort(), first.sort(), 'whoever comes again comes into the own session')
  })

  t.test(`39 where everybody shares, those who can be asked do not ${way}`, async (t) => {
    const { steps, sessions } = await start(t, way, { auth: { tokens: TOKENS } }, { session: 'shared' })
    await steps([], {}, as('alice', {}))
    await steps([], {}, as('bob', {}))
    t.equal(new Set(sessions()).size, 1)
    await steps([], {}, as('alice'))
    await steps([], {}, as('bob'))
    t.equal(new Set(sessions()).size, 3)
  })

  t.test(`calls that ask at the same time ${way} are each told what its own question was answered`, async (t) => {
    const { steps, again } = await start(t, way)
    const ask = (n: number): Question => ({ ...NAME, params: { ...NAME.params, message: `question ${n}` } })
    const answerTo = (message: unknown) => ({ action: 'accept', content: { name: `to ${String(message)}` } })
    const settle = async (n: number) => {
      let round = await steps([{ ask: [ask(n)] }, { ask: [ask(n + 100)] }], { n })
      for (let rounds = 0; round.keys.length > 0 && rounds < 20; rounds++) {
        const answers = round.keys.map((key) => [key, answerTo(round.requests[key]?.params?.['message'])])
        round = await again(round, Object.fromEntries(answers))
      }
      return round.said
    }
    const said = await Promise.all(Array.from({ length: 6 }, (_, n) => settle(n)))
    t.same(
      said,
      said.map((_, n) => [answerTo(`question ${n}`), answerTo(`question ${n + 100}`)]),
    )
  })

  t.test(`questions of one principal are bounded ${way}, also when many come at once`, async (t) => {
    const { steps, again, asker } = await start(t, way, { limits: { parkedPerPrincipal: 2 } })
    const ask = [{ ask: [NAME] }]
    const rounds = await Promise.all(Array.from({ length: 5 }, (_, n) => steps(ask, { n })))
    const parked = rounds.filter(({ keys }) => keys.length > 0)
    t.equal(parked.length, 2)
    const refused = of(asker).filter(({ error }) => error)
    t.match(
      refused,
      Array.from({ length: 3 }, () => ({ error: { code: -32603 } })),
    )
    for (const round of parked) t.same((await again(round, all(round, ADA))).said, [ADA])
    t.equal((await steps(ask)).keys.length, 1, 'there is room again')
  })
}

for (const way of WAYS.filter((one) => one !== 'over stdio')) {
  t.test(`a call that can be asked has its session for itself ${way}; one after the other share one`, async (t) => {
    const { steps, again, sessions, call, asker } = await start(t, way)
    await steps([])
    await steps([])
    t.equal(new Set(sessions()).size, 1)
    const first = await steps([{ ask: [{ ...NAME, id: 0 }] }])
    const second = await steps([{ ask: [{ ...COLOUR, id: 0 }] }])
    t.equal(new Set(sessions()).size, 2)
    await call('tools/list', {})
    const listed = asker.seen().find(({ message }) => message['method'] === 'tools/list')
    t.equal(listed?.session, sessions()[0], 'what asks nothing stays in the first one')
    t.same((await again(second, all(second, BLUE))).said, [BLUE])
    t.same((await again(first, all(first, ADA))).said, [ADA])
    await steps([])
    t.equal(new Set(sessions()).size, 2, 'they are used again')
    t.equal(sessions().at(-1), sessions()[0])
  })

  t.test(`where all sessions of a client wait for answers ${way}, its next call waits for one`, async (t) => {
    const { steps, again, sessions, asker } = await start(t, way)
    const rounds = []
    for (let n = 0; n < 8; n++) rounds.push(await steps([{ ask: [MODEL] }], { n }))
    t.equal(new Set(sessions()).size, 8)
    const gone = new AbortController()
    const leaving = steps([], { gone: true }, { signal: gone.signal })
    const waiting = steps([], { waiting: true })
    const [first, second] = rounds
    if (!first || !second) throw new Error('There are eight of them')
    gone.abort()
    await t.rejects(leaving)
    t.equal(sessions().length, 8, 'neither has been sent')
    await again(first, all(first, PARIS))
    await again(second, all(second, PARIS))
    t.match((await waiting).message.result, { resultType: 'complete' })
    const sent = of(asker, 'tools/call').map(({ params }) => (params as { arguments: object }).arguments)
    t.notOk(
      sent.some((args) => 'gone' in args),
      'a call that was given up before its turn is not made',
    )
    t.equal(new Set(sessions()).size, 8)
  })
}

t.test('on a pipe a question stays open when the call that it was taken for turns out to be another', async (t) => {
  const { steps, again, signal } = await start(t, 'over stdio')
  const parked = await steps([{ ask: [NAME], withdraw: 'later' }, { ask: [COLOUR] }])
  // While this runs, the server asks for the parked one, and ends this one right after.
  await signal('later')
  const round = await again(parked, all(parked, ADA))
  t.match(Object.values(round.requests), [{ params: { message: 'Your colour?' } }])
  t.same((await again(round, all(round, BLUE))).said, [{ withdrawn: true }, BLUE])
})

t.test('nobody who is not known to be the same shares a process with a server that asks', async (t) => {
  const asker = await startAsker(t, 'over stdio')
  const { bridge } = createBridge(t, asker.server)
  const ask = async (capabilities: object) => {
    const log = { note() {}, debug() {}, warn() {} }
    const { signal } = new AbortController()
    const caller = { revision: '2026-07-28', capabilities: JSON.stringify(capabilities) }
    const params = parseObject(JSON.stringify({ name: 'steps', arguments: { steps: [{ wait: 300 }] } }))
    const meta = parseObject('{}')
    const call = { method: 'tools/call', params, meta, progress: false, caller, principal: 'anon', signal, log }
    for await (const reply of bridge.server.handle({ ...call, abort: () => {} })) t.equal(reply.kind, 'result')
  }
  const calling = [ask(ABLE), ask(ABLE), ask({}), ask({})]
  await until(() => of(asker, 'tools/call').length === 4, 'the calls')
  await Promise.all(calling)
  const processes = asker.seen().flatMap(({ session, message }) => (message['method'] === 'tools/call' ? session : []))
  t.equal(new Set(processes).size, 3, 'one each for those who can be asked, and one for the others')
})
