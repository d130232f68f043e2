/** What the inspector shows of results that were cut, and of calls that a person approves. */
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { UNKNOWN } from '../../src/inspector/recorder/rules.js'
import { Views } from '../../src/inspector/views.js'
import type { Client } from '../matrix/client.js'
import { CLIENTS, type ClientKind, connect } from '../matrix/clients.js'
import { nameOf } from '../matrix/run.js'
import { SERVERS } from '../matrix/servers.js'
import { person, RUN } from '../support/approving.js'
import { startBridge } from '../support/bridge.js'
import { Checked } from '../support/law.js'
import { eventsIn } from '../support/sights.js'
import { ringWithTexts } from '../support/watched.js'

const checked = new Checked()
const CUT = { results: { cut: '4 KiB' } }

/** Uses a client, and returns the views of what was recorded, whose changes are true. */
async function watch(t: Test, kind: ClientKind, entry: object, use: (client: Client) => Promise<unknown>) {
  const { ring, texts, recorder } = ringWithTexts()
  const bridge = await startBridge(t, { ...entry, ...CUT }, {}, { recorder })
  const client = connect(
    kind,
    bridge,
    person(() => RUN),
  )
  await client.open()
  await use(client)
  await client.close()
  await bridge.bridge.close()
  const views = new Views()
  for (const seen of eventsIn(ring)) views.add(seen)
  t.same(checked.all({ events: eventsIn(ring), texts, views, eras: nameOf(kind) }), [])
  /** The rules of the answers that the client got to calls of a tool. */
  return (tool: string) =>
    [...views.calls.values()]
      .filter(({ name }) => name === tool)
      .flatMap(({ events }) => events)
      .flatMap((seen) =>
        seen.kind === 'message' && seen.hop === 'client' && seen.dir === 'out' ? (seen.changes ?? []) : [],
      )
}

const clients = CLIENTS.filter(({ transport }) => transport !== 'HTTP+SSE')
for (const kind of clients)
  for (const serverKind of SERVERS.filter(({ transport }) => transport === 'HTTP'))
    t.test(`${nameOf(kind)} client, ${nameOf(serverKind)} server: what is cut and what is approved`, async (t) => {
      const server = await serverKind.start(t)
      const rulesOf = await watch(t, kind, { ...server.entry, tools: { approve: ['mirrored'] } }, async (client) => {
        const { message } = await client.call('tools/list')
        const cursor = message.result?.['nextCursor']
        if (cursor !== undefined) await client.call('tools/list', { cursor })
        await client.call('tools/call', { name: 'echo', arguments: { said: 'é'.repeat(5_000) } })
        await client.call('tools/call', { name: 'mirrored', arguments: { region: 'eu' } })
      })
      const cut = rulesOf('echo').filter(({ rule }) => rule === 'cut-results')
      t.same(
        cut.map(({ at, op }) => `${op} ${at}`),
        ['replace /result/content', 'remove /result/structuredContent'],
      )
      const asked = rulesOf('mirrored').filter(({ at }) => at === '')
      t.same(
        asked.map(({ rule }) => rule),
        [kind.era === 'modern' ? 'input-requests-of-servers' : 'requests-for-input'],
      )
    })

for (const [index, kind] of clients.entries())
  t.test(`${nameOf(kind)} client: a server without resources, and contents of all kinds`, async (t) => {
    const plan = { modern: index % 2 === 0 }
    const args = [fileURLToPath(new URL('../fixtures/lengthy.mjs', import.meta.url)), JSON.stringify(plan)]
    const entry = { command: process.execPath, args }
    const rulesOf = await watch(t, kind, entry, async (client) => {
      if (kind.era === 'modern') await client.call('server/discover')
      await client.call('tools/list')
      await client.call('resources/list')
      for (const name of ['several', 'media', 'rows', 'declared', 'long']) await client.call('tools/call', { name })
    })
    for (const name of ['several', 'media', 'rows', 'declared', 'long'])
      t.ok(
        rulesOf(name).some(({ rule }) => rule === 'cut-results'),
        name,
      )
  })

t.test('each change has its row in docs/development/translation.md', async (t) => {
  t.ok(checked.rules.has('cut-results'))
  t.notOk(checked.rules.has(UNKNOWN))
})
