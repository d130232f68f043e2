/** Every client with every server, watched: what the inspector shows of both wires. */
import t from 'tap'
import { Watch } from '../../src/downstream/watch.js'
import { Ring } from '../../src/inspect/ring.js'
import { rowsOf } from '../../src/inspect/rows.js'
import { type CallView, Views } from '../../src/inspect/views.js'
import { CLIENTS } from '../matrix/clients.js'
import { nameOf, runPair } from '../matrix/run.js'
import { SERVERS } from '../matrix/servers.js'

const TRANSPORTS = { HTTP: 'http', 'HTTP+SSE': 'sse', stdio: 'stdio' } as const

/** The messages of a call, in order: `client in tools/call`. */
const messagesOf = (call: CallView) =>
  call.events.flatMap((seen) =>
    seen.kind === 'message' ? [`${seen.hop} ${seen.dir} ${seen.method ?? seen.form}`] : [],
  )

for (const client of CLIENTS) {
  for (const server of SERVERS) {
    t.test(`${nameOf(client)} client, ${nameOf(server)} server: both wires of each call`, async (t) => {
      const ring = new Ring({ payloads: 'all' })
      await runPair(t, { client, server }, { watch: new Watch(ring.witness) })
      const views = new Views()
      for (const seen of ring.after(0)) views.add(seen)
      t.equal(views.lost, 0)

      const calls = [...views.calls.values()]
      t.same(
        calls.filter(({ incomplete, status }) => incomplete || status === 'open').map(({ id, method }) => [id, method]),
        [],
        'each call has its beginning and its end',
      )
      for (const { id, client: one, upstream: other } of calls) {
        t.match(one, { era: client.era, transport: TRANSPORTS[client.transport] }, `the client of ${id}`)
        if (other) t.equal(other.era, server.era, `the era of the server of ${id}`)
      }

      const named = (name: string) => calls.filter((call) => call.method === 'tools/call' && call.name === name)
      const [echo] = named('echo')
      t.same(
        echo && messagesOf(echo),
        ['client in tools/call', 'server out tools/call', 'server in result', 'client out result'],
        'a call is two rows, each with a message on both wires',
      )
      t.ok(rowsOf(echo as CallView).every((row) => row.client?.payload && row.server?.payload))

      const asked = named('ask').filter(({ status }) => status === 'ok')
      t.ok(asked.length > 0)
      for (const call of asked) {
        const messages = messagesOf(call)
        t.match(messages.at(0), 'client in tools/call')
        t.match(messages.at(-1), 'client out result', `${call.id} is one call, from the request to the result`)
        if (server.era === 'legacy')
          t.ok(messages.some((message) => /^server in (elicitation|sampling|roots)\//.test(message)))
        // Each round is a call of a modern client, and shown in the first one.
        const ids = new Set(call.events.map((seen) => seen.call))
        t.equal(ids.size > 1, client.era === 'modern', [...ids].join(' '))
      }
    })
  }
}
