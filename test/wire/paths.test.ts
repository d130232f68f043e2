/** The addresses of endpoints: with and without a slash at the end, whatever is behind them; any other one is not found. */
import t, { type Test } from 'tap'
import { startBridge } from '../support/bridge.js'
import { openStream } from '../support/events.js'
import { until } from '../support/eventually.js'
import { startGuarded } from '../support/guarded-bridge.js'
import { LegacyClient } from '../support/legacy-client.js'
import { LegacyHttp } from '../support/legacy-http.js'
import { LegacySse } from '../support/legacy-sse.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { call, send } from '../support/modern.js'
import { ModernHttp } from '../support/modern-http.js'
import { modernStdio } from '../support/modern-stdio.js'
import { TokenIssuer } from '../support/token-issuer.js'

const TOKEN = 'canary-of-alice-0123456789'
const authorization = `Bearer ${TOKEN}`
const METADATA = '/.well-known/oauth-protected-resource'

/** Servers of all kinds, by name. */
async function servers(t: Test): Promise<Record<string, object>> {
  const legacy = await LegacyHttp.start(t)
  const modern = await ModernHttp.start(t)
  return {
    legacy: { url: legacy.url },
    modern: { url: modern.url },
    chosen: { url: legacy.url, tools: ['*'] },
    sse: { url: (await LegacySse.start(t)).url },
    program: legacyStdio(t).server,
    recent: modernStdio(t).server,
  }
}

async function opensStream(url: string, headers: Record<string, string>): Promise<boolean> {
  const stream = await openStream('GET', url, { accept: 'text/event-stream', ...headers })
  if (stream.status === 200) await until(() => stream.events.length > 0, 'the first event')
  stream.leave()
  return stream.status === 200
}

for (const [who, settings, headers] of [
  ['anybody', {}, {}],
  ['callers with a token', { auth: { tokens: { alice: TOKEN } } }, { authorization }],
] as const)
  t.test(`${who} can write a slash after the address of each endpoint`, async (t) => {
    const all = await servers(t)
    const { url } = await startBridge(t, {}, { mcpServers: all, ...settings })
    const { origin } = new URL(url)
    for (const path of ['', ...Object.keys(all).map((name) => `/${name}`)])
      for (const slash of ['', '/', '/?x=y']) {
        const at = `${origin}${path}/mcp${slash}`
        t.equal((await call(at, 'tools/list', {}, { headers })).status, 200, at)
        const client = await LegacyClient.open(at, { headers })
        t.match((await client.request('tools/list')).message, { result: { tools: Array } }, at)
        t.ok(await opensStream(`${origin}${path}/sse${slash}`, headers), `${path}/sse${slash}`)
      }
  })

t.test('what is served nowhere is not found, with any token or none, and the answer names the endpoints', async (t) => {
  const legacy = await LegacyHttp.start(t)
  for (const auth of [undefined, { tokens: { alice: TOKEN } }]) {
    const { url } = await startBridge(t, { url: legacy.url }, auth && { auth })
    for (const path of ['/other', '/mcp/more', '/mcp//', '//mcp', '/test', '/none/mcp', METADATA, `${METADATA}/mcp`])
      for (const headers of [{}, { authorization }, { authorization: 'Bearer wrong' }]) {
        const answer = await send('POST', new URL(url).origin + path, undefined, headers)
        const name = `${path} ${JSON.stringify(headers)}`
        t.equal(answer.status, 404, name)
        t.match(answer.message, { error: { message: /MCP endpoints? (?:is|are) \/mcp/ } }, name)
      }
  }
  t.same(legacy.received, [])
})

t.test('tokens count at addresses with a slash, too, and so does their metadata', async (t) => {
  const issuer = await TokenIssuer.start(t)
  const { url } = await startGuarded(t, { auth: { issuers: [{ issuer: issuer.url }] } }, {}, ['test', 'stock'])
  const { origin } = new URL(url)
  for (const path of ['/mcp', '/test/mcp', '/stock/mcp']) {
    const at = origin + path
    const metadata = origin + METADATA + path
    for (const slash of ['', '/']) {
      t.match((await send('GET', metadata + slash, undefined, {})).message, { resource: at }, metadata + slash)
      const refused = await call(at + slash, 'tools/list')
      t.equal(refused.status, 401)
      t.match(refused.headers['www-authenticate'], `resource_metadata="${metadata}"`)
      const bearer = { authorization: `Bearer ${await issuer.token({ aud: at })}` }
      t.equal((await call(at + slash, 'tools/list', {}, { headers: bearer })).status, 200, at + slash)
    }
    const other = { authorization: `Bearer ${await issuer.token({ aud: `${at}/other` })}` }
    t.equal((await call(`${at}/`, 'tools/list', {}, { headers: other })).status, 401)
  }
})

t.test('paths beside an endpoint reach the server as they are written', async (t) => {
  const legacy = await LegacyHttp.start(t)
  const { url } = await startBridge(t, { url: legacy.url, paths: ['/files/*'] })
  for (const path of ['/files/a', '/files/a/', '/files/a//b/?x=y/']) {
    await send('DELETE', new URL(url).origin + path, undefined, {})
    t.equal(legacy.received.at(-1)?.path, path)
  }
})
