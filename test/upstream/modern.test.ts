/** What the bridge sends to a modern server, and which checks it makes in place of a server on stdio. */
import t from 'tap'
import { startBridge } from '../support/bridge.js'
import { LegacyClient } from '../support/legacy-client.js'
import { call } from '../support/modern.js'
import { ModernHttp } from '../support/modern-http.js'
import type { ModernPlan } from '../support/modern-plan.js'
import { modernStdio } from '../support/modern-stdio.js'
import { openPipe } from '../support/pipe.js'

/** Servers, and whether the bridge sends them a legacy client's `initialize`. */
const servers: { name: string; plan: ModernPlan; asked: boolean; session: boolean }[] = [
  { name: 'of 2026-07-28 alone', plan: {}, asked: false, session: false },
  { name: 'that answers GET, but keeps no sessions', plan: { dual: 'sessionless' }, asked: false, session: false },
  { name: 'that misses a session on GET', plan: { dual: 'session' }, asked: true, session: true },
  {
    name: 'that lists a legacy revision, but keeps no sessions',
    plan: { dual: 'sessionless', supportedVersions: ['2026-07-28', '2025-06-18'] },
    asked: true,
    session: false,
  },
]

for (const { name, plan, asked, session } of servers) {
  t.test(`a server ${name} is ${asked ? '' : 'not '}sent initialize`, async (t) => {
    const modern = await ModernHttp.start(t, plan)
    const { url } = await startBridge(t, { url: modern.url })
    const client = await LegacyClient.open(url)
    t.match((await client.call('echo', { x: 1 })).message, { result: { content: [{ text: '{"x":1}' }] } })
    t.equal(modern.of('initialize').length > 0, asked)
    t.equal(modern.of('tools/call')[0]?.era, session ? 'legacy' : 'modern')
  })
}

t.test('a modern answer to initialize opens no session, whatever it contains', async (t) => {
  const modern = await ModernHttp.start(t, {
    supportedVersions: ['2026-07-28', '2025-11-25'],
    override: ({ message }, response) => {
      if (message?.['method'] !== 'initialize') return false
      const result = { protocolVersion: '2026-07-28', capabilities: {}, serverInfo: { name: 'odd', version: '1' } }
      response.writeHead(200, { 'content-type': 'application/json', 'mcp-session-id': 'odd' })
      response.end(JSON.stringify({ jsonrpc: '2.0', id: message['id'], result }))
      return true
    },
  })
  const client = await LegacyClient.open((await startBridge(t, { url: modern.url })).url)
  t.match(client.opened.message, { result: { protocolVersion: '2025-11-25' } })
  t.not(client.session, 'odd')
})

t.test('in front of a server on a pipe, compares headers with arguments', async (t) => {
  const stdio = modernStdio(t)
  const { url } = await startBridge(t, stdio.server)
  const params = { name: 'mirrored', arguments: { region: 'r' } }
  const status = async (region?: string) => {
    const headers = region === undefined ? {} : { 'mcp-param-region': region }
    return (await call(url, 'tools/call', params, { headers })).status
  }
  t.same([await status('r'), await status('other'), await status()], [200, 400, 400])
})

t.test('lists an unlisted tool before its first call, and mirrors its arguments into headers', async (t) => {
  const modern = await ModernHttp.start(t)
  const { url } = await startBridge(t, { url: modern.url })
  const client = await LegacyClient.open(url)
  const sent = () => modern.of('tools/call').map(({ headers }) => headers['mcp-param-region'])
  await Promise.all([client.call('mirrored', { region: 'a' }), client.call('mirrored', { region: 'b' })])
  t.same(sent().toSorted(), ['a', 'b'], 'each call is sent once, with its header')
  const lists = modern.of('tools/list').length
  await client.call('unlisted', {})
  await client.call('mirrored', { region: 'c' })
  t.equal(modern.of('tools/list').length, lists, 'the tools are listed once')

  const pipe = openPipe(t, { url: modern.url })
  t.match(await pipe.call('tools/call', { name: 'mirrored', arguments: { region: 'd' } }), { result: {} })
  t.equal(sent().at(-1), 'd')
})

t.test('calls tools that cannot be listed, and does not list them each time', async (t) => {
  const modern = await ModernHttp.start(t, {
    override: ({ message }, response) => {
      if (message?.['method'] !== 'tools/list') return false
      const error = { code: -32603, message: 'no list today' }
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end(JSON.stringify({ jsonrpc: '2.0', id: message['id'], error }))
      return true
    },
  })
  const client = await LegacyClient.open((await startBridge(t, { url: modern.url })).url)
  for (const x of [1, 2, 3])
    t.match((await client.call('echo', { x })).message, { result: { content: [{ text: `{"x":${x}}` }] } })
  t.equal(modern.of('tools/list').length, 1)
})
