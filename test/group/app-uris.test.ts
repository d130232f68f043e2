/** User interfaces of tools in a group: hosts find their URIs in definitions and in results, and read them. */
import t from 'tap'
import { type Answering, answering } from '../support/answering.js'
import { startBridge } from '../support/bridge.js'
import { LegacyClient } from '../support/legacy-client.js'
import { CAPABILITIES, call } from '../support/modern.js'

type Json = Record<string, unknown>

const metaOf = (uri: string) => ({
  ui: { resourceUri: uri, visibility: ['app'] },
  'ui/resourceUri': uri,
  'io.modelcontextprotocol/ui': { resourceUri: uri },
  'openai/outputTemplate': uri,
  other: { resourceUri: 'ui://board' },
})
/** What a server sends, and what clients of the group get. */
const resultOf = (uri: string, file: string) => ({
  content: [
    { type: 'text', text: 'ui://board', _meta: metaOf(uri) },
    { type: 'resource_link', uri, name: 'b', _meta: metaOf(uri) },
    { type: 'resource', resource: { uri: file, text: 'x', _meta: metaOf(uri) }, _meta: metaOf(uri) },
  ],
  structuredContent: { uri: 'ui://board', _meta: metaOf('ui://board'), content: [{ uri: 'ui://board' }] },
  _meta: metaOf(uri),
})
const answersOf = (uri: string, file: string, prefix: string) => ({
  'tools/list': { tools: [{ name: `${prefix}x`, inputSchema: { type: 'object' }, _meta: metaOf(uri) }] },
  'resources/list': { resources: [{ uri: file, name: 'f', _meta: metaOf(uri) }] },
  'resources/read': { contents: [{ uri, text: '<p>', _meta: metaOf(uri) }], _meta: metaOf(uri) },
  'prompts/get': {
    messages: [{ role: 'user', content: { type: 'resource', resource: { uri: file, text: 'x', _meta: metaOf(uri) } } }],
    _meta: metaOf(uri),
  },
  'tools/call': resultOf(uri, file),
})
const SENT = answersOf('ui://board', 'file:///a', '')
const SHOWN = answersOf('ui://apps+board', 'apps+file:///a', 'apps__')

for (const era of ['legacy', 'modern'] as const)
  t.test(`the user interfaces of a ${era} server have their prefix wherever they are named`, async (t) => {
    const apps = await answering(t, era, SENT)
    const servers = { apps: apps.server, other: (await answering(t, 'modern', {})).server }
    const groups = { plain: {}, searched: { search: true }, bare: { resources: 'as-is' } }
    const { url } = await startBridge(t, {}, { mcpServers: servers, groups })
    const at = (group: string) => new URL(`/${group}/mcp`, url).href
    const legacy = await LegacyClient.open(at('plain'))
    const clients = {
      modern: (method: string, params: Json) => call(at('plain'), method, params),
      legacy: (method: string, params: Json) => legacy.request(method, params),
    }
    for (const [client, ask] of Object.entries(clients)) {
      const resultOf = async (method: string, params: Json = {}) => (await ask(method, params)).message['result']
      for (const method of ['tools/list', 'resources/list', 'prompts/get'] as const)
        t.match(await resultOf(method, { name: 'apps__p' }), SHOWN[method], `${method} of a ${client} client`)
      const called = (await resultOf('tools/call', { name: 'apps__x', arguments: {} })) as Json
      t.match(called, SHOWN['tools/call'], client)
      t.same(called['structuredContent'], SENT['tools/call'].structuredContent, 'what the tool returns stays')
      const { ui } = called['_meta'] as { ui: { resourceUri: string } }
      t.match(await resultOf('resources/read', { uri: ui.resourceUri }), SHOWN['resources/read'], client)
    }
    t.same(uris(apps), ['ui://board', 'ui://board'], 'its server reads its own URI')
    const searched = { name: 'call_tool', arguments: { name: 'apps__x', arguments: {} } }
    t.match((await call(at('searched'), 'tools/call', searched)).message.result, SHOWN['tools/call'], 'by call_tool')
    const bare = await call(at('bare'), 'tools/call', { name: 'apps__x', arguments: {} })
    t.match(bare.message.result, SENT['tools/call'], 'unless resources keep their URIs')
    await call(at('bare'), 'resources/read', { uri: 'ui://board' })
    t.equal(uris(apps).length, 3)
  })

t.test('the user interface of a task has its prefix, too', async (t) => {
  const task = { taskId: 't', status: 'completed', createdAt: '2026-01-01T00:00:00Z', ttlMs: null }
  const ofTask = (uri: string, file: string) => ({ ...task, result: resultOf(uri, file), _meta: metaOf(uri) })
  const apps = await answering(t, 'modern', { 'tasks/get': ofTask('ui://board', 'file:///a') })
  const mcpServers = { apps: apps.server, other: apps.server }
  const { url } = await startBridge(t, {}, { mcpServers, groups: { plain: {} } })
  const meta = { [CAPABILITIES]: { extensions: { 'io.modelcontextprotocol/tasks': {} } } }
  const { message } = await call(new URL('/plain/mcp', url).href, 'tasks/get', { taskId: 'apps__t' }, { meta })
  t.match(message.result, { ...ofTask('ui://apps+board', 'apps+file:///a'), taskId: 'apps__t' })
})

function uris({ got }: Answering): unknown[] {
  return got.flatMap(({ method, params }) => (method === 'resources/read' ? params?.['uri'] : []))
}
