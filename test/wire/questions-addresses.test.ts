/**
 * Servers that want a person to have been somewhere before they do anything (MCP 2025-11-25, URL elicitation required), and
 * modern clients that send one there. Numbers are those of test/invariants.md.
 */
import t, { type Test } from 'tap'
import { EVERYTHING } from '../interop/legacy-servers.js'
import { ABLE, all, codeOf, of, type Step, startAsker, talk, WAYS } from '../support/asking.js'
import { startBridge } from '../support/bridge.js'
import { until } from '../support/eventually.js'
import { CAPABILITIES } from '../support/modern.js'

async function start(t: Test, way: (typeof WAYS)[number]) {
  const asker = await startAsker(t, way)
  const { url } = await startBridge(t, asker.server)
  const client = talk(url, asker)
  /** Has a person go somewhere, which the server tells of. */
  const visit = (...ids: string[]) => client.call('tools/call', { name: 'visit', arguments: { ids } })
  const calls = () => of(asker, 'tools/call').filter(({ params }) => (params as { name: string }).name === 'steps')
  return { ...client, asker, url, visit, calls }
}

let minted = 0
const address = () => {
  const elicitationId = `address-${++minted}`
  return { mode: 'url', elicitationId, url: `https://example.com/${elicitationId}`, message: 'Please sign in' }
}
const YES = { action: 'accept' }

for (const way of WAYS) {
  t.test(`a URL that a server ${way} requires is a question, and the call is repeated`, async (t) => {
    const { steps, again, visit, calls, asker } = await start(t, way)
    const page = address()
    const first = await steps([{ visit: [page] }])
    t.match(first.message.result, { resultType: 'input_required' })
    t.same(Object.values(first.requests), [
      { method: 'elicitation/create', params: { mode: 'url', message: page.message, url: page.url } },
    ])
    t.equal(calls().length, 1)
    const waiting = again(first, all(first, YES))
    await until(() => calls().length === 2, 'the call made again at once')
    await visit(page.elicitationId)
    t.match((await waiting).message.result, { resultType: 'complete' })
    t.equal(calls().length, 3, 'and once more when the person had been there')
    t.notMatch(JSON.stringify(calls()[1]), /inputResponses|requestState/)
    t.same(of(asker), [], 'there was nothing to answer')
  })

  t.test(`several URLs ${way} are one question round, and further ones another`, async (t) => {
    const { steps, again, visit } = await start(t, way)
    const pages = [address(), address(), address()]
    const first = await steps([{ visit: pages.slice(0, 2) }, { visit: pages.slice(2) }])
    t.equal(first.keys.length, 2)
    await visit(...pages.slice(0, 2).map(({ elicitationId }) => elicitationId))
    const second = await again(first, all(first, YES))
    t.match(Object.values(second.requests), [{ params: { url: pages[2]?.url } }])
    t.not(second.state, first.state)
    await visit(String(pages[2]?.elicitationId))
    t.match((await again(second, all(second, YES))).message.result, { resultType: 'complete' })
  })

  t.test(`a refused URL ends the call ${way} without a visit`, async (t) => {
    const { steps, call, again, calls } = await start(t, way)
    const refusals = [{ action: 'decline' }, { action: 'cancel' }, { action: 'decline', content: { said: 'accept' } }]
    for (const refusal of refusals) {
      const first = await steps([{ visit: [address(), address()] }])
      const [one = '', other = ''] = first.keys
      const before = calls().length
      const last = await again(first, { [one]: YES, [other]: refusal })
      t.match(last.message.result, { resultType: 'complete', isError: true, content: [{ type: 'text' }] })
      t.equal(calls().length, before, 'and it is not made again')
      t.same(codeOf(await again(first, all(first, YES))), { status: 200, code: -32602 }, 'the state is used up')
    }
    const json = JSON.stringify({ steps: [{ visit: [address()] }] })
    const prompt = await call('prompts/get', { name: 'greet', arguments: { json } })
    t.same(codeOf(await again(prompt, all(prompt, { action: 'decline' }))), { status: 200, code: -32603 })
  })

  t.test(`an invalid answer to a URL does not use up the state ${way}`, async (t) => {
    const { steps, again, visit } = await start(t, way)
    const pages = [address(), address()]
    const first = await steps([{ visit: pages }])
    const [one = '', other = ''] = first.keys
    for (const answers of [{ [one]: 42 }, { [one]: {}, [other]: { action: 'maybe' } }])
      t.same(codeOf(await again(first, answers)), { status: 200, code: -32602 }, JSON.stringify(answers))
    await visit(...pages.map(({ elicitationId }) => elicitationId))
    t.match((await again(first, all(first, YES))).message.result, { resultType: 'complete' })
  })

  t.test(`asks again for all URLs ${way} if none was answered`, async (t) => {
    const { steps, again, visit } = await start(t, way)
    const pages = [address(), address()]
    let round = await steps([{ visit: pages }])
    const { keys, requests } = round
    for (const answers of [undefined, {}, { x: YES }]) {
      round = await again(round, answers)
      t.same(round.keys, keys, JSON.stringify(answers))
      t.same(round.requests, requests)
    }
    await visit(...pages.map(({ elicitationId }) => elicitationId))
    t.match((await again(round, all(round, YES))).message.result, { resultType: 'complete' })
  })

  t.test(`repeats a call ${way} at once when its URLs are accepted, and then does not wait`, async (t) => {
    const { steps, again, visit, calls } = await start(t, way)
    const pages = [address(), address()]
    const first = await steps([{ visit: pages }])
    await visit(...pages.map(({ elicitationId }) => elicitationId))
    t.match((await again(first, all(first, YES))).message.result, { resultType: 'complete' })
    t.equal(calls().length, 2)
  })

  t.test(`after one of two URLs ${way} was accepted, asks again only for the other`, async (t) => {
    const { steps, again, visit, calls } = await start(t, way)
    const pages = [address(), address()]
    const first = await steps([{ visit: pages }])
    const [one = '', other = ''] = first.keys
    const answers: [now: object, later: object][] = [
      [{ [one]: YES }, { [other]: YES }],
      [{ [one]: YES, [other]: 42 }, { [other]: YES }],
      [{ [one]: {}, [other]: YES }, { [one]: YES }],
    ]
    await visit(...pages.map(({ elicitationId }) => elicitationId))
    const before = calls().length
    const fresh = async () => {
      const again = pages.map((page) => ({ ...page, ...address() }))
      const round = await steps([{ visit: again }])
      await visit(...again.map(({ elicitationId }) => elicitationId))
      return round
    }
    for (const [now, later] of answers) {
      const round = await fresh()
      const second = await again(round, now)
      t.same(second.keys, Object.keys(later), JSON.stringify(now))
      t.equal((await again(round, now)).state, second.state, 'a repeated answer is answered alike')
      t.match((await again(second, later)).message.result, { resultType: 'complete' })
    }
    t.equal(calls().length - before, 2 * answers.length, 'each call was made again once')
    const declined = await again(await again(await fresh(), { [one]: YES }), { [other]: { action: 'decline' } })
    t.match(declined.message.result, { resultType: 'complete', isError: true })
  })

  t.test(`a client without URL elicitation learns what it lacks ${way}`, async (t) => {
    const { steps } = await start(t, way)
    for (const declared of [{}, { elicitation: {} }, { elicitation: { form: {} } }, { sampling: {}, roots: {} }]) {
      const options = { meta: { [CAPABILITIES]: declared } }
      const refused = await steps([{ visit: [address()] }], {}, options)
      t.same(codeOf(refused), { status: 400, code: -32021 }, JSON.stringify(declared))
      t.same(refused.message.error?.data?.['requiredCapabilities'], { elicitation: { url: {} } })
    }
  })

  t.test(`does not pass on URLs that nobody may be sent to ${way}`, async (t) => {
    const { steps, call } = await start(t, way)
    const error = (data: unknown): Step => ({ fail: { code: -32042, message: 'Go there', data: data as object } })
    const page = address()
    const rows: unknown[] = [
      undefined,
      {},
      { elicitations: [] },
      { elicitations: page },
      { elicitations: [page, { ...page, url: 'http://example.com/canary' }] },
      { elicitations: [{ ...page, url: 'javascript:canary' }] },
      { elicitations: [{ ...page, url: '/canary' }] },
      { elicitations: [{ ...page, url: 7 }] },
      { elicitations: [null] },
    ]
    for (const data of rows) {
      const answer = await steps([error(data)])
      t.same(codeOf(answer), { status: 200, code: -32603 }, JSON.stringify(data))
      t.equal(answer.message.error?.message, 'Go there')
      t.notMatch(answer.text, /canary|example\.com|javascript/)
    }
    const local = { ...page, url: 'http://localhost:8080/x' }
    t.match((await steps([error({ elicitations: [local] })])).message.result, { resultType: 'input_required' })
    const listed = await call('completion/complete', {
      ref: { type: 'ref/prompt', name: 'x' },
      argument: { name: 'x' },
    })
    t.equal(listed.status, 200)
  })
}

t.test('the URL elicitation of the official reference server needs no notification', async (t) => {
  const { url } = await startBridge(t, { command: process.execPath, args: [EVERYTHING, 'stdio'] })
  const { call, again } = talk(url)
  const page = 'https://example.com/sign-in'
  const first = await call('tools/call', {
    name: 'trigger-url-elicitation',
    arguments: { url: page, errorPath: true },
  })
  t.match(Object.values(first.requests), [{ params: { mode: 'url', url: 'https://modelcontextprotocol.io' } }])
  const second = await again(first, all(first, YES))
  t.match(Object.values(second.requests), [{ params: { mode: 'url', url: page } }], 'the call went on')
  t.match((await again(second, all(second, YES))).said, /User completed the URL elicitation flow/)
})

t.test('a tool that runs as a task may require a URL, before or during it', async (t) => {
  const { call, again, visit } = await start(t, 'over stdio')
  const knowing = { ...ABLE, extensions: { 'io.modelcontextprotocol/tasks': {} } }
  const rows: [what: string, capabilities: object, args: (page: object) => object, resultType: string][] = [
    ['before, for a client with tasks', knowing, (page) => ({ first: [page] }), 'task'],
    ['before, for a client without', ABLE, (page) => ({ first: [page] }), 'complete'],
    ['in its course, for a client without', ABLE, (page) => ({ steps: [{ visit: [page] }] }), 'complete'],
  ]
  for (const [what, capabilities, args, resultType] of rows) {
    const page = address()
    const options = { meta: { [CAPABILITIES]: capabilities } }
    const first = await call('tools/call', { name: 'job', arguments: args(page) }, options)
    t.match(Object.values(first.requests), [{ params: { url: page.url } }], what)
    await visit(page.elicitationId)
    t.match((await again(first, all(first, YES), {}, options)).message.result, { resultType }, what)
  }
})
