/** Requests that are being answered, and how a client cancels one. */
import t from 'tap'
import type { Id, Params } from '../../src/base/rpc/message.js'
import { parseObject } from '../../src/base/rpc/splice.js'
import { InFlight } from '../../src/clients/legacy/in-flight.js'

const id = (text: string) => text as Id
const cancelled = (requestId: string, reason = '"Enough"'): Params =>
  parseObject(`{"requestId":${requestId},"reason":${reason}}`)

t.test('finds a request by its id from its start to its end', async (t) => {
  const running = new InFlight()
  const controller = running.enterRequest(id('1'))
  t.ok(running.hasRequest(id('1')))
  t.notOk(running.hasRequest(id('"1"')), 'a number is no text')
  t.equal(running.size, 1)
  running.leaveRequest(id('1'), controller)
  running.leaveRequest(id('1'), controller)
  t.notOk(running.hasRequest(id('1')))
  t.equal(running.size, 0)
})

t.test('a cancellation aborts the request that it names, with the reason', async (t) => {
  const running = new InFlight()
  const [one, two] = [running.enterRequest(id('1')), running.enterRequest(id('"1"'))]
  running.cancel(cancelled('1'))
  t.ok(one.aborted)
  t.equal(one.reason, 'Enough')
  t.notOk(two.aborted)
  running.cancel(cancelled('"1"', '7'))
  t.type(two.reason, 'string', 'a reason that is no text is none')
})

t.test('an id is the same in any escaping', async (t) => {
  const running = new InFlight()
  const controller = running.enterRequest(id('"a\\u00e9"'))
  t.ok(running.hasRequest(id('"aé"')))
  running.cancel(cancelled('"\\u0061é"'))
  t.ok(controller.aborted)
})

t.test('two requests with one id cannot be cancelled until one of them ends', async (t) => {
  const running = new InFlight()
  const [one, two] = [running.enterRequest(id('1')), running.enterRequest(id('1'))]
  running.cancel(cancelled('1'))
  t.notOk(one.aborted || two.aborted)
  t.equal(running.size, 2)
  running.leaveRequest(id('1'), one)
  running.cancel(cancelled('1'))
  t.notOk(one.aborted)
  t.ok(two.aborted)
})

t.test('a cancellation that names no request aborts nothing', async (t) => {
  const running = new InFlight()
  const controller = running.enterRequest(id('1'))
  for (const params of ['absent', 'not an object'] as const) running.cancel(params)
  for (const requestId of ['null', '2', '1.5', '-1', '{}', '[1]', 'true']) running.cancel(cancelled(requestId))
  running.cancel(parseObject('{}'))
  running.cancel(parseObject('{"requestID":1}'))
  t.notOk(controller.aborted)
})

t.test('an integer is the same in any spelling', async (t) => {
  for (const requestId of ['1.0', '1e0', '10E-1']) {
    const running = new InFlight()
    const controller = running.enterRequest(id('1'))
    running.cancel(cancelled(requestId))
    t.ok(controller.aborted, requestId)
  }
})

t.test('aborts all at once, also those with the same id', async (t) => {
  const running = new InFlight()
  const all = ['1', '1', '"x"'].map((text) => running.enterRequest(id(text)))
  running.abortAll()
  for (const { aborted } of all) t.ok(aborted)
})
