/** Answers that there is no memory for: they are lost, and nobody else waits for that. */
import t, { type Test } from 'tap'
import { Outline } from '../../src/base/rpc/outline.js'
import type { Exchange } from '../../src/servers/exchange.js'
import { Peer } from '../../src/servers/peer.js'
import type { OutgoingMessage } from '../../src/servers/transport/channel.js'
import { Metrics } from '../../src/services/telemetry/metrics.js'
import { bulk, MEGA } from '../support/attack.js'
import { startBridge } from '../support/bridge.js'
import { askDeaf } from '../support/deaf.js'
import { until } from '../support/eventually.js'
import { LegacyClient } from '../support/legacy-client.js'
import { LegacyHttp } from '../support/legacy-http.js'
import { LegacySse } from '../support/legacy-sse.js'
import { type Answer, call } from '../support/modern.js'
import { readSeries } from '../support/prometheus.js'
import { silentChannel } from '../support/silent-channel.js'
import { bulkyStdio } from '../support/small-heap.js'

const LOST = {
  code: -32603,
  message: /no memory left for the answer/,
  data: { reason: 'overloaded', outcome: 'unknown' },
}
type Called = (params: { name: string; arguments: Record<string, unknown> }) => Promise<Answer>

/** Makes a text in a message larger than the memory of the bridge. */
const grown = (text: string) => text.replace('"grow"', () => JSON.stringify('x'.repeat(2 * MEGA)))
/** The same, in a message with its id at the end, as some servers write it. */
function grownWithIdLast(text: string): string {
  const { id, ...message } = JSON.parse(text) as { id?: unknown }
  return grown(JSON.stringify(id === undefined ? message : { ...message, id }))
}

const LARGE = { name: 'bulk', arguments: { bytes: 2 * MEGA } }
const SMALL = { name: 'echo', arguments: {} }
const GROWN = { name: 'echo', arguments: { text: 'grow' } }

const SERVERS: readonly [
  name: string,
  start: (t: Test) => Promise<object> | object,
  large: typeof GROWN | typeof LARGE,
][] = [
  ['a legacy program', () => bulkyStdio('legacy'), LARGE],
  ['a modern program', () => bulkyStdio('modern'), LARGE],
  ['HTTP+SSE', async (t) => ({ url: (await LegacySse.start(t, { spell: grown })).url, transport: 'sse' }), GROWN],
  [
    'HTTP+SSE, the id last',
    async (t) => ({ url: (await LegacySse.start(t, { spell: grownWithIdLast })).url, transport: 'sse' }),
    GROWN,
  ],
  ['event streams', async (t) => ({ url: (await LegacyHttp.start(t, { streams: true, spell: grown })).url }), GROWN],
  ['JSON answers', async (t) => ({ url: (await LegacyHttp.start(t, { spell: grown })).url }), GROWN],
]

t.test('an answer without memory is lost alone, in every lane', async (t) => {
  for (const [name, start, large] of SERVERS)
    await t.test(name, async (t) => {
      const server = await start(t)
      const { url } = await startBridge(t, server, { limits: { memory: MEGA }, timeouts: { write: 3_600_000 } })
      const legacy = await LegacyClient.open(url)
      const legacyCall: Called = ({ name, arguments: args }) => legacy.call(name, args)
      const clients: [string, Called][] = [
        ['a modern client', (params) => call(url, 'tools/call', params)],
        ['a legacy client', legacyCall],
      ]
      for (const [who, called] of clients) {
        const others = [called(SMALL), called(large), called(SMALL), called(large), called(SMALL)]
        const [first, lost, second, alsoLost, third] = (await Promise.all(others)) as [
          Answer,
          Answer,
          Answer,
          Answer,
          Answer,
        ]
        for (const { message } of [first, second, third]) t.match(message, { result: { content: [] } }, who)
        for (const { message } of [lost, alsoLost]) t.match(message, { error: LOST }, who)
      }
    })
})

t.test('callers who do not read delay no other caller of the same principal at the same program', async (t) => {
  const { url } = await startBridge(
    t,
    bulkyStdio('legacy'),
    { limits: { memory: 20 * MEGA }, timeouts: { write: 3_600_000 } },
    { metrics: new Metrics({ version: '0.0.0' }) },
  )
  const used = async () => {
    const series = readSeries(await (await fetch(new URL('/metrics', url))).text())
    return series['mcp_bridge_bound_used{bound="memory",server=""}'] ?? 0
  }
  const answer = { bytes: 15 * MEGA }
  const deaf = [await askDeaf(t, { url, ...bulk(answer) })]
  await until(async () => (await used()) >= answer.bytes, 'an answer that is not read')
  deaf.push(await askDeaf(t, { url, ...bulk(answer) }), await askDeaf(t, { url, ...bulk(answer) }))
  for (let n = 0; n < 5; n++) t.match((await call(url, 'tools/call', SMALL)).message, { result: { content: [] } })
  t.match((await call(url, 'tools/call', { name: 'bulk', arguments: answer })).message.error, LOST)
  t.ok((await used()) >= answer.bytes, 'nothing has been read meanwhile')
  t.notOk(deaf.some(({ destroyed }) => destroyed))
})

/** A peer on a channel that keeps what is sent. */
function peerOf() {
  const sent: Record<string, unknown>[] = []
  const channel = silentChannel({
    sendMessage: async ({ text }: OutgoingMessage) => {
      sent.push(JSON.parse(text) as Record<string, unknown>)
    },
  })
  return { peer: new Peer(channel), sent }
}

const outline = (text: string) => new Outline([new TextEncoder().encode(text)])

t.test('a request of the server without memory gets an error, because the server waits for an answer', async (t) => {
  const { peer, sent } = peerOf()
  const text = 'x'.repeat(10_000)
  peer.dropped(
    outline(`{"jsonrpc":"2.0","id":"q","method":"sampling/createMessage","params":{"x":"${text}"}}`),
    undefined,
  )
  t.match(sent, [{ id: 'q', error: { code: -32603, message: /no memory/ } }])
})

t.test('dropped messages other than answers cost no call', async (t) => {
  const { peer } = peerOf()
  const exchange = peer.beginExchange()
  const text = 'x'.repeat(10_000)
  for (const other of [
    `{"jsonrpc":"2.0","method":"notifications/message","params":{"x":"${text}"}}`,
    `DEBUG ${text}`,
    `{"jsonrpc":"2.0","id":99,"result":{"x":"${text}"}}`,
  ])
    peer.dropped(outline(other), undefined)
  peer.receive([new TextEncoder().encode('{"jsonrpc":"2.0","id":1,"result":{}}')], undefined)
  t.match(await exchange.answer(), { kind: 'response' })
})

t.test(
  'a dropped answer on the stream of an array costs the call in the array, not one with an equal id',
  async (t) => {
    for (const spelled of [
      '{"jsonrpc":"2.0","id":7,"result":{"x":"…"}}',
      '{"jsonrpc":"2.0","result":{"x":"…"},"id":7}',
    ]) {
      const { peer } = peerOf()
      peer.ofClient = true
      const [alone, other, member, array] = [7, 5, 7, undefined].map((id) =>
        Object.assign(peer.beginExchange(), id !== undefined && { wireId: String(id) }),
      ) as [Exchange, Exchange, Exchange, Exchange]
      array.members = [other, member]
      peer.dropped(outline(spelled.replace('…', 'x'.repeat(10_000))), array.id)
      await t.rejects(member.answer(), /no memory/)
      for (const [exchange, id] of [
        [other, 5],
        [alone, 7],
      ] as const) {
        peer.receive([new TextEncoder().encode(`{"jsonrpc":"2.0","id":${id},"result":{}}`)], exchange.id)
        t.match(await exchange.answer(), { kind: 'response' }, spelled)
      }
    }
  },
)
