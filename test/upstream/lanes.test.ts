/** Calls that take turns at a server, so that large answers to one caller hold up nobody else. */
import t, { type Test } from 'tap'
import { Memory, unlimited } from '../../src/base/limits/memory.js'
import type { LaneCall, LaneName } from '../../src/servers/lane.js'
import { Lanes } from '../../src/servers/lanes.js'
import { until } from '../support/eventually.js'

const KIB = 1024
const MIB = 1024 * KIB

/** Sends a call when it has a turn, as a peer does. Returns a function for the length of its answer, or for none. */
function take(lanes: Lanes, name: LaneName & { client?: string }, go: () => void, ask: () => Promise<void>) {
  const call: LaneCall = { ...name, turn: undefined }
  if (lanes.calls++ === 0) {
    lanes.lone = call
    lanes.isAlone(call)
    go()
  } else if (lanes.enter(call, go, ask)) go()
  return (bytes: number | undefined) => {
    lanes.calls--
    if (call.turn) lanes.leave(call.turn, bytes)
    else lanes.lone = undefined
  }
}

/** A server whose answers the test gives, and that somebody else has called. */
function start(t: Test, { hasNeighbour = true, memory = unlimited() } = {}) {
  const lanes = new Lanes(memory)
  /** Names of calls in the order in which they were sent, and of questions of the bridge that wait for an answer. */
  const sent: string[] = []
  const asked: (() => void)[] = []
  const left: (() => void)[] = []
  t.teardown(() => {
    for (const leave of left) leave()
  })
  const call = (name: string, { principal = 'alice', tool = 'read', client = 'one' } = {}) => {
    const ask = () => new Promise<void>((resolve) => asked.push(resolve))
    const leave = take(lanes, { principal, method: 'tools/call', name: tool, client }, () => sent.push(name), ask)
    let isOver = false
    const over = (bytes: number | undefined) => {
      if (isOver) return
      isOver = true
      leave(bytes)
    }
    left.push(() => over(undefined))
    return { answer: (bytes = 1) => over(bytes), cancel: () => over(undefined) }
  }
  if (hasNeighbour)
    take(
      lanes,
      { principal: 'carol', method: 'tools/list' },
      () => {},
      async () => {},
    )(1)
  return { lanes, sent, asked, call }
}

const many = (count: number) => Array.from({ length: count }, (_, at) => `${at}`)

t.test('a lane of which nothing is known has one call at the server', async (t) => {
  const { sent, call } = start(t)
  const calls = many(5).map((name) => call(name))
  t.same(sent, ['0'])
  calls[0]?.answer(15 * MIB)
  t.same(sent, ['0', '1'])
  calls[1]?.answer(15 * MIB)
  t.same(sent, ['0', '1', '2'])
})

t.test('where nobody else calls, it has six', async (t) => {
  const { sent, call } = start(t, { hasNeighbour: false })
  for (const name of many(50)) call(name)
  t.equal(sent.length, 6)
})

t.test('a caller who does not read waits for memory before it gets further large answers', async (t) => {
  const memory = new Memory({ max: 100 * MIB, share: 0.5 })
  const { sent, call } = start(t, { memory })
  const calls = many(5).map((name) => call(name))
  const unread = memory.mustReserve('alice', 40 * MIB)
  calls[0]?.answer(15 * MIB)
  t.same(sent, ['0'])
  call('of bob', { principal: 'bob' }).answer(15 * MIB)
  call('another tool', { tool: 'write' }).answer(1)
  t.same(sent, ['0', 'of bob', 'another tool'])
  const other = call('other client', { client: 'two' })
  t.equal(sent.at(-1), 'other client', 'another client of the same principal may read')
  other.answer(15 * MIB)
  t.equal(sent.at(-1), '1', 'as long as they take turns')
  unread.end()
  calls[1]?.answer(15 * MIB)
  await until(() => sent.at(-1) === '2', 'the next call')
})

t.test('a lane with small answers has more calls with each, and soon all', async (t) => {
  const { sent, call } = start(t)
  const calls = many(100).map((name) => call(name))
  const counts = many(6).map((_, at) => {
    calls[at]?.answer(KIB)
    return sent.length
  })
  t.same(counts, [3, 6, 11, 20, 37, 70])
  calls[6]?.answer(MIB)
  t.equal(sent.length, 70, 'after a large one, no more')
})

t.test('large answers share a room: the smaller, the more of them', async (t) => {
  const { sent, call } = start(t)
  const calls = many(30).map((name) => call(name))
  calls[0]?.answer(MIB)
  t.equal(sent.length, 1 + 8)
  for (let at = 1; at < 9; at++) calls[at]?.answer(9 * MIB)
  t.equal(sent.length, 10, 'at last one after the other')
})

t.test('large answers of several tools and callers take turns, too', async (t) => {
  const { sent, call } = start(t)
  const tools = ['a', 'b', 'c']
  for (const tool of tools) {
    const calls = [call(tool, { tool }), call(tool, { tool })]
    for (const { answer } of calls) answer(15 * MIB)
  }
  sent.length = 0
  const calls = tools.flatMap((tool) => [call(tool, { tool }), call(tool, { tool })])
  t.same(sent, ['a'], 'one at the server')
  call('of bob', { principal: 'bob' }).answer()
  t.same(sent, ['a', 'of bob', 'b'], 'another one as soon as the server is free')
  for (const at of [0, 2, 1, 4, 3, 5]) calls[at]?.answer(15 * MIB)
  t.same(sent, ['a', 'of bob', 'b', 'a', 'c', 'b', 'c'])
})

t.test('calls of others, and of other tools, are sent at once', async (t) => {
  const { sent, call } = start(t)
  for (const name of many(5)) call(name)
  call('of bob', { principal: 'bob' })
  call('another tool', { tool: 'write' })
  t.same(sent, ['0', 'of bob', 'another tool'])
})

t.test('clients of one principal take turns', async (t) => {
  const { sent, call } = start(t)
  const first = call('0')
  for (const name of many(5).slice(1)) call(name)
  call('other client', { client: 'two' })
  first.answer(15 * MIB)
  t.same(sent, ['0', 'other client'])
})

t.test('an answer to a later call shows that the server is free', async (t) => {
  const { sent, call } = start(t)
  for (const name of many(20)) call(name)
  for (let at = 1; at < 12; at++) call(`of bob ${at}`, { principal: 'bob' }).answer()
  t.equal(sent.filter((name) => !name.startsWith('of bob')).length, 8, 'as long as no answer of the lane is known')
})

t.test('a server that answers large calls of a lane late gets no more of them', async (t) => {
  const { sent, call } = start(t)
  const calls = many(5).map((name) => call(name))
  calls[0]?.answer(15 * MIB)
  for (let at = 0; at < 5; at++) call('', { principal: 'bob' }).answer()
  t.same(
    sent.filter((name) => name !== ''),
    ['0', '1'],
  )
})

t.test('a cancelled call that waits is never sent; one at the server still holds it up', async (t) => {
  const { sent, call } = start(t)
  const calls = many(5).map((name) => call(name))
  calls[1]?.cancel()
  calls[0]?.cancel()
  t.same(sent, ['0'])
  call('of bob', { principal: 'bob' }).answer()
  t.same(sent, ['0', 'of bob', '2'])
})

t.test('asks a silent server, and sends more calls of slow tools if it answers', async (t) => {
  const { sent, asked, call } = start(t)
  for (const name of many(5)) call(name)
  for (const count of [3, 5]) {
    await until(() => asked.length === 1, 'a question')
    asked.pop()?.()
    await until(() => sent.length === count, `${count} calls`)
  }
})

t.test('leaves nothing behind', async (t) => {
  const { lanes, call } = start(t)
  const calls = many(5).map((name) => call(name))
  for (const { answer } of calls.toReversed()) answer()
  t.equal(lanes.calls, 0)
  t.equal(lanes.lone, undefined)
  const next = call('next')
  t.ok(lanes.lone, 'the next call is alone')
  next.answer()
  t.equal(lanes.lone, undefined)
})
