/** What the inspector shows of a call at a group: the wire of its server, with the names before and after. */
import t from 'tap'
import { UNKNOWN } from '../../src/inspector/recorder/rules.js'
import { Views } from '../../src/inspector/views.js'
import type { Client } from '../matrix/client.js'
import { CLIENTS, connect } from '../matrix/clients.js'
import { nameOf } from '../matrix/run.js'
import { createBridge } from '../support/bridge.js'
import { repeatUntil } from '../support/eventually.js'
import { Checked } from '../support/law.js'
import { LegacyHttp } from '../support/legacy-http.js'
import { ModernHttp } from '../support/modern-http.js'
import { eventsIn } from '../support/sights.js'
import { ringWithTexts } from '../support/watched.js'

const TASKS = 'io.modelcontextprotocol/tasks'
const checked = new Checked()
const CHOICE = { tools: { deny: ['act'], override: { echo: { name: 'say', set: { org: 'acme' } } } } }

const heard = (client: Client) =>
  client.of('notifications/resources/updated').map(({ params }) => (params as { uri?: unknown }).uri)

for (const kind of CLIENTS.filter(({ transport }) => transport !== 'HTTP+SSE'))
  t.test(`${nameOf(kind)} client: a call of a group is shown with the wire of its server`, async (t) => {
    const old = await LegacyHttp.start(t, { pages: 2 })
    const fresh = await ModernHttp.start(t)
    const { ring, texts, recorder } = ringWithTexts()
    const mcpServers = { old: { url: old.url, ...CHOICE }, fresh: { url: fresh.url, ...CHOICE } }
    const groups = { team: { search: { always: ['*'] } } }
    const { bridge, log } = createBridge(t, {}, { mcpServers, groups }, { recorder })
    if (kind.transport !== 'stdio') await bridge.listen({ kind: 'http', host: '127.0.0.1', port: 0, path: '/mcp' })
    const url = bridge.groupUrls.get('team') ?? ''
    const capabilities = kind.era === 'modern' ? { extensions: { [TASKS]: {} } } : {}
    const client = connect(kind, { url, bridge, log }, { capabilities })
    await client.open()
    const lists = ['tools/list', 'prompts/list', 'resources/list', 'resources/templates/list']
    for (const method of lists) {
      const { message } = await client.call(method)
      const cursor = message.result?.['nextCursor']
      if (cursor !== undefined) await client.call(method, { cursor })
    }
    await client.logAt('debug')
    const resourceSubscriptions = ['old+test://static', 'fresh+test://static']
    const filter = { toolsListChanged: true, resourceSubscriptions }
    const listening =
      kind.era === 'modern' ? client.request('subscriptions/listen', { notifications: filter }) : undefined
    if (!listening) for (const uri of resourceSubscriptions) await client.call('resources/subscribe', { uri })
    const touch = () => {
      const uri = 'test://static'
      fresh.touch({ uris: [uri], tools: true })
      old.push({ jsonrpc: '2.0', method: 'notifications/resources/updated', params: { uri } })
    }
    await repeatUntil(touch, () => resourceSubscriptions.every((uri) => heard(client).includes(uri)), 'the updates')
    for (const server of ['old', 'fresh']) {
      await client.call('tools/call', { name: `${server}__log`, arguments: { count: 1 } })
      await client.call('tools/call', { name: `${server}__contents`, arguments: {} })
      await client.call('tools/call', { name: `${server}__say`, arguments: { a: 1 } })
      const through = { name: `${server}__say`, arguments: { b: [1.5] } }
      await client.call('tools/call', { name: 'call_tool', arguments: through })
      await client.call('tools/call', { name: 'call_tool', arguments: { name: `${server}__say` } })
      await client.call('tools/call', { name: `${server}__act`, arguments: {} })
      await client.call('prompts/get', { name: `${server}__greet`, arguments: { who: 'Zoë' } })
      await client.call('resources/read', { uri: `${server}+test://static` })
      await client.call('resources/read', { uri: `${server}+test://missing` })
      const ref = { type: 'ref/resource', uri: `${server}+test://item/{id}` }
      await client.call('completion/complete', { ref, argument: { name: 'id', value: 'a' } })
      const prompt = { type: 'ref/prompt', name: `${server}__greet` }
      await client.call('completion/complete', { ref: prompt, argument: { name: 'who', value: 'a' } })
      if (kind.era === 'modern') {
        const { message } = await client.call('tools/call', { name: `${server}__task`, arguments: { say: 'x' } })
        const taskId = message.result?.['taskId']
        if (taskId !== undefined) await client.call('tasks/get', { taskId })
      }
    }
    await listening?.cancel('enough')
    await client.close()
    await bridge.close()
    const views = new Views()
    for (const seen of eventsIn(ring)) views.add(seen)
    const events = eventsIn(ring)
    t.same(checked.all({ events, texts, views, eras: `${kind.era} client` }), [])
    for (const server of ['old', 'fresh']) {
      const calls = [...views.calls.values()].filter(({ name }) => name === `${server}__say`)
      t.equal(calls.length, 3, 'also those through call_tool have the name that the client knows')
      for (const { events } of calls) {
        const messages = events.flatMap((seen) => (seen.kind === 'message' ? [seen] : []))
        const sent = messages.find(({ hop, dir }) => hop === 'server' && dir === 'out')
        t.match(sent, { server }, 'the message to the server is one of the server')
        t.match(texts.get(sent?.seq ?? 0), '"name":"echo"', 'with the name there')
        t.ok(
          sent?.changes?.some(({ at, op }) => at === '/params/name' && op === 'replace'),
          'which the bridge has changed',
        )
      }
    }
  })

t.test('each change has its row in docs/development/translation.md', async (t) => {
  t.notOk(checked.rules.has(UNKNOWN))
  for (const rule of ['group-names', 'rewritten-tools', 'exact-names']) t.ok(checked.rules.has(rule), rule)
})
