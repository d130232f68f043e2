/**
 * States that do not hold, clients that have not agreed to be asked, and those that do not come back. Numbers are those of
 * test/invariants.md.
 */
import t, { type Test } from 'tap'
import {
  ADA,
  all,
  BLUE,
  COLOUR,
  codeOf,
  MODEL,
  NAME,
  of,
  PAGE,
  type Question,
  ROOTS,
  startAsker,
  talk,
  WAYS,
} from '../support/asking.js'
import { startBridge } from '../support/bridge.js'
import { holdTimers } from '../support/clock.js'
import { until } from '../support/eventually.js'
import type { Plan } from '../support/legacy-http.js'
import { CAPABILITIES } from '../support/modern.js'

type Json = Record<string, unknown>

/** How long an answer is waited for, which no other timer has. */
const ANSWER = 1_234_567
const TOKENS = { alice: 'token-of-alice-0123456789', bob: 'token-of-bob-0123456789' }
const as = (who: keyof typeof TOKENS) => ({ headers: { authorization: `Bearer ${TOKENS[who]}` } })
const declaring = (capabilities: object) => ({ meta: { [CAPABILITIES]: capabilities } })

async function start(t: Test, way: (typeof WAYS)[number], settings: object = {}, plan: Plan = {}) {
  const asker = await startAsker(t, way, plan)
  const { url, bridge, log } = await startBridge(t, asker.server, settings)
  const cancelled = () => of(asker, 'notifications/cancelled')
  return { ...talk(url, asker), asker, url, bridge, log, cancelled, answers: () => of(asker) }
}

const flipped = (state: string, at: number) =>
  state.slice(0, at) + String.fromCharCode(state.charCodeAt(at) ^ 1) + state.slice(at + 1)

for (const way of WAYS) {
  t.test(`refuses an invalid state, and the server that asks ${way} sees nothing`, async (t) => {
    const settings = { auth: { tokens: TOKENS } }
    const { steps, call, again, paramsOf, asker } = await start(t, way, settings)
    const elsewhere = await start(t, way, settings)
    const ask = [{ ask: [NAME] }]
    const first = await steps(ask, { n: 1 }, as('alice'))
    const other = await steps(ask, { n: 2 }, as('alice'))
    const strange = await elsewhere.steps(ask, { n: 1 }, as('alice'))
    const { arguments: args } = paramsOf(first) as { arguments: Json }
    const { state } = first
    const before = asker.messages().length
    const rows: [name: string, changes: Json, who?: 'bob'][] = [
      ['a flipped bit in the version', { requestState: flipped(state, 0) }],
      ['in the name of the key', { requestState: flipped(state, 4) }],
      ['in the middle', { requestState: flipped(state, Math.floor(state.length / 2)) }],
      ['at the end', { requestState: flipped(state, state.length - 1) }],
      ['a state that is cut off', { requestState: state.slice(0, -1) }],
      ['one with more at its end', { requestState: `${state}A` }],
      ['an empty one', { requestState: '' }],
      ['a number', { requestState: 7 }],
      ['null', { requestState: null }],
      ['a very long one', { requestState: 'x'.repeat(100_000) }],
      ['the state of another call', { requestState: other.state }],
      ['one of another bridge', { requestState: strange.state }],
      ['another principal', {}, 'bob'],
      ['another tool', { name: 'chore' }],
      ['another argument', { arguments: { ...args, n: 3 } }],
      ['one more argument', { arguments: { ...args, more: 1 } }],
      ['another parameter', { more: 1 }],
    ]
    for (const [name, changes, who = 'alice'] of rows) {
      const answer = await again(first, all(first, ADA), changes, as(who))
      t.same(codeOf(answer), { status: 200, code: -32602 }, name)
    }
    const prompt = await call('prompts/get', { name: 'greet', requestState: state }, as('alice'))
    t.same(codeOf(prompt), { status: 200, code: -32602 }, 'another method')
    t.equal(asker.messages().length, before)

    const reordered = Object.fromEntries(Object.entries(args).reverse())
    const last = await again(first, all(first, ADA), { arguments: reordered }, as('alice'))
    t.same(last.said, [ADA], 'none of that has used it up, and the order of members is no difference')
    const used = await again(first, all(first, BLUE), {}, as('alice'))
    t.same(codeOf(used), { status: 200, code: -32602 }, 'used already, with another answer')
    t.match(used.message.error?.data, { reason: 'invalid_request_state', outcome: 'not_executed' })
    t.equal(of(asker).length, 1)
  })

  t.test(`of fifty concurrent retries ${way} one is accepted, and the server gets one answer`, async (t) => {
    const { steps, again, answers } = await start(t, way)
    const first = await steps([{ ask: [NAME] }, { wait: 100 }])
    const names = Array.from({ length: 50 }, (_, n) => ({ action: 'accept', content: { name: String(n) } }))
    const rounds = await Promise.all(names.map((answer) => again(first, all(first, answer))))
    t.equal(rounds.filter(({ message }) => message.result).length, 1)
    t.equal(rounds.filter(({ message }) => message.error?.code === -32602).length, 49)
    t.equal(answers().length, 1)
  })

  t.test(`a state ${way} reveals nothing to another caller`, async (t) => {
    const { steps } = await start(t, way, { auth: { tokens: TOKENS } })
    const canary = 'canary-of-the-arguments'
    const { state } = await steps([{ ask: [NAME] }], { canary }, as('alice'))
    t.ok(state.length <= 2_048)
    t.match(state, /^b1\.[\w-]+\.[\w-]+$/)
    const texts = [state, ...state.split('.').map((part) => Buffer.from(part, 'base64url').toString('latin1'))]
    for (const secret of [canary, TOKENS.alice, 'alice', 'steps', 'tools', 'elicitation', 'session-', 'scripted', '":'])
      t.notOk(
        texts.some((text) => text.includes(secret)),
        secret,
      )
  })

  t.test(`a client without elicitation is not asked by a server that asks ${way}`, async (t) => {
    const { steps, answers } = await start(t, way)
    const rows: [question: Question, declared: Json, refusal: object, needed: Json][] = [
      [NAME, {}, { code: -32601 }, { elicitation: { form: {} } }],
      [NAME, { sampling: {}, roots: {} }, { code: -32601 }, { elicitation: { form: {} } }],
      [NAME, { elicitation: { url: {} } }, { code: -32602 }, { elicitation: { form: {} } }],
      [PAGE, { elicitation: {} }, { code: -32602 }, { elicitation: { url: {} } }],
      [MODEL, { elicitation: {} }, { code: -32601 }, { sampling: {} }],
      [
        { ...MODEL, params: { ...MODEL.params, tools: [] } },
        { sampling: {} },
        { code: -32602 },
        { sampling: { tools: {} } },
      ],
      [ROOTS, { elicitation: {} }, { code: -32601 }, { roots: {} }],
    ]
    for (const [question, declared, refusal, needed] of rows) {
      const what = `${question.method} of ${JSON.stringify(declared)}`
      const served = await steps([{ ask: [question] }], {}, declaring(declared))
      t.match(served.message.result, { resultType: 'complete' }, `${what}: a result stays one`)
      t.match(served.said, [{ error: refusal }], what)
      t.match(answers().at(-1)?.['error'], refusal)
      const failed = await steps([{ ask: [question] }], { strict: true }, declaring(declared))
      t.same(codeOf(failed), { status: 400, code: -32021 }, what)
      t.same(failed.message.error?.data?.['requiredCapabilities'], needed, what)
    }
    const unknown = await steps([{ ask: [{ method: 'vendor/ask', params: {} }] }])
    t.match(unknown.said, [{ error: { code: -32601 } }], 'what nobody knows is no question')
    t.same((await steps([{ ask: [{ method: 'ping' }] }], {}, declaring({}))).said, [{}], 'that it is there, is said')
  })

  t.test(`a client that declares less in its retry is not asked again ${way}`, async (t) => {
    const { steps, again } = await start(t, way)
    const first = await steps([{ ask: [NAME] }, { ask: [MODEL, COLOUR] }])
    const second = await again(first, all(first, ADA), {}, declaring({ elicitation: {} }))
    t.same(
      Object.values(second.requests).map(({ method }) => method),
      ['elicitation/create'],
    )
    const last = await again(second, all(second, BLUE), {}, declaring({}))
    t.match(last.said, [ADA, { error: { code: -32601 } }, BLUE])

    const other = await steps([{ ask: [NAME] }], { strict: true })
    const none = await again(other, {}, {}, declaring({}))
    t.same(codeOf(none), { status: 400, code: -32021 })
  })

  t.test(`refuses a question ${way} during a list, and returns the list`, async (t) => {
    const by = way.includes('session') ? { by: 'session' } : {}
    const { call, answers } = await start(t, way, {}, { slowList: { steps: [{ ask: [NAME] }], ...by } })
    const listed = await call('tools/list', {})
    t.match(listed.message.result, { resultType: 'complete', tools: [{ name: 'echo' }] })
    t.equal(listed.messages.length, 1)
    t.match(answers(), [{ error: { code: Number } }])
    t.equal(answers().length, 1)
  })

  t.test(`a list during which a server asks for roots ${way} does not wait for a call`, async (t) => {
    const by = way.includes('session') ? { by: 'session' } : {}
    const { call, answers } = await start(t, way, {}, { slowList: { steps: [{ ask: [ROOTS] }], ...by } })
    for (const n of [1, 2]) {
      const listed = await call('tools/list', {})
      t.match(listed.message.result, { resultType: 'complete', tools: [{ name: 'echo' }] })
      t.equal(answers().length, n)
    }
    t.match(answers().at(-1), { error: { code: -32600 } }, 'the second one is rejected at once')
  })

  t.test(`waits for a client that does not return, and then cancels at the server ${way}`, async (t) => {
    const timeLimit = holdTimers(t, ANSWER)
    const { steps, again, cancelled, answers, asker } = await start(t, way, { timeouts: { answer: ANSWER } })
    const first = await steps([{ ask: [NAME, MODEL, ROOTS] }])
    t.ok(first.keys.length > 0)
    const [called] = of(asker, 'tools/call')
    timeLimit.run()
    await until(() => cancelled().length === 1, 'the end of the time')
    await until(() => answers().length === 3, 'an answer of nobody to every question')
    t.match(
      answers().map(({ result, error }) => result ?? error),
      [{ action: 'cancel' }, { code: -1 }, { code: -32603 }],
    )
    t.match(cancelled(), [{ params: { requestId: called?.['id'] } }])
    const late = await again(first, {})
    t.same(codeOf(late), { status: 200, code: -32602 })
    t.match(late.message.error?.data, { reason: 'invalid_request_state' })
    t.equal(of(asker, 'tools/call').length, 1)
  })

  t.test(`answers questions of a server ${way} at the end that nobody was there for`, async (t) => {
    const timeLimit = holdTimers(t, ANSWER)
    const { steps, signal, cancelled, answers } = await start(t, way, { timeouts: { answer: ANSWER } })
    await steps([{ ask: [NAME, COLOUR], gap: 'another' }])
    await signal('another')
    timeLimit.run()
    await until(() => cancelled().length === 1, 'the end of the time')
    await until(() => answers().length === 2, 'an answer of nobody to every question')
    t.match(answers(), [{ result: { action: 'cancel' } }, { result: { action: 'cancel' } }])
  })

  t.test(`a bridge that is stopped answers open questions ${way} before it exits`, async (t) => {
    const { steps, bridge, cancelled, answers } = await start(t, way)
    await steps([{ ask: [NAME] }])
    await bridge.close()
    await until(() => cancelled().length === 1, 'the cancellation')
    t.match(answers(), [{ result: { action: 'cancel' } }])
  })

  t.test(`a client that disconnects during a leg ends the call ${way}, and not while it is thinking`, async (t) => {
    const { steps, again, cancelled, asker } = await start(t, way)
    const controller = new AbortController()
    const first = await steps([{ ask: [NAME] }, { wait: 'ever' }], {}, { signal: controller.signal })
    controller.abort()
    const leaving = new AbortController()
    const second = again(first, all(first, ADA), {}, { signal: leaving.signal })
    await until(() => of(asker).length === 1, 'the answer at the server')
    t.same(cancelled(), [], 'to have gone after the question is no cancellation')
    leaving.abort()
    await t.rejects(second, { code: 'ABORT_ERR' })
    await until(() => cancelled().length === 1, 'the cancellation')
    t.same(codeOf(await again(first, all(first, ADA))), { status: 200, code: -32602 })
  })

  t.test(`repeats a call ${way} that only reads if nothing is left of it`, async (t) => {
    const { call, again, asker } = await start(t, way)
    const json = JSON.stringify({
      steps: [{ ask: [NAME] }, { wait: 'ever' }],
      ...(way.includes('session') && { by: 'session' }),
    })
    const first = await call('prompts/get', { name: 'greet', arguments: { json } })
    const leaving = new AbortController()
    const second = again(first, all(first, ADA), {}, { signal: leaving.signal })
    await until(() => of(asker).length === 1, 'the answer at the server')
    leaving.abort()
    await t.rejects(second)
    await until(() => of(asker, 'notifications/cancelled').length === 1, 'the cancellation')
    const anew = await again(first, all(first, ADA))
    t.match(anew.message.result, { resultType: 'input_required' }, 'it is asked again from the start')
    t.not(anew.state, first.state)
    t.equal(of(asker, 'prompts/get').length, 2)
  })

  t.test(`answers without a state start a call ${way} from the beginning`, async (t) => {
    const { steps, again, asker } = await start(t, way)
    const first = await steps([{ ask: [NAME] }])
    const anew = await again(first, all(first, ADA), { requestState: undefined })
    t.match(anew.message.result, { resultType: 'input_required' })
    t.equal(of(asker, 'tools/call').length, 2)
    t.same(of(asker), [], 'and answer nothing')
  })
}

t.test('does not call a server again that ended while its client was thinking', async (t) => {
  const { steps, again, call, asker, url } = await start(t, 'over stdio')
  // A child that has served at all is started again at once.
  await call('tools/list', {})
  const first = await steps([{ ask: [NAME] }])
  await talk(url).call('tools/call', { name: 'crash', arguments: {} })
  const gone = await again(first, all(first, ADA))
  t.match(codeOf(gone), { status: 200, code: -32603 })
  t.match(gone.message.error?.data, { outcome: 'unknown' })
  t.same(codeOf(await again(first, all(first, ADA))), { status: 200, code: -32602 }, 'and nothing is left of it')
  t.equal(of(asker, 'tools/call').length, 2)
  t.match((await call('tools/list', {})).status, 200)
})
