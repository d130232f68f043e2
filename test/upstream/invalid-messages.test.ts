/** How many bytes a server may send that are no JSON-RPC message. */
import t from 'tap'
import { InvalidMessages } from '../../src/servers/invalid-messages.js'

function play() {
  let time = 0
  const logged: object[] = []
  const invalid = new InvalidMessages({ warn: (fields) => logged.push(fields) }, () => time)
  const add = (length: number, requestOpen = true) => invalid.add('noise', length, requestOpen)
  const wait = (milliseconds: number) => {
    time += milliseconds
  }
  return { invalid, add, wait, logged }
}

const MIB = 1024 * 1024

t.test('bounds bytes without a message, and a message resets the count', async (t) => {
  const { invalid, add } = play()
  for (let n = 0; n < 16; n++) t.notOk(add(MIB))
  invalid.clear()
  for (let n = 0; n < 16; n++) t.notOk(add(MIB))
  t.ok(add(1))
})

t.test('bounds the time without a message while a request is open', async (t) => {
  const { add, wait } = play()
  add(1)
  wait(600_000)
  t.notOk(add(1))
  wait(1)
  t.ok(add(1))
})

t.test('an idle program may print for any time, but not without bound', async (t) => {
  const { add, wait } = play()
  for (let n = 0; n < 100; n++) {
    t.notOk(add(10 * MIB, false))
    wait(60_001)
  }
  t.notOk(add(10 * MIB, true), 'what it printed before the request does not count')
  t.ok(add(10 * MIB, false))
})

t.test('logs the first of it, and then a line in ten seconds with the count', async (t) => {
  const { add, wait, logged } = play()
  for (let n = 0; n < 1_000; n++) {
    add(1)
    wait(20)
  }
  t.same(logged, [
    { event: 'message_skipped', what: 'noise', skipped: 1 },
    { event: 'message_skipped', what: 'noise', skipped: 501 },
  ])
})
