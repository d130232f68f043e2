/** Lists of a group: equal ones are merged once, and the order in which servers start or answer changes nothing (7.2). */
import fc from 'fast-check'
import t from 'tap'
import { Fault } from '../../src/base/fault/fault.js'
import { type Payload, parseObject, value } from '../../src/base/rpc/splice.js'
import { ask, callOf, FakeServer, groupOf, named, resultOf } from './fakes.js'

type Result = Record<string, unknown>

const textOf = (text: string) => ({ content: [{ type: 'text', text }] })
const listOf = (...names: string[]) => parseObject(JSON.stringify({ tools: named(...names) }))
const given = (result: Payload) => () => ({ kind: 'result', result }) as const

t.test('merges a list again only after one of its parts has changed', async (t) => {
  for (const bareNames of [false, true]) {
    const [x, y] = [listOf('x', 'z'), listOf('y', 'z')]
    const a = new FakeServer({ 'tools/list': given(x) })
    const b = new FakeServer({ 'tools/list': given(y) })
    const { group, planOf } = groupOf({ a, b }, { bareNames })
    const list = async (principal = 'alice') => {
      const reply = await group.handle(callOf('tools/list', {}, { principal }))
      return reply.kind === 'result' ? reply.result : undefined
    }
    const names = async (principal?: string) =>
      ((await ask(group, 'tools/list', {}, principal === undefined ? {} : { principal }))['tools'] as Result[]).map(
        ({ name }) => name,
      )
    const first = await list()
    t.equal(await list(), first, 'what a cache gives twice')
    t.equal(await list('bob'), first, 'what another caller gets alike')
    b.answers['tools/list'] = () => resultOf({ tools: named('y', 'z') })
    t.equal(await list(), first, 'what a server says again')

    b.answers['tools/list'] = ({ principal }) => given(principal === 'bob' ? listOf('secret') : listOf('q'))()
    t.same(await names(), bareNames ? ['x', 'z', 'q'] : ['a__x', 'a__z', 'b__q'])
    t.same(await names('bob'), bareNames ? ['x', 'z', 'secret'] : ['a__x', 'a__z', 'b__secret'])
    b.answers['tools/list'] = () => resultOf({ tools: named('q'), _meta: { 'com.example/of': 'b' } })
    t.match(await ask(group, 'tools/list'), { _meta: { 'com.example/of': 'b' } })
    b.answers['tools/list'] = () => resultOf({ tools: named('q'), _meta: { 'com.example/of': 'c' } })
    t.match(await ask(group, 'tools/list'), { _meta: { 'com.example/of': 'c' } })

    b.answers['tools/list'] = given(y)
    t.equal(await list(), first)
    group.change(planOf({ a, b }, { bareNames: !bareNames }))
    t.same(await names(), bareNames ? ['a__x', 'a__z', 'b__y', 'b__z'] : ['x', 'z', 'y'], 'with other names')
    group.change(planOf({ b, a }, { bareNames }))
    t.same(await names(), bareNames ? ['y', 'z', 'x'] : ['b__y', 'b__z', 'a__x', 'a__z'], 'in another order')
  }
})

t.test('a name on any page of an earlier server is left out of all pages of a later one', async (t) => {
  const pagesOf =
    (...pages: string[][]) =>
    (call: { params: Payload }) => {
      const at = Number(value(call.params, 'cursor') ?? 0)
      return resultOf({
        tools: named(...(pages[at] as string[])),
        ...(at + 1 < pages.length && { nextCursor: `${at + 1}` }),
      })
    }
  const { group, log } = groupOf(
    {
      a: new FakeServer({ 'tools/list': pagesOf(['x'], ['y'], ['late']) }),
      b: new FakeServer({ 'tools/list': pagesOf(['late', 'x', 'z'], ['y', 'end']) }),
      c: new FakeServer({ 'tools/list': pagesOf(['end', 'c']) }),
    },
    { bareNames: true },
  )
  const pages: unknown[][] = []
  for (let cursor: unknown; pages.length === 0 || cursor !== undefined; ) {
    const page = await ask(group, 'tools/list', cursor === undefined ? {} : { cursor })
    pages.push((page['tools'] as Result[]).map(({ name }) => name))
    cursor = page['nextCursor']
  }
  t.same(pages, [['x', 'z', 'c'], ['y', 'end'], ['late']])
  t.same(log.map(({ server, name }) => `${server} ${name}`).sort(), ['b late', 'b x', 'b y', 'c end'])
})

/** Four servers with some equal names. Each is down until it is `started`. */
function servers() {
  const tools = [['one', 'both'], ['both', 'two'], [], ['one', 'three', 'both']]
  const all = Object.fromEntries(
    tools.map((names, i) => {
      const answers = {
        'tools/list': { tools: named(...names) },
        'prompts/list': { prompts: names.map((name) => ({ name })) },
        'resources/list': { resources: names.map((name) => ({ uri: `file:///${name}`, name })) },
        'server/discover': { capabilities: { tools: {}, prompts: {}, resources: {} }, instructions: `server ${i}` },
        'tools/call': textOf('abcd'.charAt(i)),
      }
      return ['abcd'.charAt(i), new FakeServer(answers)]
    }),
  )
  return all as Record<'a' | 'b' | 'c' | 'd', FakeServer>
}
const LISTS = ['tools/list', 'prompts/list', 'resources/list', 'server/discover']
const MODES = [{}, { bareNames: true }, { bareNames: true, bareUris: true }]
const order = fc.shuffledSubarray(['a', 'b', 'c', 'd'] as const, { minLength: 4 })

/** All lists, and the server that gets a call of each listed tool. */
async function seen(group: ReturnType<typeof groupOf>['group'], principal: string) {
  const lists: Record<string, Result> = {}
  for (const method of LISTS) lists[method] = await ask(group, method, {}, { principal })
  const owners: Record<string, unknown> = {}
  for (const { name } of lists['tools/list']?.['tools'] as { name: string }[])
    owners[name] = (await ask(group, 'tools/call', { name }, { principal }))['content']
  return { lists, owners }
}

t.test('the order in which servers start does not change a list, a name or an owner', async (t) => {
  for (const plan of MODES) {
    const expected = await seen(groupOf(servers(), plan).group, 'alice')
    await fc.assert(
      fc.asyncProperty(order, fc.boolean(), async (starts, looksBetween) => {
        const all = servers()
        for (const server of Object.values(all)) server.down = new Fault('upstreamUnavailable', 'not started')
        const { group } = groupOf(all, plan)
        for (const name of starts) {
          all[name].down = undefined
          if (looksBetween) await seen(group, 'alice')
        }
        for (const principal of ['alice', 'bob']) t.same(await seen(group, principal), expected)
      }),
      { numRuns: 30 },
    )
  }
})

t.test('the order in which servers answer does not change a list, a name or an owner', async (t) => {
  for (const plan of MODES) {
    const expected = await seen(groupOf(servers(), plan).group, 'alice')
    await fc.assert(
      fc.asyncProperty(order, async (answers) => {
        const all = servers()
        const { group } = groupOf(all, plan)
        for (const method of LISTS) {
          const gates = new Map<string, () => void>()
          for (const [name, server] of Object.entries(all)) {
            const answer = server.answers[method] as Result
            const opened = new Promise<void>((resolve) => gates.set(name, resolve))
            server.answers[method] = async () => {
              await opened
              return resultOf(answer)
            }
          }
          const asked = ask(group, method)
          for (const name of answers) {
            gates.get(name)?.()
            // Lets the group handle this answer before the next one.
            await new Promise(setImmediate)
          }
          t.same(await asked, expected.lists[method], method)
        }
        t.same(await seen(group, 'alice'), expected)
      }),
      { numRuns: 15 },
    )
  }
})

t.test('while servers start, names of answering servers already have their owners', async () => {
  await fc.assert(
    fc.asyncProperty(order, fc.integer({ min: 0, max: 4 }), async (starts, count) => {
      const all = servers()
      const { group } = groupOf(all)
      const up = new Set<string>(starts.slice(0, count))
      const whole = (await ask(group, 'tools/list'))['tools'] as { name: string }[]
      for (const [name, server] of Object.entries(all))
        if (!up.has(name)) server.down = new Fault('upstreamUnavailable', 'not started')
      const later = groupOf(all).group
      if (count === 0) return
      const some = (await ask(later, 'tools/list'))['tools'] as { name: string }[]
      const expected = whole.filter(({ name }) => up.has(name.charAt(0)))
      if (JSON.stringify(some) !== JSON.stringify(expected)) throw new Error(JSON.stringify({ some, expected }))
    }),
  )
})

t.test('a list of tools that is large for a model is told, with its tokens and what to do', async (t) => {
  const bulky = (count: number) =>
    listOf(...Array.from({ length: count }, (_, i) => `tool_with_a_name_of_some_length_${String(i).padStart(4, '0')}`))
  const small = new FakeServer({ 'tools/list': given(bulky(50)) })
  const large = new FakeServer({ 'tools/list': given(bulky(1_500)) })
  const { group, log } = groupOf({ small })
  await ask(group, 'tools/list')
  t.same(log, [])
  const { group: both, log: told } = groupOf({ small, large })
  for (const principal of ['alice', 'bob', 'alice']) await ask(both, 'tools/list', {}, { principal })
  t.match(told, [{ event: 'group_tools_large', tokens: Number, count: 1_550 }])
  t.equal(told.length, 1, 'once')
  const [{ tokens }] = told as unknown as [{ tokens: number }]
  const { tools } = await ask(both, 'tools/list')
  const characters = JSON.stringify(tools).length
  t.ok(Math.abs(tokens - characters / 4) < 1_000, `${tokens} for ${characters} characters`)
})

t.test('the tokens of a list in pages are those of all its pages', async (t) => {
  const tools = Array.from({ length: 900 }, (_, i) => ({
    name: `t${i}`,
    description: 'x'.repeat(60),
    inputSchema: { type: 'object' },
  }))
  const paged = () =>
    new FakeServer({
      'tools/list': (call) => {
        const at = Number(value(call.params, 'cursor') ?? 0)
        const more = at + 300 < tools.length
        return resultOf({ tools: tools.slice(at, at + 300), ...(more && { nextCursor: String(at + 300) }) })
      },
    })
  const { group, log } = groupOf({ a: paged(), b: paged() })
  const told = () => log.filter(({ event }) => event === 'group_tools_large')
  const page = async (cursor?: unknown) => (await ask(group, 'tools/list', cursor ? { cursor } : {}))['nextCursor']
  for (let times = 1; times <= 2; times++) {
    const second = await page()
    if (times === 1) t.same(told(), [], 'one page is not large')
    await page(await page(second))
    t.match(told(), [{ count: Number, tokens: Number }], 'once')
    t.equal(told().length, 1, 'once')
  }
  const searched = groupOf({ a: paged(), b: paged() }, { search: { always: ['*'], limit: 5 } })
  await ask(searched.group, 'tools/list')
  t.match(
    searched.log.filter(({ event }) => event === 'group_tools_large'),
    [{ count: 1_802 }],
  )
})
