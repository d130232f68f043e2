/** What the reader of a request gets when the exchange ends early, and what the server hears. */
import t from 'tap'
import { Peer } from '../../src/servers/peer.js'
import type { OutgoingMessage } from '../../src/servers/transport/channel.js'
import { silentChannel } from '../support/silent-channel.js'

const ANSWER = [new TextEncoder().encode('{"jsonrpc":"2.0","id":1,"result":{}}')]

function start() {
  const sent: unknown[] = []
  const peer = new Peer(
    silentChannel({
      sendMessage: async ({ text }: OutgoingMessage) => {
        const { method, params } = JSON.parse(text) as { method: string; params?: { reason?: string } }
        sent.push(params?.reason ?? method)
      },
    }),
  )
  return { peer, exchange: peer.beginExchange(), sent }
}

t.test('a reader that returns after the call was cancelled does not wait for the dropped answer', async (t) => {
  const { peer, exchange, sent } = start()
  peer.send(exchange, 'tools/call', undefined)
  peer.receive(ANSWER, undefined)
  peer.release(exchange, 'The client has gone')
  await t.rejects(exchange.nextArrival(), { message: 'The client has gone' })
  t.same(sent, ['tools/call'], 'the server has answered')
})

t.test('does not send a request after the call was cancelled', async (t) => {
  const { peer, exchange, sent } = start()
  peer.release(exchange, 'The client has gone')
  peer.send(exchange, 'tools/call', undefined)
  t.same(sent, [])
  await t.rejects(exchange.nextArrival(), { message: 'The client has gone' })
})

t.test('a reader that waits when the call is cancelled gets the reason, and the server a cancellation', async (t) => {
  const { peer, exchange, sent } = start()
  peer.send(exchange, 'tools/call', undefined)
  const reading = t.rejects(exchange.nextArrival(), { message: 'The call timed out' })
  peer.release(exchange, 'The call timed out')
  await reading
  t.same(sent, ['tools/call', 'The call timed out'])
})
