/** What the bridge does with the tokens of its clients. Numbers are those of test/invariants.md. */
import t, { type Test } from 'tap'
import { startBridge } from '../support/bridge.js'
import { LegacyHttp } from '../support/legacy-http.js'
import { call, post, send } from '../support/modern.js'

const ALICE = 'canary-of-alice-0123456789'
const authorization = `Bearer ${ALICE}`
const settings = { auth: { tokens: { alice: ALICE, bob: '${BOB_OF_TEST:-canary-of-bob-0123456789}' } } }

async function start(t: Test, more: object = {}) {
  const legacy = await LegacyHttp.start(t)
  return { legacy, ...(await startBridge(t, { url: legacy.url }, { ...settings, ...more })) }
}

t.test('without a token nothing reaches the server, and the answer is a JSON-RPC error without id', async (t) => {
  const { legacy, url } = await start(t)
  const rows: [name: string, headers: Record<string, string>, challenge: string][] = [
    ['no token', {}, 'Bearer'],
    ['a wrong one', { authorization: 'Bearer nobody' }, 'Bearer error="invalid_token"'],
    ['another scheme', { authorization: 'Basic YTpi' }, 'Bearer'],
  ]
  for (const [name, headers, challenge] of rows) {
    const answer = await call(url, 'tools/list', {}, { headers })
    t.match({ status: answer.status, error: answer.message.error }, { status: 401, error: { code: -32600 } }, name)
    t.equal(answer.headers['www-authenticate'], challenge, name)
    t.notOk('id' in answer.message, name)
    t.notOk('mcp-bridge-error' in answer.headers, name)
  }
  t.equal(legacy.received.length, 0)
})

t.test('a caller without a token learns of no other mistake than that of the address', async (t) => {
  const { url } = await start(t)
  t.equal((await post(url, 'no JSON', { 'content-type': 'text/plain' })).status, 401)
  t.equal((await send('GET', url, undefined, {})).status, 401)
  t.equal((await send('GET', new URL('/other', url).href, undefined, {})).status, 404)
  t.equal((await send('GET', new URL('/other', url).href, undefined, { authorization })).status, 404)
  t.equal((await send('GET', url, undefined, { authorization, origin: 'https://evil.example' })).status, 403)
})

t.test('an allowed page may learn that it may send a token, and read that it needs one', async (t) => {
  const origin = 'https://app.example'
  const { url } = await start(t, { allowedOrigins: [origin] })
  const preflight = await send('OPTIONS', url, undefined, {
    origin,
    'access-control-request-method': 'POST',
    'access-control-request-headers': 'authorization,content-type',
  })
  t.equal(preflight.status, 204)
  t.match(preflight.headers['access-control-allow-headers'], /authorization/)
  const refused = await call(url, 'tools/list', {}, { headers: { origin } })
  t.equal(refused.status, 401)
  t.equal(refused.headers['access-control-allow-origin'], origin)
  t.match(refused.headers['access-control-expose-headers'], /WWW-Authenticate/)
})

t.test('a token of the bridge is accepted, and neither the server nor the log sees it', async (t) => {
  const { legacy, url, log } = await start(t)
  for (const token of [ALICE, 'canary-of-bob-0123456789']) {
    const params = { name: 'echo', arguments: { text: 'hello' } }
    const answer = await call(url, 'tools/call', params, { headers: { authorization: `Bearer ${token}` } })
    t.equal(answer.status, 200)
    t.ok(answer.message.result)
  }
  await call(url, 'tools/list', {}, { headers: { authorization: 'Bearer canary-of-nobody' } })
  t.ok(legacy.of('tools/call').length > 0)
  t.notOk(legacy.received.some(({ headers }) => 'authorization' in headers))
  t.notMatch(JSON.stringify(legacy.received), /canary/)
  t.notMatch(JSON.stringify(log), /canary/)
})
