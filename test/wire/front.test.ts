/** What a client may say to the endpoint, and how it is told what it may not. Numbers are those of test/invariants.md. */
import t, { type Test } from 'tap'
import { startBridge } from '../support/bridge.js'
import { LegacyHttp } from '../support/legacy-http.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import {
  type Answer,
  CAPABILITIES,
  call,
  envelope,
  headersFor,
  post,
  SERVER_INFO,
  send,
  VERSION,
} from '../support/modern.js'

const JSON_HEADERS = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
const modernHeaders = (method: string) => headersFor(method)
const rpc = (method: string, params?: object, id: unknown = 1) =>
  JSON.stringify({ jsonrpc: '2.0', id, method, ...(params && { params }) })
const withEnvelope = (extra: object = {}) => ({ _meta: { ...envelope(), ...extra } })

function refused(t: Test, answer: Answer, status: number, code: number, name = answer.text) {
  t.match({ status: answer.status, code: answer.message.error?.code }, { status, code }, name)
}

t.test('the endpoint answers by method and version', async (t) => {
  const legacy = await LegacyHttp.start(t)
  const { url } = await startBridge(t, { url: legacy.url })

  t.test('a session id and an event id on a modern request change nothing', async (t) => {
    const answer = await call(url, 'tools/list', {}, { headers: { 'mcp-session-id': 'made-up', 'last-event-id': '5' } })
    t.equal(answer.status, 200)
    t.ok(Array.isArray(answer.message.result?.['tools']))
    t.equal(answer.headers['mcp-session-id'], undefined)
  })

  t.test('a claim in the body without the header is a mismatch, under the same id', async (t) => {
    const answer = await call(url, 'tools/list', {}, { id: 'two', headers: { 'mcp-protocol-version': undefined } })
    refused(t, answer, 400, -32020)
    t.equal(answer.message['id'], 'two')
  })

  t.test('a header of another revision is a mismatch, not an unsupported version', async (t) => {
    refused(t, await call(url, 'tools/list', {}, { headers: { 'mcp-protocol-version': '2025-11-25' } }), 400, -32020)
  })

  t.test('refuses an unknown version with the versions that discover lists', async (t) => {
    const answer = await call(
      url,
      'tools/list',
      {},
      { meta: { [VERSION]: '2099-01-01' }, headers: { 'mcp-protocol-version': '2099-01-01' } },
    )
    refused(t, answer, 400, -32022)
    const discovered = await call(url, 'server/discover')
    t.same(answer.message.error?.data?.['supported'], discovered.message.result?.['supportedVersions'])
    t.equal(answer.message.error?.data?.['requested'], '2099-01-01')
  })

  t.test('refuses a request that claims a legacy version', async (t) => {
    refused(
      t,
      await call(
        url,
        'tools/list',
        {},
        { meta: { [VERSION]: '2025-11-25' }, headers: { 'mcp-protocol-version': '2025-11-25' } },
      ),
      400,
      -32022,
    )
  })

  t.test('a modern header without envelope names the missing keys', async (t) => {
    const answer = await post(url, rpc('tools/list'), modernHeaders('tools/list'))
    refused(t, answer, 400, -32602)
    t.same(answer.message.error?.data?.['missing'], [VERSION, CAPABILITIES])
  })

  t.test('missing capabilities, or other than an object, are invalid params', async (t) => {
    for (const capabilities of [undefined, [], null, 'x']) {
      refused(
        t,
        await call(url, 'tools/list', {}, { meta: { [CAPABILITIES]: capabilities } }),
        400,
        -32602,
        String(capabilities),
      )
    }
  })

  t.test('answers a bare server/discover from one session, and refuses a bare listen', async (t) => {
    const opened = () => legacy.of('initialize').length
    await post(url, rpc('server/discover'), JSON_HEADERS)
    const before = opened()
    const answer = await post(url, rpc('server/discover'), { 'content-type': 'application/json' })
    t.equal(answer.status, 200)
    t.same(answer.message.result?.['supportedVersions'], ['2026-07-28'])
    t.equal(opened(), before)
    refused(t, await post(url, rpc('subscriptions/listen'), JSON_HEADERS), 400, -32602)
  })

  t.test('initialize with a modern header is a mismatch', async (t) => {
    refused(t, await post(url, rpc('initialize', {}), modernHeaders('initialize')), 400, -32020)
  })

  t.test('removed or unknown methods are not found, under the same id', async (t) => {
    for (const method of [
      'initialize',
      'ping',
      'logging/setLevel',
      'resources/subscribe',
      'resources/unsubscribe',
      'nope/x',
      'tasks/list',
      'tasks/result',
    ]) {
      const answer = await call(url, method, {}, { id: method })
      refused(t, answer, 404, -32601, method)
      t.equal(answer.message['id'], method)
    }
    t.same(legacy.of('ping'), [], 'and the server hears nothing of what is gone')
  })

  t.test('refuses a request without claim, header or session, and the server gets nothing', async (t) => {
    const before = legacy.received.length
    refused(t, await post(url, rpc('tools/list'), JSON_HEADERS), 400, -32600)
    t.equal(legacy.received.length, before)
  })

  t.test('an unknown session is not found', async (t) => {
    // With a server that has sessions of its own over HTTP, it would be for the server to know them.
    const { url } = await startBridge(t, legacyStdio(t).server)
    refused(t, await post(url, rpc('tools/list'), { ...JSON_HEADERS, 'mcp-session-id': 'unknown' }), 404, -32600)
  })

  t.test('refuses a header with an unknown revision', async (t) => {
    refused(
      t,
      await post(url, rpc('tools/list'), { ...JSON_HEADERS, 'mcp-protocol-version': '2024-99-99' }),
      400,
      -32600,
    )
  })

  t.test('accepts a notification without effect, and refuses an answer', async (t) => {
    const notification = JSON.stringify({
      jsonrpc: '2.0',
      method: 'notifications/cancelled',
      params: { requestId: 1, ...withEnvelope() },
    })
    const answer = await post(url, notification, modernHeaders('notifications/cancelled'))
    t.equal(answer.status, 202)
    t.equal(answer.text, '')
    t.same(legacy.of('notifications/cancelled'), [])
    const response = await post(url, '{"jsonrpc":"2.0","id":1,"result":{}}', modernHeaders('x'))
    refused(t, response, 400, -32600)
    t.notOk('id' in response.message)
  })

  t.test('refuses arrays, without an id in the answer', async (t) => {
    for (const body of ['[]', `[${rpc('tools/list', withEnvelope())}]`, `[${rpc('initialize')}]`]) {
      const answer = await post(url, body, JSON_HEADERS)
      refused(t, answer, 400, -32600, body.slice(0, 20))
      t.notOk('id' in answer.message)
    }
  })

  t.test('GET and DELETE of a modern client are not allowed', async (t) => {
    for (const method of ['GET', 'DELETE']) {
      const answer = await send(method, url, undefined, { ...modernHeaders('x'), accept: 'text/event-stream' })
      t.equal(answer.status, 405, method)
      t.match(answer.headers['allow'], /POST/)
    }
  })

  t.test('refuses a foreign origin before any other check, and a foreign host', async (t) => {
    const nonsense = (headers: Record<string, string>) =>
      send('POST', url, '{', { 'content-type': 'text/plain', ...headers })
    refused(t, await nonsense({ origin: 'http://evil.example' }), 403, -32600)
    t.equal((await nonsense({ origin: 'null' })).status, 403)
    t.equal((await nonsense({ origin: url.replace('/mcp', '').replace('127.0.0.1', 'localhost') })).status, 403)
    t.equal((await nonsense({ host: 'evil.example' })).status, 403)
    t.equal((await nonsense({ host: 'localhost.evil.example' })).status, 403)
    t.equal((await nonsense({ host: '127.0.0.1:80@evil.example' })).status, 403)
    t.equal((await call(url, 'tools/list', {}, { headers: { origin: new URL(url).origin } })).status, 200)
    t.equal((await call(url, 'tools/list', {}, { headers: { host: `LOCALHOST:${new URL(url).port}` } })).status, 200)
  })

  t.test('reports invalid JSON, another media type and a large body', async (t) => {
    const broken = await post(url, '{"jsonrpc":"2.0","id":1,', modernHeaders('tools/list'))
    refused(t, broken, 400, -32700)
    t.notOk('id' in broken.message)
    refused(t, await post(url, rpc('x'), { ...modernHeaders('x'), 'content-type': 'text/plain' }), 415, -32600)
    const { url: small } = await startBridge(t, { url: legacy.url }, { limits: { bodyBytes: 2_000 } })
    refused(t, await call(small, 'tools/call', { name: 'echo', arguments: { text: 'x'.repeat(2_000) } }), 413, -32600)
    t.equal((await call(small, 'tools/call', { name: 'echo', arguments: { text: 'x'.repeat(1_000) } })).status, 200)
  })

  t.test('discover names the server twice: in _meta, and in the body for clients of the drafts', async (t) => {
    const { message } = await call(url, 'server/discover')
    const result = message.result as Record<string, Record<string, unknown>>
    t.same(result['supportedVersions'], ['2026-07-28'])
    t.equal(result['resultType'], 'complete')
    t.ok(Number.isInteger(result['ttlMs']) && Number(result['ttlMs']) >= 0)
    t.ok(['public', 'private'].includes(String(result['cacheScope'])))
    t.same(result['_meta']?.[SERVER_INFO], { name: 'scripted', version: '1.0.0' })
    t.same(result['serverInfo'], result['_meta']?.[SERVER_INFO])
    t.notOk('tasks' in (result['capabilities'] ?? {}))
    t.equal(result['instructions'] as unknown, 'Be brief.')
  })
})

t.test('with the option off, a bare server/discover is refused like any other request', async (t) => {
  const legacy = await LegacyHttp.start(t)
  const { url } = await startBridge(t, { url: legacy.url }, { compat: { bareDiscover: false } })
  const answer = await post(url, rpc('server/discover'), JSON_HEADERS)
  refused(t, answer, 400, -32602)
  t.same(answer.message.error?.data?.['supported'], ['2026-07-28'])
})

t.test('clients of the drafts can get the codes of the drafts', async (t) => {
  const legacy = await LegacyHttp.start(t)
  const { url } = await startBridge(t, { url: legacy.url }, { compat: { draftErrorCodes: true } })
  refused(t, await call(url, 'tools/list', {}, { headers: { 'mcp-method': 'x' } }), 400, -32001)
  const version = { meta: { [VERSION]: '2099-01-01' }, headers: { 'mcp-protocol-version': '2099-01-01' } }
  refused(t, await call(url, 'tools/list', {}, version), 400, -32004)
  const asking = { name: 'ask', arguments: { method: 'sampling/createMessage', strict: true } }
  refused(t, await call(url, 'tools/call', asking), 400, -32003)
})
