/** The block for Caddy in docs/reverse-proxy.md, as it stands there, between clients and bridges. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { startBridge } from './support/bridge.js'
import { startCompany } from './support/company.js'
import { until } from './support/eventually.js'
import { temporaryFolder } from './support/folder.js'
import { freePort } from './support/free-port.js'
import { LegacyHttp } from './support/legacy-http.js'
import { call, send } from './support/modern.js'
import { SseClient } from './support/sse-client.js'

const guide = readFileSync(new URL('../docs/reverse-proxy.md', import.meta.url), 'utf8')
const [, block = ''] = /^```caddyfile\n([\s\S]*?)^```$/m.exec(guide) ?? []
const CADDY = ['/usr/bin/caddy', 'caddy'].find((path) => spawnSync(path, ['version']).status === 0)
const skip = CADDY === undefined && 'Caddy is not installed'

/** Caddy at a port, with the block of the guide, for a bridge at an address. Without TLS, which is not about paths. */
async function startCaddy(t: Test, port: number, bridge: string): Promise<string> {
  const folder = temporaryFolder(t)
  const moved = block
    .replace('mcp.example.com {', `http://:${port} {\n  bind 127.0.0.1`)
    .replace('127.0.0.1:8080', new URL(bridge).host)
  const file = join(folder, 'Caddyfile')
  writeFileSync(file, `{\n  admin off\n}\n${moved}`)
  const env = { ...process.env, HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder }
  const caddy = spawn(String(CADDY), ['run', '--config', file, '--adapter', 'caddyfile'], { stdio: 'ignore', env })
  t.teardown(async () => {
    if (caddy.exitCode === null && caddy.kill()) await once(caddy, 'exit')
  })
  const origin = `http://127.0.0.1:${port}`
  await until(() =>
    fetch(origin).then(
      () => true,
      () => false,
    ),
  )
  return origin
}

t.test('both eras, HTTP+SSE and each server are reached through Caddy, and nothing else is', { skip }, async (t) => {
  const legacy = await LegacyHttp.start(t)
  const port = await freePort()
  const publicUrl = `http://127.0.0.1:${port}`
  const { url } = await startBridge(t, { url: legacy.url }, { publicUrl, trustedProxies: ['127.0.0.1', '::1'] })
  const origin = await startCaddy(t, port, url)
  for (const path of ['/mcp', '/test/mcp']) {
    t.match((await call(origin + path, 'tools/call', { name: 'echo', arguments: {} })).message, { result: {} }, path)
    // Its first event would wait in a buffer.
    const client = await SseClient.open(origin + path, '2024-11-05')
    t.match(await client.request('tools/call', { name: 'echo', arguments: {} }), { result: { content: [{}] } }, path)
    client.stream.leave()
  }
  const large = 'x'.repeat(3_000_000)
  t.equal((await call(`${origin}/mcp`, 'tools/call', { name: 'echo', arguments: { large } })).status, 200)
  for (const path of ['/healthz', '/status', '/metrics', '/nothing', '/mcpx', '/.well-known/acme-challenge/x']) {
    const response = await fetch(origin + path)
    t.same(
      [await response.text(), response.headers.get('content-type')],
      ['', null],
      `${path} is no page of the bridge`,
    )
  }
})

t.test('clients and people find where to sign in through Caddy', { skip }, async (t) => {
  const company = await startCompany(t)
  const [bridge] = company.bridges
  const origin = await startCaddy(t, await freePort(), String(bridge?.url))
  const host = new URL(company.origin).host
  const get = async (path: string) => (await send('GET', origin + path, undefined, { host })).status
  const rows = {
    '/.well-known/oauth-protected-resource/mcp': 200,
    '/.well-known/oauth-protected-resource/test/mcp': 200,
    '/.well-known/oauth-authorization-server': 200,
    '/sign-in': 303,
    '/sign-in/test': 303,
  }
  for (const [path, status] of Object.entries(rows)) t.equal(await get(path), status, path)
  const refused = await call(`${origin}/mcp`, 'tools/list', {}, { headers: { host } })
  t.equal(refused.status, 401)
  t.match(refused.headers['www-authenticate'], `${company.origin}/.well-known/oauth-protected-resource/mcp`)
})
