/** What the HTTP channel does with requests: those that are cancelled before they are sent, and those that are answered. */
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import t from 'tap'
import { Peer } from '../../src/servers/peer.js'
import type { ChannelError } from '../../src/servers/transport/channel.js'
import { HttpTransport } from '../../src/servers/transport/http.js'
import { Origin } from '../../src/servers/transport/origin.js'
import { until } from '../support/eventually.js'
import { listenUntilEnd } from '../support/listen-until-end.js'

t.test('does not send a call that is cancelled while it waits for a connection', async (t) => {
  const received: string[] = []
  const held: (() => void)[] = []
  const server = createServer((request, response) => {
    let body = ''
    request.setEncoding('utf8').on('data', (chunk: string) => {
      body += chunk
    })
    request.on('end', () => {
      const { id, method } = JSON.parse(body) as { id: number; method: string }
      received.push(method)
      const answer = () => answered(response, id)
      if (method === 'first') held.push(answer)
      else answer()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`)
  const transport = new HttpTransport({ url, connections: 1 })
  t.teardown(async () => {
    await transport.close(true)
    server.closeAllConnections()
    server.close()
  })
  const peer = new Peer(await transport.open({ stateless: true }))
  const send = (method: string) => {
    const exchange = peer.beginExchange()
    peer.send(exchange, method, '{}')
    return exchange
  }
  // First without any connection, then while the only connection is in use.
  peer.release(send('too early'))
  const first = send('first')
  await until(() => held.length === 1, 'the first call has the connection')
  peer.release(send('cancelled'))
  const last = send('last')
  for (const answer of held) answer()
  t.match(await first.answer(), { kind: 'response' })
  t.match(await last.answer(), { kind: 'response' })
  t.same(received, ['first', 'last'])
})

t.test('sending a call resolves when its answer has come in the body, and never rejects after that', async (t) => {
  const server = createServer((_request, response) => answered(response, 1))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const transport = new HttpTransport({
    url: new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`),
  })
  t.teardown(async () => {
    await transport.close(true)
    server.close()
  })
  const channel = await transport.open({ stateless: true })
  let received = 0
  channel.attach({
    receive: () => {
      received++
    },
    isWaiting: () => received === 0,
    dropped() {},
    stalled() {},
    streamLost() {},
    missed() {},
    ended() {},
  })
  await t.resolves(channel.sendMessage({ text: '{"jsonrpc":"2.0","id":1,"method":"x"}', exchange: 1 }))
  t.equal(received, 1)
})

function answered(response: ServerResponse, id: number): void {
  response
    .writeHead(200, { 'content-type': 'application/json' })
    .end(JSON.stringify({ jsonrpc: '2.0', id, result: {} }))
}

t.test(
  'closed connections let requests in progress end, and in a hurry cut them, as ones that the server may have executed',
  async (t) => {
    for (const hurry of [false, true]) {
      const held: ServerResponse[] = []
      const sockets = new Set<Socket>()
      const server = createServer((_request, response) => void held.push(response))
      server.on('connection', (socket: Socket) => sockets.add(socket))
      await listenUntilEnd(t, server)
      const url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`)
      const origin = new Origin({ url })
      const reader = { onHead: () => 'whole' as const }
      const asked = origin.askOrigin({ method: 'POST', headers: {}, body: '{}' }, reader)
      const ended = asked.then(
        ({ status }) => status,
        (error: ChannelError) => error.delivered,
      )
      await until(() => held.length === 1, 'the request')
      const closed = origin.close(hurry)
      if (!hurry) answered(held[0] as ServerResponse, 1)
      await closed
      t.equal(await ended, hurry ? 'maybe' : 200)
      await until(() => [...sockets].every(({ destroyed }) => destroyed), 'the end of the connections')
      t.match(await origin.askOrigin({ method: 'GET', headers: {} }, reader).catch((error: unknown) => error), {
        delivered: 'no',
      })
    }
  },
)
