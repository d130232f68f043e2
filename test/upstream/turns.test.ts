/** Messages that go out in the order in which they came in, whoever takes them. */
import t from 'tap'
import { Memory, unlimited } from '../../src/protocol/memory.js'
import { Turns } from '../../src/upstream/legacy/turns.js'

t.test('H28 what is nobody’s goes out when all that came before it has', async (t) => {
  const turns = new Turns<{ name: string }>(unlimited().borrow('alice'))
  const [a, b] = [{ name: 'a' }, { name: 'b' }]
  const out: string[] = []
  for (const reader of [a, b]) turns.enter(reader)
  turns.pass(() => out.push('first'), 1)
  turns.add(a)
  turns.add(b)
  turns.pass(() => out.push('log'), 1)
  turns.add(b)
  turns.pass(() => out.push('last'), 1)
  t.same(out.splice(0), ['first'])
  const waits = turns.wait(b)?.then(() => out.push('b'))
  t.equal(turns.wait(a), undefined)
  out.push('a')
  turns.done(a)
  await waits
  t.same(out.splice(0), ['a', 'b'])
  turns.done(b)
  t.same(out.splice(0), ['log'])
  t.equal(turns.wait(b), undefined)
  turns.done(a)
  t.same(out, [], 'it is not the turn of a')
  turns.done(b)
  t.same(out, ['last'])
})

t.test('who takes nothing any more holds nobody up', async (t) => {
  const turns = new Turns<object>(unlimited().borrow('alice'))
  const [a, b] = [{}, {}]
  const out: string[] = []
  for (const reader of [a, b]) turns.enter(reader)
  turns.add(a)
  turns.add(a)
  turns.add(b)
  turns.pass(() => out.push('log'), 1)
  const waits = turns.wait(b)
  turns.leave(a)
  await waits
  t.equal(turns.wait(a), undefined)
  turns.leave(b)
  t.same(out, ['log'])
})

t.test('11.1 answers that are read out of turn, as that to a ping of the bridge, hold nobody up', async (t) => {
  const turns = new Turns<object>(unlimited().borrow('alice'))
  const [ping, call] = [{}, {}]
  const out: string[] = []
  turns.enter(call)
  turns.add(ping)
  turns.pass(() => out.push('log'), 1)
  turns.add(call)
  t.equal(turns.wait(call), undefined)
  t.same(out, ['log'])
})

t.test('at the end all that is nobody’s goes out, and whoever waits goes on', async (t) => {
  const turns = new Turns<object>(unlimited().borrow('alice'))
  const [a, b] = [{}, {}]
  const out: string[] = []
  for (const reader of [a, b]) turns.enter(reader)
  turns.add(a)
  turns.add(b)
  turns.pass(() => out.push('log'), 1)
  const waits = turns.wait(b)
  turns.end()
  await waits
  t.same(out, ['log'])
  t.equal(turns.wait(a), undefined)
})

t.test('no more than a bounded number waits', async (t) => {
  const turns = new Turns<object>(unlimited().borrow('alice'))
  const out: number[] = []
  const reader = {}
  turns.enter(reader)
  turns.add(reader)
  for (let n = 0; n < 2_000; n++) turns.pass(() => out.push(n), 1)
  t.equal(out.length, 2_000 - 1_023)
})

t.test('H27 what waits for its turn is weighed, and goes out at once where there is no memory for it', async (t) => {
  const memory = new Memory({ max: 10 * 1024 * 1024, share: 1 })
  const turns = new Turns<object>(memory.borrow('alice'))
  const [reader, out] = [{}, [] as number[]]
  turns.enter(reader)
  turns.add(reader)
  for (let n = 0; n < 4; n++) turns.pass(() => out.push(n), 4 * 1024 * 1024)
  t.same(out.splice(0), [2, 3])
  t.equal(memory.used, 8 * 1024 * 1024)
  turns.done(reader)
  t.same(out, [0, 1])
  t.equal(memory.used, 0)
})
