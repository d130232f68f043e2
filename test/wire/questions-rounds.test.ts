/**
 * Legacy servers that ask in the middle of a call, and modern clients that are asked by its result: how one round follows
 * another. Numbers are those of test/invariants.md.
 */
import t, { type Test } from 'tap'
import {
  ADA,
  all,
  BLUE,
  COLOUR,
  FOLDERS,
  MODEL,
  NAME,
  of,
  PAGE,
  PARIS,
  ROOTS,
  type Round,
  startAsker,
  talk,
  WAYS,
} from '../support/asking.js'
import { startBridge } from '../support/bridge.js'
import { SERVER_INFO } from '../support/modern.js'
import { problems } from '../support/schema.js'

type Json = Record<string, unknown>

async function start(t: Test, way: (typeof WAYS)[number], plan: object = {}) {
  const asker = await startAsker(t, way, plan)
  const { url, bridge } = await startBridge(t, asker.server)
  const answers = () => of(asker)
  return { ...talk(url, asker), asker, url, bridge, answers, calls: () => of(asker, 'tools/call') }
}

/** What is asked, without what differs from one round to another. */
function asked({ message }: Round) {
  return message.result?.['inputRequests']
}

for (const way of WAYS) {
  t.test(`a question ${way} is the result of the call, and its answer goes back to the server`, async (t) => {
    const { steps, again, answers, calls } = await start(t, way)
    const first = await steps([{ ask: [{ ...NAME, id: 'q' }] }], {}, { id: 7 })
    t.equal(first.status, 200)
    t.equal(first.message['id'], 7)
    t.equal(first.messages.length, 1, 'nothing but the result is said, least of all a request')
    t.same(problems('2026-07-28', 'InputRequiredResult', first.message.result), [])
    t.match(first.message.result, { resultType: 'input_required', _meta: { [SERVER_INFO]: { name: 'scripted' } } })
    t.same(asked(first), { [String(first.keys[0])]: { ...NAME, params: { ...NAME.params, mode: 'form' } } })
    t.notOk('ttlMs' in (first.message.result ?? {}), 'a question is not to be kept')
    t.same(answers(), [], 'the server has not been answered yet')

    const last = await again(first, all(first, ADA), {}, { id: 'eight' })
    t.equal(last.message['id'], 'eight')
    t.match(last.message.result, { resultType: 'complete', _meta: { [SERVER_INFO]: { name: 'scripted' } } })
    t.same(last.said, [ADA])
    t.same(
      answers().map(({ id, result }) => ({ id, result })),
      [{ id: 'q', result: ADA }],
    )
    t.equal(calls().length, 1, 'the server was called once')
    const [{ params = {} } = {}] = calls() as { params?: Json }[]
    t.notOk('inputResponses' in params || 'requestState' in params)
  })

  t.test(`passes on every kind of question ${way}, and every kind of answer`, async (t) => {
    const { steps, again, answers } = await start(t, way)
    const rows: [question: object, answer: object, told: Json][] = [
      [NAME, ADA, { ...NAME, params: { ...NAME.params, mode: 'form' } }],
      [NAME, { action: 'decline' }, { ...NAME, params: { ...NAME.params, mode: 'form' } }],
      [MODEL, PARIS, { ...MODEL }],
      [ROOTS, FOLDERS, { ...ROOTS }],
      [{ ...ROOTS, params: {} }, { roots: [] }, { ...ROOTS }],
    ]
    for (const [question, answer, told] of rows) {
      const first = await steps([{ ask: [question as typeof NAME] }])
      t.same(Object.values(first.requests), [told])
      const last = await again(first, all(first, answer))
      t.same(last.said, [answer])
      t.same(answers().at(-1)?.['result'], answer)
    }
  })

  t.test(`two questions ${way} are one round, and an unanswered one is asked again`, async (t) => {
    const { steps, together, again, answers } = await start(t, way)
    const both = await together(2, [{ ask: [NAME, MODEL] }])
    t.equal(both.keys.length, 2)
    t.same(
      Object.values(both.requests).map(({ method }) => method),
      [NAME.method, MODEL.method],
    )
    const [one = '', other = ''] = both.keys
    t.same((await again(both, { [other]: PARIS, [one]: ADA })).said, [ADA, PARIS])

    const first = await together(2, [{ ask: [NAME, MODEL] }])
    const [name = '', model = ''] = first.keys
    const second = await again(first, { [name]: ADA })
    t.same(asked(second), { [model]: first.requests[model] }, 'exactly the missing one, under the same key')
    t.not(second.state, first.state)
    t.same(answers().at(-1)?.['result'], ADA, 'and the other has been told')
    t.same((await again(second, { [model]: PARIS })).said, [ADA, PARIS])

    const none = await steps([{ ask: [NAME] }])
    const again1 = await again(none, {})
    const again2 = await again(again1, undefined)
    t.same([asked(again1), asked(again2)], [asked(none), asked(none)], 'no answer at all is asked for again')
    t.same((await again(again2, all(again2, ADA))).said, [ADA])
  })

  t.test(`three questions in sequence ${way} are three rounds`, async (t) => {
    const { steps, again, calls } = await start(t, way)
    const first = await steps([{ ask: [NAME] }, { ask: [COLOUR] }, { ask: [ROOTS] }])
    const second = await again(first, all(first, ADA))
    const third = await again(second, all(second, BLUE))
    const last = await again(third, all(third, FOLDERS))
    t.same(last.said, [ADA, BLUE, FOLDERS])
    t.equal(new Set([first.state, second.state, third.state]).size, 3)
    t.equal(new Set([...first.keys, ...second.keys, ...third.keys]).size, 3, 'no key is used twice')
    t.equal(calls().length, 1)
  })

  t.test(`an invalid answer is not passed on to the server that asks ${way}`, async (t) => {
    const { steps, together, again, answers } = await start(t, way)
    const first = await steps([{ ask: [NAME] }])
    const [key = ''] = first.keys
    const refused: unknown[] = [null, 7, 'x', [], { [key]: 42 }, { [key]: null }, { [key]: [] }, { [key]: {} }]
    const malformed = [{ action: 'maybe' }, { action: 'accept', content: 7 }, { action: 'accept', content: { a: {} } }]
    for (const responses of [...refused, ...malformed.map((answer) => ({ [key]: answer }))]) {
      const { status, message } = await again(first, responses)
      t.match({ status, code: message.error?.code }, { status: 200, code: -32602 }, JSON.stringify(responses))
    }
    t.same(answers(), [])
    const last = await again(first, { [key]: ADA, other: ADA, 'address-1': 42, __proto__: ADA })
    t.same(last.said, [ADA], 'the round was not used up, and answers to nothing are passed over')

    const both = await together(2, [{ ask: [MODEL, ROOTS] }])
    const [model = '', roots = ''] = both.keys
    const half = await again(both, { [model]: { role: 'assistant' }, [roots]: FOLDERS })
    t.same(half.keys, [model], 'a malformed answer beside a good one is as none')
    t.same((await again(half, { [model]: PARIS })).said, [PARIS, FOLDERS])
  })

  t.test(`a client that missed an answer ${way} can retry, which the server does not notice`, async (t) => {
    const { steps, again, answers, calls } = await start(t, way)
    const first = await steps([{ ask: [NAME] }, { ask: [COLOUR] }])
    const second = await again(first, all(first, ADA))
    const repeated = await again(first, all(first, { content: { name: 'Ada' }, action: 'accept' }))
    t.same(repeated.message.result, second.message.result, 'also where the same is written in another way')
    const last = await again(repeated, all(repeated, BLUE))
    t.same((await again(repeated, all(repeated, BLUE))).message.result, last.message.result)
    t.equal(answers().length, 2)
    t.equal(calls().length, 1)
    for (const [round, answer] of [
      [first, BLUE],
      [second, ADA],
      [first, { action: 'cancel' }],
    ] as const) {
      t.equal((await again(round, all(round, answer))).message.error?.code, -32602, 'another answer is refused')
    }
    t.equal(
      (await again(first, all(first, ADA))).message.error?.code,
      -32602,
      'what lies before the last round is over',
    )
    t.equal(answers().length, 2)
  })

  t.test(`the next retry reports what a server ${way} ended while nobody was there`, async (t) => {
    const { steps, again, signal, asker } = await start(t, way)
    const first = await steps([{ ask: [NAME], withdraw: 'enough' }])
    await signal('enough')
    const before = of(asker).length
    const last = await again(first, all(first, ADA))
    t.match(last.message.result, { resultType: 'complete' })
    t.same(last.said, [{ withdrawn: true }])
    t.equal(of(asker).length, before, 'the answer goes nowhere')

    const failing = await steps([{ ask: [NAME], withdraw: 'enough' }, { fail: { code: 4711, message: 'Nobody came' } }])
    await signal('enough')
    t.match((await again(failing, {})).message.error, { code: 4711, message: 'Nobody came' })
  })

  t.test(`does not ask a question ${way} that was withdrawn, and asks nothing without a question`, async (t) => {
    const { steps, again, signal } = await start(t, way)
    const quick = await steps([{ ask: [NAME], withdraw: 0 }, { wait: 100 }])
    t.match(quick.message.result, { resultType: 'complete' })
    t.same(quick.said, [{ withdrawn: true }])

    const one = await steps([{ ask: [NAME], withdraw: 'enough' }, { wait: 'go on' }])
    await signal('enough')
    const waiting = again(one, {})
    // Another call goes all the way meanwhile: this one would have been asked again, were there anything to ask.
    t.match((await steps([])).message.result, { resultType: 'complete' })
    await signal('go on')
    t.same((await waiting).said, [{ withdrawn: true }], 'nothing is left to be asked: the server is waited for')

    const two = await steps([{ ask: [NAME], withdraw: 'enough' }, { ask: [COLOUR] }])
    await signal('enough')
    const next = await again(two, all(two, ADA))
    t.same(Object.values(next.requests), [{ ...COLOUR, params: { ...COLOUR.params, mode: 'form' } }])
    t.same((await again(next, all(next, BLUE))).said, [{ withdrawn: true }, BLUE])
  })

  t.test(`of a URL ${way} passes on only the address, and nothing of its visit`, async (t) => {
    const { steps, again } = await start(t, way)
    const complete = { method: 'notifications/elicitation/complete', params: { elicitationId: 'el-1' } }
    const first = await steps([
      { tell: complete },
      { ask: [PAGE] },
      { tell: complete },
      { tell: complete, by: 'session' },
    ])
    t.same(Object.values(first.requests), [
      { method: PAGE.method, params: { mode: 'url', message: 'Look here', url: 'https://example.com/x' } },
    ])
    t.equal(first.messages.length, 1)
    const last = await again(first, all(first, { action: 'accept' }))
    t.same(last.said, [{ action: 'accept' }])
    t.equal(last.messages.length, 1)
    const bad = { ...PAGE, params: { ...PAGE.params, url: 'http://example.com/x' } }
    t.match((await steps([{ ask: [bad] }])).said, [{ error: { code: -32602 } }], 'nobody is sent to just any address')
  })

  t.test(`prompts and resources ${way} may ask, too`, async (t) => {
    const { call, again } = await start(t, way)
    const json = JSON.stringify({ steps: [{ ask: [NAME] }], ...(way.includes('session') && { by: 'session' }) })
    const prompt = await call('prompts/get', { name: 'greet', arguments: { json } })
    t.match(prompt.message.result, { resultType: 'input_required' })
    const got = await again(prompt, all(prompt, ADA))
    t.match(got.message.result, { messages: [{ content: { text: JSON.stringify([ADA]) } }] })
    const resource = await call('resources/read', { uri: 'test://ask', arguments: { json } })
    const read = await again(resource, all(resource, ADA))
    t.match(read.message.result, { contents: [{ text: JSON.stringify([ADA]) }], ttlMs: 0, cacheScope: 'private' })
  })
}
