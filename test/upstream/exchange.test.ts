/** What the reader of a request gets when the exchange ends early. */
import t from 'tap'
import { unlimited } from '../../src/base/limits/memory.js'
import type { Response } from '../../src/base/rpc/message.js'
import { Exchange } from '../../src/servers/exchange.js'
import { parseText } from '../support/messages.js'

const ANSWER = parseText('{"jsonrpc":"2.0","id":1,"result":{}}') as Response

function start() {
  const sent: string[] = []
  const cancelled: string[] = []
  const memory = unlimited()
  const exchange = new Exchange(
    {
      sendRequest: (_exchange, method) => sent.push(method),
      cancel: (_exchange, reason) => cancelled.push(reason),
      removeExchange() {},
      reserve: (principal) => memory.reserve(principal),
    },
    1,
  )
  return { exchange, sent, cancelled }
}

t.test('a reader that returns after the call was cancelled does not wait for the dropped answer', async (t) => {
  const { exchange, cancelled } = start()
  exchange.sendCall('tools/call', undefined)
  exchange.arrive(ANSWER)
  exchange.endExchange('The client has gone')
  await t.rejects(exchange.nextArrival(), { message: 'The client has gone' })
  t.same(cancelled, [], 'the server has answered')
})

t.test('does not send a request after the call was cancelled', async (t) => {
  const { exchange, sent, cancelled } = start()
  exchange.endExchange('The client has gone')
  exchange.sendCall('tools/call', undefined)
  t.same([sent, cancelled], [[], []])
  await t.rejects(exchange.nextArrival(), { message: 'The client has gone' })
})

t.test('a reader that waits when the call is cancelled gets the reason, and the server a cancellation', async (t) => {
  const { exchange, cancelled } = start()
  exchange.sendCall('tools/call', undefined)
  const reading = t.rejects(exchange.nextArrival(), { message: 'The call timed out' })
  exchange.endExchange('The call timed out')
  await reading
  t.same(cancelled, ['The call timed out'])
})
