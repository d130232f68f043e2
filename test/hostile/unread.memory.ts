/** Clients that ask and do not read. The bridge has a heap of 512 MB. */
import t, { type Test } from 'tap'
import { bulk, inParallel, ledgerEmpty, MEGA, overHttp } from '../support/attack.js'
import { askDeaf } from '../support/deaf.js'
import { until } from '../support/eventually.js'
import { LegacyClient } from '../support/legacy-client.js'
import { type Attacked, besideHealthy, startSmall } from '../support/small-heap.js'
import { SseClient } from '../support/sse-client.js'

/** Time that a client which does not read is given; the default would be long for a test. */
const WRITE = { timeouts: { write: 1_000 } }
/** Connections on which nothing is read. */
const ASKED = 24
const answered = { bytes: 15 * MEGA }
/** As much in events, none of which may have more than 4 MiB. */
const events = { notes: 3, noteBytes: 4_000_000, bytes: 4_000_000 }

/** Ways in which a client can ask and not read, by the server that it takes. */
const DEAF: readonly [
  name: string,
  server: (t: Test) => Promise<object> | object,
  /** May give what ends its session. */
  ask: (t: Test, attacked: Attacked) => Promise<unknown>,
][] = [
  ['a JSON answer', (t) => overHttp(t, 'legacy'), (t, { url }) => askDeaf(t, { url, ...bulk(answered) })],
  ['events', (t) => overHttp(t, 'legacy'), (t, { url }) => askDeaf(t, { url, ...bulk(events, 'p') })],
  [
    'an answer that passes unchanged',
    (t) => overHttp(t, 'modern'),
    (t, { url }) => askDeaf(t, { url, ...bulk(answered) }),
  ],
  [
    'an answer in a session',
    (t) => overHttp(t, 'modern'),
    async (t, { url }) => {
      const client = await LegacyClient.open(url)
      const { headers } = client
      const params = { name: 'bulk', arguments: answered }
      await askDeaf(t, { url, headers, body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }) })
      return () => client.end()
    },
  ],
  [
    'events in a session',
    (t) => overHttp(t, 'modern'),
    async (t, { url }) => {
      const client = await LegacyClient.open(url)
      const { headers } = client
      const params = { name: 'bulk', arguments: events, _meta: { progressToken: 'p' } }
      await askDeaf(t, { url, headers, body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }) })
      return () => client.end()
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
  t.test(`gives up ${name} of 15 MB that is not read`, async (t) => {
    const attacked = await startSmall(t, await server(t), WRITE)
    await besideHealthy(t, attacked, async () => {
      const asked = await inParallel(ASKED, 1, () => ask(t, attacked))
      // None of them is closed by its client.
      const cut = async () => (await attacked.gauge('connections')).used < ASKED
      await until(cut, 'connections being cut off')
      // What is kept for a client that comes back is kept for as long as its session.
      for (const end of asked) if (typeof end === 'function') await end()
      // Who is left has been told that there was no memory, and that was not too much for the connection.
      await ledgerEmpty(attacked)
    })
    await ledgerEmpty(attacked)
  })
}
