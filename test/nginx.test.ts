/** The block for nginx in docs/reverse-proxy.md, as it stands there, between clients and bridges. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { RESERVED } from '../src/config/addresses.js'
import { startBridge } from './support/bridge.js'
import { startCompany } from './support/company.js'
import { until } from './support/eventually.js'
import { temporaryFolder } from './support/folder.js'
import { freePort } from './support/free-port.js'
import { LegacyHttp } from './support/legacy-http.js'
import { call, send } from './support/modern.js'
import { SseClient } from './support/sse-client.js'

const guide = readFileSync(new URL('../docs/reverse-proxy.md', import.meta.url), 'utf8')
const [, block = ''] = /^```nginx\n([\s\S]*?)^```$/m.exec(guide) ?? []
const NGINX = ['/usr/sbin/nginx', 'nginx'].find((path) => spawnSync(path, ['-v']).status === 0)
const skip = NGINX === undefined && 'nginx is not installed'

t.test('the blocks of all proxies lead the documents of the bridge to it', async (t) => {
  const lines = guide.split('\n').filter((line) => /oauth-protected-resource\|oauth-/.test(line))
  t.equal(lines.length, 3)
  for (const line of lines) {
    const [, pattern = ''] = /(\^\/\(\(\[\^\/\]\+.*\(\/\|\$\))/.exec(line) ?? []
    const leads = new RegExp(pattern)
    for (const path of RESERVED) t.equal(leads.test(path), path.startsWith('/.well-known/'), `${path} by ${line}`)
    for (const path of ['/mcp', '/x/mcp', '/mcp/server-card', '/x/sse', '/message', '/sign-in/x', '/oauth/token'])
      t.match(path, leads)
  }
})

/** nginx at a port, with the block of the guide, for a bridge at an address. Without TLS, which is not about paths. */
async function startNginx(t: Test, port: number, bridge: string, more = ''): Promise<string> {
  const folder = temporaryFolder(t)
  const moved = block
    .replace('listen 443 ssl;', `listen 127.0.0.1:${port};`)
    .replace(/^ *ssl_.*\n/gm, '')
    .replace('http://127.0.0.1:8080', new URL(bridge).origin)
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${join(folder, name)};`,
  )
  const http = `http { access_log off; ${more} ${temporary.join(' ')}\n${moved} }`
  const file = join(folder, 'nginx.conf')
  writeFileSync(
    file,
    `daemon off; master_process off; pid ${join(folder, 'pid')}; error_log ${join(folder, 'log')}; events {}\n${http}`,
  )
  const nginx = spawn(String(NGINX), ['-c', file, '-e', join(folder, 'log')], { stdio: 'ignore' })
  t.teardown(async () => {
    if (nginx.exitCode === null && nginx.kill()) await once(nginx, 'exit')
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

t.test('both eras, HTTP+SSE and each server are reached through nginx, and nothing else is', { skip }, async (t) => {
  const legacy = await LegacyHttp.start(t)
  const port = await freePort()
  const publicUrl = `http://127.0.0.1:${port}`
  const { url } = await startBridge(t, { url: legacy.url }, { publicUrl, trustedProxies: ['127.0.0.1', '::1'] })
  const origin = await startNginx(t, port, url)
  for (const path of ['/mcp', '/test/mcp']) {
    t.match((await call(origin + path, 'tools/call', { name: 'echo', arguments: {} })).message, { result: {} }, path)
    // Its first event would wait in a buffer.
    const client = await SseClient.open(origin + path, '2024-11-05')
    t.match(await client.request('tools/call', { name: 'echo', arguments: {} }), { result: { content: [{}] } }, path)
    client.stream.leave()
  }
  const large = 'x'.repeat(3_000_000)
  t.equal((await call(`${origin}/mcp`, 'tools/call', { name: 'echo', arguments: { large } })).status, 200)
  for (const path of ['/healthz', '/metrics', '/nothing', '/mcpx', '/.well-known/acme-challenge/x'])
    t.match((await fetch(origin + path)).status, 404, path)
  t.match(await (await fetch(`${origin}/healthz`)).text(), /nginx/, 'of nginx, not of the bridge')
})

t.test('clients and people find where to sign in through nginx', { skip }, async (t) => {
  const company = await startCompany(t)
  const [bridge] = company.bridges
  const origin = await startNginx(t, await freePort(), String(bridge?.url))
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
