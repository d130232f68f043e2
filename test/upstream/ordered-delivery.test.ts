/** The bridge delivers messages in the order in which they arrived, no matter which reader gets them. */
import t from 'tap'
import { Memory, unlimited } from '../../src/base/limits/memory.js'
import { OrderedDelivery } from '../../src/servers/legacy/ordered-delivery.js'

t.test('sends a message without a reader after all that arrived before it', async (t) => {
  const delivery = new OrderedDelivery<{ name: string }>(unlimited().reserve('alice'))
  const [a, b] = [{ name: 'a' }, { name: 'b' }]
  const out: string[] = []
  for (const reader of [a, b]) delivery.enter(reader)
  delivery.pass(() => out.push('first'), 1)
  delivery.add(a)
  delivery.add(b)
  delivery.pass(() => out.push('log'), 1)
  delivery.add(b)
  delivery.pass(() => out.push('last'), 1)
  t.same(out.splice(0), ['first'])
  const waits = delivery.wait(b)?.then(() => out.push('b'))
  t.equal(delivery.wait(a), undefined)
  out.push('a')
  delivery.done(a)
  await waits
  t.same(out.splice(0), ['a', 'b'])
  delivery.done(b)
  t.same(out.splice(0), ['log'])
  t.equal(delivery.wait(b), undefined)
  delivery.done(a)
  t.same(out, [], 'it is not the turn of a')
  delivery.done(b)
  t.same(out, ['last'])
})

t.test('a reader that has left delays no other', async (t) => {
  const delivery = new OrderedDelivery<object>(unlimited().reserve('alice'))
  const [a, b] = [{}, {}]
  const out: string[] = []
  for (const reader of [a, b]) delivery.enter(reader)
  delivery.add(a)
  delivery.add(a)
  delivery.add(b)
  delivery.pass(() => out.push('log'), 1)
  const waits = delivery.wait(b)
  delivery.leave(a)
  await waits
  t.equal(delivery.wait(a), undefined)
  delivery.leave(b)
  t.same(out, ['log'])
})

t.test('answers that are read out of order, like that to a ping of the bridge, delay nobody', async (t) => {
  const delivery = new OrderedDelivery<object>(unlimited().reserve('alice'))
  const [ping, call] = [{}, {}]
  const out: string[] = []
  delivery.enter(call)
  delivery.add(ping)
  delivery.pass(() => out.push('log'), 1)
  delivery.add(call)
  t.equal(delivery.wait(call), undefined)
  t.same(out, ['log'])
})

t.test('at the end, sends messages without a reader, and readers stop waiting', async (t) => {
  const delivery = new OrderedDelivery<object>(unlimited().reserve('alice'))
  const [a, b] = [{}, {}]
  const out: string[] = []
  for (const reader of [a, b]) delivery.enter(reader)
  delivery.add(a)
  delivery.add(b)
  delivery.pass(() => out.push('log'), 1)
  const waits = delivery.wait(b)
  delivery.end()
  await waits
  t.same(out, ['log'])
  t.equal(delivery.wait(a), undefined)
})

t.test('bounds the number of waiting messages', async (t) => {
  const delivery = new OrderedDelivery<object>(unlimited().reserve('alice'))
  const out: number[] = []
  const reader = {}
  delivery.enter(reader)
  delivery.add(reader)
  for (let n = 0; n < 2_000; n++) delivery.pass(() => out.push(n), 1)
  t.equal(out.length, 2_000 - 1_023)
})

t.test('waiting messages reserve memory, and are sent at once without it', async (t) => {
  const memory = new Memory({ max: 10 * 1024 * 1024, share: 1 })
  const delivery = new OrderedDelivery<object>(memory.reserve('alice'))
  const [reader, out] = [{}, [] as number[]]
  delivery.enter(reader)
  delivery.add(reader)
  for (let n = 0; n < 4; n++) delivery.pass(() => out.push(n), 4 * 1024 * 1024)
  t.same(out.splice(0), [2, 3])
  t.equal(memory.used, 8 * 1024 * 1024)
  delivery.done(reader)
  t.same(out, [0, 1])
  t.equal(memory.used, 0)
})
