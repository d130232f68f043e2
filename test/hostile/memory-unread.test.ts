/** Clients that ask and do not read. The bridge has a heap of 512 MB. */
import t, { type Test } from 'tap'
import { bulk, ledgerEmpty, MEGA, overHttp } from '../support/attack.js'
import { askDeaf } from '../support/deaf.js'
import { until } from '../support/eventually.js'
import { LegacyClient } from '../support/legacy-client.js'
import { type Attacked, besideHealthy, startSmall } from '../support/small-heap.js'
import { SseClient } from '../support/sse-client.js'

/** Time that a client which does not read is given; the default would be long for a test. */
const WRITE = { timeouts: { write: 2_000 } }
/** Connections on which nothing is read. */
const ASKED = 40
const answered = { bytes: 15 * MEGA }

/** Ways in which a client can ask and not read, by the server that it takes. */
const DEAF: readonly [
  name: string,
  server: (t: Test) => Promise<object> | object,
  ask: (t: Test, attacked: Attacked) => Promise<unknown>,
][] = [
  ['a JSON answer', (t) => overHttp(t, 'legacy'), (t, { url }) => askDeaf(t, { url, ...bulk(answered) })],
  [
    'events',
    (t) => overHttp(t, 'legacy'),
    (t, { url }) => askDeaf(t, { url, ...bulk({ ...answered, notes: 1 }, 'p') }),
  ],
  ['a relayed answer', (t) => overHttp(t, 'modern'), (t, { url }) => askDeaf(t, { url, ...bulk(answered) })],
  [
    'an answer in a session',
    (t) => overHttp(t, 'modern'),
    async (t, { url }) => {
      const { headers } = await LegacyClient.open(url)
      const params = { name: 'bulk', arguments: answered }
      await askDeaf(t, { url, headers, body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }) })
    },
  ],
  [
    'events in a session',
    (t) => overHttp(t, 'modern'),
    async (t, { url }) => {
      const { headers } = await LegacyClient.open(url)
      const params = { name: 'bulk', arguments: { ...answered, notes: 1 }, _meta: { progressToken: 'p' } }
      await askDeaf(t, { url, headers, body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }) })
    },
  ],
  [
    'a stream of HTTP+SSE',
    (t) => overHttp(t, 'modern'),
    async (_t, { url }) => {
      const client = await SseClient.open(url, '2024-11-05')
      client.stream.pause()
      await client.post({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'bulk', arguments: answered } })
    },
  ],
]

for (const [name, server, ask] of DEAF) {
  t.test(`H6 ${name} of 15 MB that nobody reads is given up`, async (t) => {
    const attacked = await startSmall(t, await server(t), WRITE)
    await besideHealthy(t, attacked, async () => {
      for (let at = 0; at < ASKED; at++) await ask(t, attacked)
      // None of them is closed by its client.
      const cut = async () => (await attacked.gauge('connections')).used < ASKED
      await until(cut, 'connections being cut off')
      // Who is left has been told that there was no memory, and that was not too much for the connection.
      await ledgerEmpty(attacked)
    })
    await ledgerEmpty(attacked)
  })
}
