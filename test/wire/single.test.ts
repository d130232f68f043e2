/** Programs that can run only once: all clients of a principal share one process. */
import t, { type Test } from 'tap'
import { parseSettings } from '../../src/config/settings.js'
import { all, NAME, startAsker, talk } from '../support/asking.js'
import { startBridge } from '../support/bridge.js'
import { LegacyClient } from '../support/legacy-client.js'
import { LegacyHttp } from '../support/legacy-http.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { CAPABILITIES, CLIENT_INFO, call } from '../support/modern.js'
import { modernStdio } from '../support/modern-stdio.js'
import { sendText } from '../support/plain-http.js'

const TOKENS = { alice: 'token-of-alice-0123456789', bob: 'token-of-bob-0123456789' }
const bearer = (who: keyof typeof TOKENS) => ({ authorization: `Bearer ${TOKENS[who]}` })
const SINGLE = { process: 'single' }

/** Calls of alice's clients of both eras, which differ in name and capabilities. */
async function callAsAlice(t: Test, url: string): Promise<void> {
  const headers = bearer('alice')
  const clients = [
    await LegacyClient.open(url, { headers, capabilities: { elicitation: {}, sampling: {} } }),
    await LegacyClient.open(url, { headers, revision: '2025-03-26', clientInfo: { name: 'other', version: '2' } }),
  ]
  for (const [n, client] of clients.entries()) t.match((await client.call('echo', { n })).message, { result: {} })
  for (const [name, capabilities] of Object.entries({ a: {}, b: { elicitation: {} }, c: { roots: {} } })) {
    const meta = { [CAPABILITIES]: capabilities, [CLIENT_INFO]: { name, version: '1' } }
    const { message } = await call(url, 'tools/call', { name: 'echo', arguments: {} }, { headers, meta })
    t.match(message, { result: { resultType: 'complete' } }, name)
  }
}

t.test('with "process": "single", all clients of a principal share one process of a legacy program', async (t) => {
  const stdio = legacyStdio(t)
  const { url } = await startBridge(t, { ...stdio.server, ...SINGLE }, { auth: { tokens: TOKENS } })
  await callAsAlice(t, url)
  t.equal(stdio.pids().length, 1)
  await call(url, 'tools/call', { name: 'echo', arguments: {} }, { headers: bearer('bob') })
  t.equal(stdio.pids().length, 2, 'another principal has another process')

  const usual = legacyStdio(t)
  await callAsAlice(t, (await startBridge(t, usual.server, { auth: { tokens: TOKENS } })).url)
  t.ok(usual.pids().length > 1, 'by default they have several')
})

t.test('with "session": "shared" as well, all principals share one process', async (t) => {
  const stdio = legacyStdio(t)
  const server = { ...stdio.server, ...SINGLE, session: 'shared' }
  const { url } = await startBridge(t, server, { auth: { tokens: TOKENS } })
  await callAsAlice(t, url)
  await call(url, 'tools/call', { name: 'echo', arguments: {} }, { headers: bearer('bob') })
  t.equal(stdio.pids().length, 1)
})

t.test('clients of a server at an address share a session', async (t) => {
  const server = await LegacyHttp.start(t)
  const { url } = await startBridge(t, { url: server.url, ...SINGLE }, { auth: { tokens: TOKENS } })
  await callAsAlice(t, url)
  const sessions = () => new Set(server.of('tools/call').map(({ headers }) => headers['mcp-session-id'])).size
  t.equal(sessions(), 1)
  await call(url, 'tools/call', { name: 'echo', arguments: {} }, { headers: bearer('bob') })
  t.equal(sessions(), 2, 'another principal has another session')
})

const ODD: Record<string, string[]> = {
  'tools/call': [
    String.raw`"result":{"content":[{"type":"text","text":"\u0041"}], "n":1.0,"resultType":"odd","ttlMs":7,"structuredContent":[1]}`,
    '"result":{"content":"no block","isError":true}',
    '"error":{"code":-32050,"message":"no", "data":[1.0]}',
    '"error":{"code":-32602,"data":{"uri":"x:y"},"message":"no"}',
  ],
  'resources/read': ['"error":{"code":-32002,"message":"no"}', '"result":{"contents":[],"cacheScope":"private"}'],
  'tools/list': [
    '"result":{"tools":[{"name":"a","inputSchema":{"type":"object","y":1.0},"execution":{"taskSupport":"required"},"x":1.0}]}',
  ],
  'vendor/odd': ['"result":{"resultType":"odd"}', '"error":{"code":-32601,"message":"no","data":{"n":1.0}}'],
}

t.test('legacy clients that share a session get what the server has answered, byte for byte', async (t) => {
  let said = ''
  const server = await LegacyHttp.start(t, {
    override: ({ message: { id, method } }, response) => {
      if (!(String(method) in ODD)) return false
      sendText(response, `{"jsonrpc":"2.0","id":${id},${said}}`)
      return true
    },
  })
  const { url } = await startBridge(t, { url: server.url, ...SINGLE })
  const [client, older] = [await LegacyClient.open(url), await LegacyClient.open(url, { revision: '2025-03-26' })]
  for (const [method, answers] of Object.entries(ODD))
    for (const answer of answers) {
      said = answer
      const params = { name: 'echo', uri: 'x:y' }
      t.equal((await client.request(method, params, { id: 'é' })).text, `{"jsonrpc":"2.0","id":"é",${answer}}`)
    }
  said = ODD['tools/call']?.[0] ?? ''
  t.same(Object.keys((await older.call('echo')).message.result ?? {}), ['content', 'n'], 'of an older revision')
  said = '"result":{"tools":[{"name":"a","inputSchema":{"properties":{"b":true}}}]}'
  const inputSchema = { type: 'object', properties: { b: {} } }
  t.same((await client.request('tools/list')).message.result, { tools: [{ name: 'a', inputSchema }] }, 'but this')
})

t.test('clients of a modern program share a process, whether or not they request its logs', async (t) => {
  const stdio = modernStdio(t)
  const { url } = await startBridge(t, { ...stdio.server, ...SINGLE }, { auth: { tokens: TOKENS } })
  const headers = bearer('alice')
  for (const meta of [{}, { 'io.modelcontextprotocol/logLevel': 'debug' }])
    t.equal((await call(url, 'tools/list', {}, { headers, meta })).status, 200)
  t.equal(new Set(stdio.pids()).size, 1)
})

t.test('such a program asks none of its clients', async (t) => {
  const asker = await startAsker(t, 'over stdio')
  const { url } = await startBridge(t, { ...asker.server, ...SINGLE })
  const round = await talk(url, asker).steps([{ ask: [NAME] }])
  t.not(round.message.result?.['resultType'], 'input_required')
  t.same(all(round, {}), {})
})

t.test('"single" excludes a session for each request', (t) => {
  const settings = { mcpServers: { a: { command: 'x', ...SINGLE, session: 'per-request' } } }
  const read = () => parseSettings(settings, { env: {}, read: () => '' })
  t.throws(read, { issues: [{ path: 'mcpServers.a.process', message: /single.*per-request/ }] } as unknown as Error)
  t.end()
})
