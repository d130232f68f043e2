/** Answers with the id 0, null or none: they reach the one caller who can be meant, and nobody else. */
import t, { type Test } from 'tap'
import { Peer } from '../../src/servers/peer.js'
import { startBridge } from '../support/bridge.js'
import { until } from '../support/eventually.js'
import { initialize, LegacyClient } from '../support/legacy-client.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { call } from '../support/modern.js'
import { modernStdio } from '../support/modern-stdio.js'
import { openPipe } from '../support/pipe.js'
import { silentChannel } from '../support/silent-channel.js'

const FORMS = {
  'the id 0': '"id":0',
  'the id null': '"id":null',
  'no id': '"x":0',
  'the id "0"': '"id":"0"',
  'a negative id': '"id":-1',
  'an empty id': '"id":""',
  'an id that no request has': '"id":"answer"',
}
const HOUR = 3_600_000

/** A program that writes another member in the place of each id. */
const written = (member: string) => ({ replace: [['"id":[^,}]+', member]] })

t.test('a program that never answers with the id of a request serves one request at a time', async (t) => {
  for (const [form, member] of Object.entries(FORMS)) {
    const programs = {
      legacy: legacyStdio(t, written(member)).server,
      modern: modernStdio(t, written(member) as object).server,
    }
    for (const [era, server] of Object.entries(programs)) {
      const { url, log } = await startBridge(t, server, { timeouts: { call: HOUR, probe: HOUR } })
      for (let n = 0; n < 3; n++) {
        const answer = await call(url, 'tools/call', { name: 'echo', arguments: { n } })
        t.match(answer.message, { result: { structuredContent: { n } } }, `${form}: ${era} program, modern client`)
      }
      const client = await LegacyClient.open(url)
      t.match(
        (await client.call('echo', { n: 7 })).message,
        { result: { structuredContent: { n: 7 } } },
        `${form}, ${era}`,
      )
      const told = log.filter(({ what }) => what === 'an answer without the id of its request')
      t.ok(told.length > 0 && told.every(({ level }) => level === 40), 'told')
    }
  }
})

t.test('and so it does for clients on stdio', async (t) => {
  for (const server of [legacyStdio(t, written('"id":0')).server, modernStdio(t, written('"id":0') as object).server]) {
    const pipe = openPipe(t, server, { timeouts: { call: HOUR, probe: HOUR } })
    t.match(await pipe.call('tools/call', { name: 'echo', arguments: { n: 1 } }), {
      result: { structuredContent: { n: 1 } },
    })
    pipe.line(initialize('2025-11-25'))
    await until(() => pipe.messages().some(({ id }) => id === 'hello'), 'the session')
    pipe.line('{"jsonrpc":"2.0","method":"notifications/initialized"}')
    pipe.line('{"jsonrpc":"2.0","id":"old","method":"tools/call","params":{"name":"echo","arguments":{"n":2}}}')
    const answer = () => pipe.messages().find(({ id }) => id === 'old')
    await until(() => answer() !== undefined, 'the answer')
    t.match(answer(), { result: { structuredContent: { n: 2 } } })
  }
})

/** A peer on a pipe. */
function peerOf() {
  const warned: unknown[] = []
  let closed = 0
  const channel = silentChannel({ close: async () => void closed++ })
  const peer = new Peer(channel, { debug: () => {}, warn: (fields: object) => void warned.push(fields) } as never)
  return { peer, warned, closed: () => closed }
}

const said = (text: string) => [new TextEncoder().encode(text)] as const
const RESULT = '{"jsonrpc":"2.0","id":0,"result":{"whose":1}}'
const refusal = (code: number) => `{"jsonrpc":"2.0","id":null,"error":{"code":${code},"message":"No"}}`

function asked(peer: Peer) {
  const exchange = peer.beginExchange('somebody')
  peer.send(exchange, 'tools/call', '{}')
  return exchange
}

function isRefused(t: Test, asking: Promise<unknown>): Promise<unknown> {
  return t.rejects(asking, {
    name: 'ChannelError',
    message: /without the id of its request: it may answer any of \d requests/,
  })
}

t.test('of several requests, each fails at once, and none gets the answer of another', async (t) => {
  const { peer, warned, closed } = peerOf()
  const both = [asked(peer), asked(peer)]
  peer.receive(said(RESULT), undefined)
  for (const exchange of both) await isRefused(t, exchange.answer())
  for (const exchange of both) peer.release(exchange)
  // The second answer is still owed: it must not reach the next caller.
  const next = asked(peer)
  peer.receive(said(RESULT), undefined)
  await isRefused(t, next.answer())
  peer.release(next)
  // That of the next one comes when nobody waits.
  peer.receive(said(RESULT), undefined)
  const last = asked(peer)
  peer.receive(said(RESULT), undefined)
  t.match(await last.answer(), { kind: 'response' })
  peer.release(last)
  t.match(warned, [{ event: 'message_repaired', what: 'an answer without the id of its request' }])
  t.equal(closed(), 0)
})

t.test('an answer to a call that was given up never reaches the next caller', async (t) => {
  const { peer, closed } = peerOf()
  peer.release(asked(peer), 'The client has cancelled')
  for (let n = 0; n < 3; n++) {
    const next = asked(peer)
    peer.receive(said(RESULT), undefined)
    await isRefused(t, next.answer())
    peer.release(next)
  }
  t.equal(closed(), 1, 'what the server owes is never certain again, so it is started anew')
})

t.test('a server that uses ids', async (t) => {
  const { peer } = peerOf()
  const first = asked(peer)
  peer.receive(said('{"jsonrpc":"2.0","id":1,"result":{}}'), undefined)
  await first.answer()
  peer.release(first)

  await peer.notify('notifications/initialized', undefined)
  const after = asked(peer)
  peer.receive(said(refusal(-32601)), undefined)
  peer.receive(said('{"jsonrpc":"2.0","id":2,"result":{}}'), undefined)
  t.match(await after.answer(), { outcome: { kind: 'result' } }, 'may refuse a notification without an id')
  peer.release(after)

  const wrong = asked(peer)
  peer.receive(said(refusal(-32602)), undefined)
  t.match(await wrong.answer(), { outcome: { kind: 'error' } }, 'may refuse its only request without an id')
  peer.release(wrong)

  const [one, another] = [asked(peer), asked(peer)]
  peer.receive(said(refusal(-32602)), undefined)
  peer.receive(said('{"jsonrpc":"2.0","id":4,"result":{}}'), undefined)
  peer.receive(said('{"jsonrpc":"2.0","id":5,"result":{}}'), undefined)
  for (const exchange of [one, another])
    t.match(await exchange.answer(), { outcome: { kind: 'result' } }, 'fails no others by an error without an id')
})

t.test('an open subscription does not make the answer to a call uncertain', async (t) => {
  const { peer } = peerOf()
  const listening = peer.beginExchange()
  peer.send(listening, 'subscriptions/listen', '{}')
  const acknowledged = 'notifications/subscriptions/acknowledged'
  const meta = '{"io.modelcontextprotocol/subscriptionId":1}'
  peer.receive(said(`{"jsonrpc":"2.0","method":"${acknowledged}","params":{"_meta":${meta}}}`), undefined)
  const exchange = asked(peer)
  peer.receive(said(RESULT), undefined)
  t.match(await exchange.answer(), { kind: 'response' })
})
