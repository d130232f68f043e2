/** How the servers of a group share the index of their tools, and when it is made anew. */
import t from 'tap'
import { Memory, unlimited } from '../../src/base/limits/memory.js'
import type { WholeList } from '../../src/middle/group/lists.js'
import { ToolIndexes } from '../../src/middle/group/tool-indexes.js'
import { FakeServer } from './fakes.js'

/** Bytes of the index of ten tools, and a little more. */
const TEN = 8_000

function listOf(server: string, count: number): WholeList {
  const items = Array.from({ length: count }, (_, at) => {
    const name = `${server}__${[...String(at)].map((digit) => 'abcdefghij'[Number(digit)]).join('')}`
    return { id: name, shown: name, text: JSON.stringify({ name, description: `${name}x ${name}y` }) }
  })
  const member = { server, prefix: server, upstream: new FakeServer(), takesPart: () => true }
  return { member, key: `${server} ${count}`, items }
}

function setUp(maxBytes?: number, memory: Memory = unlimited()) {
  const cuts: string[] = []
  const log = { cut: ({ server }: { server: string }, _method: string, why: string) => cuts.push(`${server}: ${why}`) }
  return { indexes: new ToolIndexes(memory, log, maxBytes), cuts }
}
const counts = async (indexes: ToolIndexes, lists: readonly WholeList[]) =>
  (await indexes.of(lists)).map(({ count }) => count)

t.test('a server with many tools takes nothing of the share of others, and has what they do not need', async (t) => {
  const { indexes, cuts } = setUp(4 * TEN)
  const [first, many = 0, last] = await counts(indexes, [listOf('a', 10), listOf('b', 10_000), listOf('c', 10)])
  t.same([first, last], [10, 10])
  t.ok(many > 20 && many < 60, `${many} of 10,000`)
  t.same(cuts, [`b: the index has room for ${many} of 10000 tools`])
})

t.test('an index is made once, and again only if its list or its share changes', async (t) => {
  const { indexes } = setUp(4 * TEN)
  const [a, b, c] = [listOf('a', 10), listOf('b', 1_000), listOf('c', 10)]
  const before = await indexes.of([a, b, c])
  t.strictSame(await indexes.of([a, b, c]), before)
  const [one, two, three] = await indexes.of([a, listOf('b', 1_001), c])
  t.equal(one, before[0])
  t.not(two, before[1])
  t.equal(three, before[2])
  const [, larger] = await indexes.of([a, b])
  t.ok((larger?.count ?? 0) > (before[1]?.count ?? 0), 'a larger share has more tools')
})

t.test('searches at the same time share the making of an index', async (t) => {
  const { indexes } = setUp()
  const lists = [listOf('a', 500)]
  const [one, other] = await Promise.all([indexes.of(lists), indexes.of(lists)])
  t.equal(one?.[0], other?.[0])
})

t.test('without memory a part of the tools is searched', async (t) => {
  const { indexes, cuts } = setUp(undefined, new Memory({ max: TEN }))
  const [count = 0] = await counts(indexes, [listOf('a', 1_000)])
  t.ok(count > 0 && count < 100, `${count} of 1,000`)
  t.equal(cuts.length, 1)
  indexes.close()
})
