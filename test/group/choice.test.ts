/** Items that the configuration hides are hidden in a group too, from every client and by every name. */
import t from 'tap'
import type { Client, Json } from '../matrix/client.js'
import { CLIENTS, type ClientKind, connect } from '../matrix/clients.js'
import { nameOf } from '../matrix/run.js'
import { SERVERS } from '../matrix/servers.js'
import { Raw } from '../matrix/wire.js'
import {
  admitted,
  attempts,
  CHOICE,
  HIDDEN,
  listed,
  showsOnlyWhatIsChosen,
  throughSearch,
} from '../support/attempts.js'
import { createBridge } from '../support/bridge.js'
import { call, envelope, headersFor, post } from '../support/modern.js'
import { ModernHttp } from '../support/modern-http.js'

interface Form {
  what: string
  options: object
  /** The beginning of names and URIs of the first server. */
  names: string
  uris: string
}
const PREFIXED: Form = { what: 'prefixes', options: {}, names: 'one__', uris: 'one+' }
const BARE: Form = { what: 'no prefixes', options: { prefix: 'never', resources: 'as-is' }, names: '', uris: '' }
/** Lists all tools, so that the lists can be compared. */
const SEARCHED: Form = { ...PREFIXED, what: 'search', options: { search: { always: ['*'] } } }
const forms = ({ transport }: ClientKind) => (transport === 'stdio' ? [SEARCHED] : [PREFIXED, BARE])

for (const [at, clientKind] of CLIENTS.entries())
  for (const { what, options, names, uris } of forms(clientKind))
    t.test(`${nameOf(clientKind)} client, a group with ${what}`, async (t) => {
      // Each client has other servers.
      const kinds = [SERVERS[at % SERVERS.length], SERVERS[(at + 2) % SERVERS.length]].flatMap((kind) => kind ?? [])
      const [one, two] = await Promise.all(kinds.map((kind) => kind.start(t)))
      const mcpServers = { one: { ...one?.entry, ...CHOICE }, two: { ...two?.entry, ...CHOICE } }
      const { bridge, log } = createBridge(t, {}, { mcpServers, groups: { team: options } })
      if (clientKind.transport !== 'stdio')
        await bridge.listen({ kind: 'http', host: '127.0.0.1', port: 0, path: '/mcp' })
      const client = connect(clientKind, { url: bridge.groupUrls.get('team') ?? '', bridge, log })
      await client.open()
      await showsOnlyWhatIsChosen(t, client, names)
      const all = [...attempts(names, uris), ...attempts()]
      const tried = new Map([...all, ...throughSearch(all)].map((attempt) => [JSON.stringify(attempt), attempt]))
      t.same(await admitted(client, [...tried.values()]), [], 'everything is refused')
      await client.notify('notifications/vendor', { name: 'act' })
      await client.notify('tools/call', { name: `${names}act`, arguments: {} })
      const said = await client.call('tools/call', { name: `${names}say`, arguments: { n: new Raw('1.0') } })
      t.match(said.message, { result: { content: [{ text: '{"n":1.0,"org":"acme"}' }] } })
      t.notOk((await listed(client, 'tools/list', 'tools')).some(({ name }) => String(name).endsWith('act')))
      if (options === SEARCHED.options)
        for (const query of [`${names}act`, `${names}echo`, 'act', 'echo'])
          t.notMatch((await search(client, query)).join(' '), /act|echo/, query)
      await client.close()
      for (const server of [one, two]) {
        const through = server?.reached().filter(({ text }) => HIDDEN.test(text)) ?? []
        t.same(
          through.map(({ text }) => text),
          [],
          'nothing that is hidden has been named at the server',
        )
      }
    })

/** Names of the tools that `search_tools` finds. */
async function search(client: Client, query: string): Promise<unknown[]> {
  const found = await client.call('tools/call', { name: 'search_tools', arguments: { query, limit: 50 } })
  const [{ text } = { text: '{}' }] = (found.message.result?.['content'] ?? []) as { text: string }[]
  return (JSON.parse(text) as { tools: Json[] }).tools.map(({ name }) => name)
}

t.test('a header that differs from the body cannot bypass the choice in a group', async (t) => {
  const [one, two] = [await ModernHttp.start(t), await ModernHttp.start(t)]
  const choice = { tools: { deny: ['act'] } }
  const mcpServers = { one: { url: one.url, ...choice }, two: { url: two.url } }
  const { bridge } = createBridge(t, {}, { mcpServers, groups: { team: {} } })
  await bridge.listen({ kind: 'http', host: '127.0.0.1', port: 0, path: '/mcp' })
  const url = bridge.groupUrls.get('team') as string
  const body = (name: string) =>
    JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: {}, _meta: envelope() } })
  const tried: [name: string, header: string | string[] | undefined][] = [
    ['one__act', 'one__act'],
    ['one__act', 'two__act'],
    ['one__act', 'one__echo'],
    ['one__act', 'act'],
    ['one__act', undefined],
    ['two__act', 'one__act'],
    ['one__act', ['two__act', 'one__act']],
  ]
  for (const [name, header] of tried) {
    const answer = await post(url, body(name), { ...headersFor('tools/call', { name }), 'mcp-name': header })
    t.ok(answer.message.error, `${name} ${String(header)}`)
  }
  t.same([...one.of('tools/call'), ...two.of('tools/call')], [])
  t.match((await call(url, 'tools/call', { name: 'two__act', arguments: {} })).message, { result: {} })
})

t.test('without prefixes, a name hidden at its first server belongs to the next one that shows it', async (t) => {
  const [one, two] = [await ModernHttp.start(t), await ModernHttp.start(t)]
  const mcpServers = { one: { url: one.url, tools: { deny: ['act'] } }, two: { url: two.url } }
  const { bridge } = createBridge(t, {}, { mcpServers, groups: { team: { prefix: 'never' } } })
  await bridge.listen({ kind: 'http', host: '127.0.0.1', port: 0, path: '/mcp' })
  const url = bridge.groupUrls.get('team') as string
  t.match((await call(url, 'tools/call', { name: 'act', arguments: {} })).message, { result: {} })
  t.match((await call(url, 'tools/call', { name: 'echo', arguments: {} })).message, { result: {} })
  t.same(
    [one, two].map((server) => server.of('tools/call').length),
    [1, 1],
  )
})

t.test("refusals name the target as the client has named it, not by its server's name", async (t) => {
  const one = await ModernHttp.start(t)
  const override = { echo: { name: 'say' } }
  const choice = {
    tools: { deny: ['act'], override },
    prompts: { deny: ['greet'] },
    resources: { deny: ['test://x'] },
    scopes: { '*': ['write'] },
  }
  const mcpServers = { one: { url: one.url, ...choice }, two: { url: one.url } }
  const auth = {
    tokens: { alice: { token: 'a'.repeat(32), scopes: [] }, bob: { token: 'b'.repeat(32), scopes: ['write'] } },
  }
  const { bridge } = createBridge(t, {}, { mcpServers, groups: { team: {} }, auth })
  await bridge.listen({ kind: 'http', host: '127.0.0.1', port: 0, path: '/mcp' })
  const url = bridge.groupUrls.get('team') as string
  const said = async (method: string, params: Json, who = 'b') => {
    const headers = { authorization: `Bearer ${who.repeat(32)}` }
    const { message } = await call(url, method, params, { headers })
    const [{ text } = { text: undefined }] = (message.result?.['content'] ?? []) as { text?: string }[]
    return { text: message.error?.message ?? text, data: message.error?.data }
  }
  t.same((await said('tools/call', { name: 'one__act', arguments: {} })).text, 'Unknown tool: one__act')
  t.same((await said('prompts/get', { name: 'one__greet' })).text, 'Unknown prompt: one__greet')
  const uri = 'one+test://x'
  t.match(await said('resources/read', { uri }), { text: `Resource not found: ${uri}`, data: { uri } })
  const argument = { name: 'x', value: '' }
  const prompt = { type: 'ref/prompt', name: 'one__greet' }
  t.same((await said('completion/complete', { ref: prompt, argument })).text, 'Unknown prompt: one__greet')
  const template = { type: 'ref/resource', uri }
  t.match(await said('completion/complete', { ref: template, argument }), { text: `Resource not found: ${uri}` })
  for (const name of ['one__say', 'one__log'])
    t.same((await said('tools/call', { name, arguments: {} }, 'a')).text, `Unknown tool: ${name}`, 'without its scope')
})
