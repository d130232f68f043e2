/** What workers have in common, in the memory of the first process; and the calls between processes. */
import { EventEmitter } from 'node:events'
import t from 'tap'
import { type ProcessChannel, ProcessLink } from '../../src/services/replicas/link.js'
import { CommonMemory } from '../../src/services/replicas/memory.js'
import { until } from '../support/eventually.js'

t.test('values are for a time, and change only from what they are', async (t) => {
  const memory = new CommonMemory(10_000)
  t.equal(memory.get('a'), null)
  t.ok(memory.add('a', '1', 60_000))
  t.notOk(memory.add('a', '2', 60_000))
  t.notOk(memory.swap('a', { from: '2', to: '3', milliseconds: 60_000 }))
  t.ok(memory.swap('a', { from: '1', to: '3', milliseconds: 60_000 }))
  t.equal(memory.get('a'), '3')
  t.ok(memory.swap('a', { from: '3', to: '', milliseconds: 60_000 }), 'to nothing')
  t.ok(memory.swap('a', { from: '', to: '4', milliseconds: 1 }), 'from nothing')
  await until(() => memory.get('a') === null, 'the end of a value')
  memory.set('b', 'x', 60_000)
  memory.delete('b')
  t.equal(memory.get('b'), null)
})

t.test('what has not been used for longest goes first, and counts take no place of values', async (t) => {
  const memory = new CommonMemory(2_000)
  for (let i = 0; i < 10; i++) memory.set(`v${i}`, 'x'.repeat(300), 60_000)
  t.equal(memory.get('v0'), null)
  t.ok(memory.get('v9'))
  for (let i = 0; i < 1_000; i++) memory.increment(`c${i}`, 60_000)
  t.ok(memory.get('v9'))
})

t.test('a count begins anew when its time is over', async (t) => {
  const memory = new CommonMemory(10_000)
  const { current, ttl } = memory.increment('c', 60_000)
  t.equal(current, 1)
  t.ok(ttl > 0 && ttl <= 60_000)
  t.equal(memory.increment('c', 1).current, 2, 'the first one says how long')
  memory.increment('d', 1)
  await until(() => memory.increment('d', 1).current === 1, 'the end of a count')
})

/** Two ends of a channel. */
function channels() {
  const [one, other] = [new End(), new End()]
  one.other = other
  other.other = one
  return [one, other] as const
}

class End extends EventEmitter implements ProcessChannel {
  other: End | undefined
  connected = true
  send(message: object, passed: unknown, done: (error: Error | null) => void): void {
    setImmediate(() => {
      this.other?.emit('message', JSON.parse(JSON.stringify(message)), passed)
      done(null)
    })
  }
}

t.test('a call is answered with its result or its error, and fails if the other process ends', async (t) => {
  const [here, there] = channels()
  const link = new ProcessLink(here, {})
  const failure = Object.assign(new Error('in use'), { code: 'EADDRINUSE', port: 1 })
  new ProcessLink(there, {
    double: ({ number }: { number: number }) => 2 * number,
    fail: () => Promise.reject(failure),
    never: () => new Promise(() => {}),
  })
  t.same(await Promise.all([1, 2, 3].map((number) => link.call('double', { number }))), [2, 4, 6])
  await t.rejects(link.call('fail'), { message: 'in use', code: 'EADDRINUSE', port: 1 })
  const waiting = link.call('never')
  here.connected = false
  here.emit('disconnect')
  await t.rejects(waiting, /gone/)
  await t.rejects(link.call('double', { number: 1 }), /gone/)
  let isLost = false
  link.tell('double', {}, undefined, () => {
    isLost = true
  })
  t.ok(isLost, 'who gives a connection hears that it has not left')
})
