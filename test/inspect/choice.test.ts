/** What the inspector shows of what the configuration hides and rewrites. */
import t from 'tap'
import { UNKNOWN } from '../../src/inspector/recorder/rules.js'
import { Views } from '../../src/inspector/views.js'
import { CLIENTS, connect } from '../matrix/clients.js'
import { nameOf } from '../matrix/run.js'
import { SERVERS } from '../matrix/servers.js'
import { Raw } from '../matrix/wire.js'
import { startBridge } from '../support/bridge.js'
import { Checked } from '../support/law.js'
import { eventsIn } from '../support/sights.js'
import { ringWithTexts } from '../support/watched.js'

const CHOICE = {
  tools: {
    deny: ['act'],
    override: {
      echo: { name: 'say', title: 'Say', annotations: { readOnlyHint: false }, set: { org: 'acme' } },
      mirrored: { set: { region: 'eu' } },
    },
  },
  prompts: { deny: ['greet'] },
  resources: { deny: ['test://x', 'test://ask', 'test://part/*'] },
}
const checked = new Checked()

for (const clientKind of CLIENTS.filter(({ transport }) => transport !== 'HTTP+SSE'))
  for (const serverKind of SERVERS.filter(({ transport }) => transport === 'HTTP'))
    t.test(`${nameOf(clientKind)} client, ${nameOf(serverKind)} server: the changes are true`, async (t) => {
      const server = await serverKind.start(t)
      const { ring, texts, recorder } = ringWithTexts()
      const bridge = await startBridge(t, { ...server.entry, ...CHOICE }, {}, { recorder })
      const client = connect(clientKind, bridge)
      await client.open()
      const lists = ['tools/list', 'prompts/list', 'resources/list', 'resources/templates/list']
      for (const method of lists) {
        const { message } = await client.call(method)
        const cursor = message.result?.['nextCursor']
        if (cursor !== undefined) await client.call(method, { cursor })
      }
      await client.call('tools/call', { name: 'say', arguments: { a: 1 } })
      await client.call('tools/call', { name: 'say' })
      await client.call('resources/read', { uri: new Raw('"test://st\\u0061tic"') })
      await client.close()
      await bridge.bridge.close()
      const views = new Views()
      for (const seen of eventsIn(ring)) views.add(seen)
      const eras = `${clientKind.era} client, ${serverKind.era} server`
      t.same(checked.all({ events: eventsIn(ring), texts, views, eras }), [])
      const say = [...views.calls.values()].find(({ method, name }) => method === 'tools/call' && name === 'say')
      t.ok(say, 'the call has the name that the client knows')
      const sent = say?.events.find((seen) => seen.kind === 'message' && seen.hop === 'server' && seen.dir === 'out')
      t.match(texts.get(sent?.seq ?? 0), '"name":"echo"', 'and its message to the server the name there')
    })

t.test('each change has its row in docs/development/translation.md', async (t) => {
  for (const rule of ['unusable-tools', 'rewritten-tools', 'exact-names']) t.ok(checked.rules.has(rule), rule)
  t.notOk(checked.rules.has(UNKNOWN))
})
