/** What legacy servers may know of folders: what their modern clients say, nothing, or what the configuration has. */
import t, { type Test } from 'tap'
import { ABLE, ADA, all, FOLDERS, NAME, of, ROOTS, startAsker, talk, WAYS } from '../support/asking.js'
import { startBridge } from '../support/bridge.js'
import { until } from '../support/eventually.js'
import type { Plan } from '../support/legacy-http.js'
import { CAPABILITIES, envelope, headersFor, post } from '../support/modern.js'

type Json = Record<string, unknown>

async function start(t: Test, way: (typeof WAYS)[number], { roots, greet = [] }: { roots?: unknown } & Plan = {}) {
  const asker = await startAsker(t, way, { greet })
  const { url } = await startBridge(t, { ...asker.server, ...(roots !== undefined && { roots }) })
  const declared = () =>
    of(asker, 'initialize').map(({ params }) => (params as { capabilities: Json }).capabilities['roots'])
  const order = () => asker.messages().map(({ method, id }) => method ?? `answer to ${String(id)}`)
  return { ...talk(url, asker), asker, url, declared, order, answers: () => of(asker) }
}

const declaring = (capabilities: object) => ({ meta: { [CAPABILITIES]: capabilities } })
const greet = [{ ...ROOTS, id: 'early' }]

for (const way of WAYS) {
  t.test(`a question ${way} right after the handshake is asked in the first tool call`, async (t) => {
    const { steps, call, again, answers, order, asker } = await start(t, way, { greet })
    await call('tools/list', {})
    await call('completion/complete', { ref: { type: 'ref/prompt', name: 'x' }, argument: { name: 'x', value: '' } })
    t.same(answers(), [], 'no list is invented, and nobody else is asked')
    const first = await steps([])
    t.match(first.message.result, { resultType: 'input_required' })
    t.same(Object.values(first.requests), [{ method: 'roots/list' }])
    t.same(answers(), [])
    t.same(of(asker, 'tools/call'), [], 'the tool may depend on it: it is called when the server knows')
    const last = await again(first, all(first, FOLDERS))
    t.match(last.message.result, { resultType: 'complete' })
    t.same(answers(), [{ jsonrpc: '2.0', id: 'early', result: FOLDERS }])
    t.same(order().slice(-2), ['answer to early', 'tools/call'])

    const next = await steps([{ ask: [ROOTS] }])
    t.same(Object.values(next.requests), [{ method: 'roots/list' }], 'in another call it is asked again')
    t.same((await again(next, all(next, { roots: [] }))).said, [{ roots: [] }])
  })

  t.test(`a client without roots is not asked for them, and the server is told so ${way}`, async (t) => {
    const { steps, answers, declared } = await start(t, way, { greet })
    const first = await steps([], {}, declaring({ elicitation: {} }))
    t.match(first.message.result, { resultType: 'complete' })
    await until(() => answers().length === 1, 'the refusal')
    t.match(answers(), [{ id: 'early', error: { code: -32601 } }])
    t.same(declared(), [undefined])
  })

  t.test(`with "off" no server that asks ${way} gets roots`, async (t) => {
    const { steps, answers, declared } = await start(t, way, { greet, roots: 'off' })
    const first = await steps([{ ask: [ROOTS] }])
    t.match(first.message.result, { resultType: 'complete' })
    t.match(first.said, [{ error: { code: -32601 } }])
    await until(() => answers().length === 2)
    t.match(answers(), [{ error: { code: -32601 } }, { error: { code: -32601 } }])
    t.same(declared(), [undefined])
  })

  t.test(`a server that asks ${way} gets the configured roots, and no client is asked`, async (t) => {
    const uris = ['file:///srv/data', 'file:///srv/%22quoted%22']
    const roots = { roots: uris.map((uri) => ({ uri })) }
    const { steps, call, answers, declared } = await start(t, way, { greet, roots: uris })
    for (const capabilities of [{}, ABLE]) {
      const before = answers().length
      await call('tools/list', {}, declaring(capabilities))
      await until(() => answers().length > before, 'the answer to what was asked right away')
      t.match(answers().at(-1), { id: 'early', result: roots })
      const first = await steps([{ ask: [ROOTS] }], {}, declaring(capabilities))
      t.same(first.said, [roots])
    }
    t.same(declared(), [{}, {}], 'they are declared whatever the client declares')
    const asked = await steps([{ ask: [NAME, ROOTS] }])
    t.same(
      Object.values(asked.requests).map(({ method }) => method),
      [NAME.method],
      'of everything else it is',
    )
  })

  t.test(`a question without a call waits for a moment ${way}, and is then refused`, async (t) => {
    const { call, steps, answers } = await start(t, way, { greet: [{ ...NAME, id: 'early' }] })
    await call('tools/list', {})
    t.same(answers(), [])
    await until(() => answers().length === 1, 'the refusal')
    t.match(answers(), [{ id: 'early', error: { code: -32603 } }])
    t.match((await steps([])).message.result, { resultType: 'complete' }, 'nothing is left of it')
  })

  t.test(`a question before a call is the first one asked in it ${way}`, async (t) => {
    const { steps, again, answers } = await start(t, way, { greet: [{ ...NAME, id: 'early' }] })
    // Over HTTP nothing can be asked before its stream is open, for which the first call waits.
    const first = await steps([{ wait: 100 }, { ask: [ROOTS] }])
    t.same(
      Object.values(first.requests).map(({ method }) => method),
      [NAME.method],
    )
    const second = await again(first, all(first, ADA))
    t.same((await again(second, all(second, FOLDERS))).said, [FOLDERS])
    t.match(answers(), [{ id: 'early', result: ADA }, { result: FOLDERS }])
  })
}

t.test('no client of 2026-07-28 can report changed roots', async (t) => {
  const { url, call, asker } = await start(t, 'over stdio')
  await call('tools/list', {})
  const body = JSON.stringify({
    jsonrpc: '2.0',
    method: 'notifications/roots/list_changed',
    params: { _meta: envelope({ [CAPABILITIES]: ABLE }) },
  })
  t.equal((await post(url, body, headersFor('notifications/roots/list_changed'))).status, 202)
  await call('tools/list', {})
  t.same(of(asker, 'notifications/roots/list_changed'), [])
})
