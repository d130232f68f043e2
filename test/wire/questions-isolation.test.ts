/**
 * Whose a question is: sessions with servers that ask belong to one principal and one set of capabilities, and what is asked
 * in the middle of a call is asked of its client. Numbers are those of test/invariants.md.
 */
import t, { type Test } from 'tap'
import { parseObject } from '../../src/base/rpc/splice.js'
import { ABLE, ADA, all, BLUE, COLOUR, NAME, of, type Question, startAsker, talk, WAYS } from '../support/asking.js'
import { createBridge, startBridge } from '../support/bridge.js'
import { until } from '../support/eventually.js'
import type { Plan } from '../support/legacy-http.js'
import { CAPABILITIES, CLIENT_INFO } from '../support/modern.js'

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
  t.test(`principals and capability sets never share a session with a server that asks ${way}`, async (t) => {
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

  t.test(`with a session shared by all, clients that could be asked are not ${way}`, async (t) => {
    const { steps, sessions } = await start(t, way, { auth: { tokens: TOKENS } }, { session: 'shared' })
    await steps([], {}, as('alice', {}))
    await steps([], {}, as('bob', {}))
    t.equal(new Set(sessions()).size, 1)
    await steps([], {}, as('alice'))
    await steps([], {}, as('bob'))
    t.equal(new Set(sessions()).size, 3)
  })

  t.test(`concurrent calls that ask ${way} each get the answer to their own question`, async (t) => {
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

  t.test(`bounds the questions of one principal ${way}, also if many come at once`, async (t) => {
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

for (const way of WAYS) {
  t.test(`all calls of a client share one session with a server that asks ${way}`, async (t) => {
    const { steps, again, sessions, call, asker } = await start(t, way)
    const rounds = await Promise.all(Array.from({ length: 12 }, (_, n) => steps([{ ask: [NAME] }], { n })))
    for (const round of rounds) t.match(round.message.result, { resultType: 'input_required' })
    await call('tools/list', {})
    await steps([])
    t.equal(of(asker, 'initialize').length, 1, 'twelve calls wait for answers, and others go on')
    t.equal(new Set(sessions()).size, 1)
    for (const round of rounds) t.same((await again(round, all(round, ADA))).said, [ADA])
  })

  t.test(`another application has another session with a server that asks ${way}`, async (t) => {
    const { steps, sessions } = await start(t, way)
    const from = (name: string, version: string) => ({
      meta: { [CAPABILITIES]: ABLE, [CLIENT_INFO]: { name, version, title: `${name} ${Math.random()}` } },
    })
    const clients = [from('ada', '1'), from('bob', '1'), from('ada', '2'), from('ada', '1')]
    for (const client of clients) await steps([], {}, client)
    const [first, second, third, fourth] = sessions()
    t.equal(new Set([first, second, third]).size, 3)
    t.equal(fourth, first, 'the same name and version are the same application')
  })
}

t.test('on a pipe a question goes to the running call of a tool that has asked before', async (t) => {
  const { steps, call, signal, asker } = await start(t, 'over stdio')
  const alone = await steps([{ ask: [NAME] }])
  t.equal(alone.keys.length, 1, 'a call that runs alone shows that its tool asks')
  const quiet = call('tools/call', { name: 'wait', arguments: { ms: 1_000 } })
  await until(() => of(asker, 'tools/call').length === 2, 'the older call')
  const asked = steps([{ wait: 'go' }, { ask: [COLOUR] }])
  await signal('go')
  t.match(Object.values((await asked).requests), [{ params: { message: 'Your colour?' } }])
  t.match((await quiet).message.result, { resultType: 'complete' }, 'the older call is asked nothing')
})

t.test('on a pipe a question stays open when the call that it was attributed to is another', async (t) => {
  const { steps, again, signal } = await start(t, 'over stdio')
  const parked = await steps([{ ask: [NAME], withdraw: 'later' }, { ask: [COLOUR] }])
  // While this runs, the server asks for the parked one, and ends this one right after.
  await signal('later')
  const round = await again(parked, all(parked, ADA))
  t.match(Object.values(round.requests), [{ params: { message: 'Your colour?' } }])
  t.same((await again(round, all(round, BLUE))).said, [{ withdrawn: true }, BLUE])
})

t.test('on a pipe an answer counts although the question was attributed to a call that has ended', async (t) => {
  const { steps, again, signal, asker } = await start(t, 'over stdio')
  const running = (count: number) => until(() => of(asker, 'tools/call').length === count, 'the next call')
  const older = steps([{ wait: 'ask name' }, { ask: [NAME] }])
  await running(1)
  const newer = steps([{ wait: 'ask colour' }, { ask: [COLOUR] }])
  await running(2)
  await signal('ask colour')
  const asksColour = await older
  await signal('ask name')
  const asksName = await newer
  t.match(Object.values(asksColour.requests), [{ params: { message: 'Your colour?' } }], 'each gets that of the other')
  t.match(Object.values(asksName.requests), [{ params: { message: 'Your name?' } }])
  const olderEnds = again(asksColour, all(asksColour, BLUE))
  await until(() => of(asker).length === 1, 'the answer that ends the newer call')
  t.same((await again(asksName, all(asksName, ADA))).said, [BLUE])
  t.same((await olderEnds).said, [ADA], 'nobody is asked twice')
})

t.test('callers not known to be the same share no process with a server that asks', async (t) => {
  const asker = await startAsker(t, 'over stdio')
  const { bridge } = createBridge(t, asker.server)
  const ask = async (capabilities: object) => {
    const log = { note() {}, debug() {}, warn() {} }
    const { signal } = new AbortController()
    const caller = { revision: '2026-07-28', capabilities: JSON.stringify(capabilities) }
    const params = parseObject(JSON.stringify({ name: 'steps', arguments: { steps: [{ wait: 300 }] } }))
    const meta = parseObject('{}')
    const call = { method: 'tools/call', params, meta, progress: false, caller, principal: 'anon', signal, log }
    const reply = await bridge.server.handle({ ...call, notify: () => undefined, abort: () => {} })
    t.equal(reply.kind, 'result')
  }
  const calling = [ask(ABLE), ask(ABLE), ask({}), ask({})]
  await until(() => of(asker, 'tools/call').length === 4, 'the calls')
  await Promise.all(calling)
  const processes = asker.seen().flatMap(({ session, message }) => (message['method'] === 'tools/call' ? session : []))
  t.equal(new Set(processes).size, 3, 'one each for those who can be asked, and one for the others')
})
