/** What a client has sent comes back to it in at most 200 characters, however the bridge refuses it. What a server says passes. */
import t from 'tap'
import type { Id, Response } from '../../src/base/rpc/message.js'
import { parseObject } from '../../src/base/rpc/splice.js'
import { readInputRequests } from '../../src/mcp/protocol/input.js'
import { legacyError } from '../../src/mcp/protocol/legacy-client.js'
import { decodeReply } from '../../src/mcp/protocol/legacy-server.js'
import { Peer } from '../../src/servers/peer.js'
import { startBridge } from '../support/bridge.js'
import { callOf } from '../support/calls.js'
import { LegacyClient } from '../support/legacy-client.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { parseText } from '../support/messages.js'
import { type Answer, CAPABILITIES, call, envelope, headersFor, post, VERSION } from '../support/modern.js'
import { ModernHttp } from '../support/modern-http.js'

/** Longer than what may come back, and shorter than what no header can hold. */
const TEXT = 'long'.repeat(1_000)
const LONGEST = 'long'.repeat(50)

type Json = Record<string, unknown>

t.test('does not repeat long input in a refusal', async (t) => {
  const { server } = legacyStdio(t)
  const legacy = (await startBridge(t, server)).url
  const modernServer = await ModernHttp.start(t)
  const modern = (await startBridge(t, { url: modernServer.url })).url
  const client = await LegacyClient.open(modern)
  const send = (url: string, method: string, params: Json, headers: Record<string, string> = {}) => {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })
    return post(url, body, { ...headersFor(method, params), ...headers })
  }
  const claimed = (version: string): Json => ({ _meta: { [VERSION]: version, [CAPABILITIES]: {} } })
  const ways: Record<string, () => Promise<Answer>> = {
    'an unknown task method': () => call(legacy, `tasks/${TEXT}`),
    'an unknown method outside of a session': () => send(legacy, TEXT, {}),
    'a version that nobody knows': () => send(legacy, 'tools/list', claimed(TEXT), { 'mcp-protocol-version': TEXT }),
    'a legacy version header': () => send(legacy, 'tools/list', {}, { 'mcp-protocol-version': TEXT }),
    'a version header of initialize': () =>
      send(legacy, 'initialize', {}, { 'mcp-protocol-version': `2026-07-28-${TEXT}` }),
    'a name that its header does not say': () =>
      call(legacy, 'tools/call', { name: TEXT, arguments: {} }, { headers: { 'mcp-name': `${TEXT}!` } }),
    'a header that stands twice': () =>
      call(legacy, 'tools/list', {}, { headers: { [`mcp-param-${TEXT}`]: ['a', 'b'] as string[] } }),
    'a level of log messages': () =>
      call(legacy, 'tools/list', {}, { meta: { 'io.modelcontextprotocol/logLevel': TEXT } }),
    'a member that stands twice': () => {
      const meta = JSON.stringify(envelope()).replace(/\}$/, `,"${TEXT}":1,"${TEXT}":2}`)
      const body = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":${meta}}}`
      return post(legacy, body, headersFor('tools/list'))
    },
    'a state that is not ours': () => call(legacy, 'tools/call', { name: 'echo', requestState: TEXT }),
    'a task that there is not': () => client.request('tasks/get', { taskId: TEXT }),
    'a text that is no JSON': () => post(legacy, TEXT, headersFor('tools/list')),
  }
  for (const [name, way] of Object.entries(ways)) {
    const { text, status } = await way()
    t.ok(status >= 400 || text.includes('"error"'), `${name} is refused (${status})`)
    t.notOk(text.includes(`${LONGEST}l`), `${name}: ${text.slice(0, 300)}`)
  }
})

t.test('repeats an unknown path to the client only if it is short', async (t) => {
  const caller = { revision: '2026-07-28', capabilities: '{}' }
  for (const [uri, told] of [
    ['test://short', true],
    [`test://${TEXT}`, false],
  ] as const) {
    const params = parseObject(JSON.stringify({ uri }))
    const asked = { method: 'resources/read', params, caller }
    const missing = { code: -32602, message: `Resource not found: ${uri}` }
    t.equal(legacyError(asked, missing, '2025-11-25').data?.includes(uri) ?? false, told)
    const outcome = parseText(`{"jsonrpc":"2.0","id":1,"error":{"code":-32002,"message":"Resource not found"}}`)
    const reply = decodeReply(callOf({ ...asked, params: { uri } }), outcome as Response, undefined)
    t.equal(reply.kind === 'error' && (reply.error.data?.includes(uri) ?? false), told)
  }
})

t.test('does not repeat the method of a server in full to it', (t) => {
  const sent: string[] = []
  const channel = { attach() {}, sendMessage: ({ text }: { text: string }) => Promise.resolve(void sent.push(text)) }
  new Peer(channel as never).refuse({ kind: 'request', id: '1' as Id, method: TEXT, params: 'absent' })
  t.match(sent, [/Method not found: long/])
  t.notOk(sent.join().includes(`${LONGEST}l`))
  const question = parseObject(`{"inputRequests":{"a":{"method":"${TEXT}"}}}`)
  try {
    readInputRequests(question)
    t.fail('is refused')
  } catch (error) {
    t.notOk(String(error).includes(`${LONGEST}l`))
  }
  t.end()
})
