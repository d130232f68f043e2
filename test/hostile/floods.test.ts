/** A server that floods does not hold up the others: what has been read is handed on a slice at a time. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { raw } from '../../src/base/rpc/splice.js'
import { Peer } from '../../src/servers/peer.js'
import type { Channel } from '../../src/servers/transport/channel.js'
import { HttpTransport } from '../../src/servers/transport/http.js'
import { StdioTransport } from '../../src/servers/transport/stdio/stdio.js'
import { listenUntilEnd } from '../support/listen-until-end.js'
import { unkind } from '../support/unkind.js'

const COUNT = 20_000
/** Messages that are handed on at most before everybody else has had a turn. */
const SLICE = 64

/** Channels to servers that answer a call of `progress` with so many notifications before the result. */
const floods: [name: string, open: (t: Test) => Promise<Channel>][] = [
  ['a program', (t) => new StdioTransport({ ...unkind(t).server, env: { PATH: process.env['PATH'] ?? '' } }).open()],
  [
    'a server over HTTP, in one event after the other',
    async (t) => new HttpTransport({ url: await eventServer(t, (events) => [events.join('')]) }).open(),
  ],
  [
    'a server over HTTP, each event in a chunk of its own',
    async (t) => new HttpTransport({ url: await eventServer(t, (events) => events) }).open(),
  ],
]

for (const [name, open] of floods) {
  t.test(`delivers a flood from ${name} whole and in order, and others get a turn after each slice`, async (t) => {
    const channel = await open(t)
    t.teardown(() => channel.close(true))
    const peer = new Peer(channel)
    const exchange = peer.beginExchange()
    const values: number[] = []
    let inTurn = 0
    let most = 0
    let over = false
    const turn = () => {
      most = Math.max(most, inTurn)
      inTurn = 0
      if (!over) setImmediate(turn)
    }
    setImmediate(turn)
    const meta = `{"progressToken":${exchange.id}}`
    peer.send(exchange, 'tools/call', `{"name":"progress","arguments":{"count":${COUNT}},"_meta":${meta}}`)
    for (;;) {
      const arrival = await exchange.nextArrival()
      inTurn++
      if (arrival.kind === 'response') break
      if (arrival.kind === 'notification' && typeof arrival.params !== 'string')
        values.push(Number(raw(arrival.params, 'progress')))
    }
    over = true
    t.equal(values.length, COUNT)
    t.ok(values.every((value, at) => value === at + 1))
    t.ok(most <= 2 * SLICE, `${most} in one turn`)
  })
}

/** Answers every request with a stream of events, written in the pieces that `cut` makes of them. */
async function eventServer(t: Test, cut: (events: string[]) => string[]): Promise<URL> {
  const server = createServer((request, response) => {
    request.resume()
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    const events = Array.from(
      { length: COUNT },
      (_, at) =>
        `data: {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":${at + 1}}}\n\n`,
    )
    events.push('data: {"jsonrpc":"2.0","id":1,"result":{}}\n\n')
    for (const piece of cut(events)) response.write(piece)
    response.end()
  })
  await listenUntilEnd(t, server)
  return new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`)
}
