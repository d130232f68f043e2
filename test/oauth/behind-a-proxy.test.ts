/** Metadata and challenges behind a proxy that has a path of its own for the bridge: all that they name leads back to them. */
import { createServer, request as forward } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { issuerMetadataPlaces, resourceMetadataPlaces } from '../../src/services/oauth/well-known.js'
import { startGuarded } from '../support/guarded-bridge.js'
import { listenUntilEnd } from '../support/listen-until-end.js'
import { call, send } from '../support/modern.js'

type Json = Record<string, unknown>

/** A proxy that removes a path from what it passes on, but for well-known addresses, which have to stay as they are. */
async function startProxy(t: Test, prefix: string) {
  let target = ''
  const server = createServer((request, response) => {
    const path = request.url ?? ''
    const removed = path.startsWith('/.well-known/') ? path : path.slice(prefix.length)
    const { hostname, port } = new URL(target)
    // As proxies do that hide where they are.
    const headers = { ...request.headers, host: `${hostname}:${port}`, 'x-forwarded-host': 'evil.example' }
    const passed = forward({ hostname, port, path: removed, method: request.method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 0, answer.headers)
      answer.pipe(response)
    })
    passed.on('error', () => response.destroy())
    request.pipe(passed)
  })
  await listenUntilEnd(t, server)
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    passTo: (url: string) => {
      target = url
    },
  }
}

const SERVERS = ['test', 'stock']
const groups = { team: { servers: SERVERS } }
const issuer = { issuer: 'http://127.0.0.1:9' }
const facade = { ...issuer, facade: { clientId: 'client' } }

/** The path that the proxy removes, what `publicUrl` has behind the origin, and the options of the bridge. */
const rows: [name: string, prefix: string, publicPath: string, settings: Json][] = [
  ['no path', '', '', {}],
  ['no path, and a slash', '', '/', {}],
  ['a path', '/bridge', '/bridge', {}],
  ['a path and a slash', '/bridge', '/bridge/', {}],
  ['two segments', '/a/b', '/a/b', {}],
  ['a path that is the name of a server', '/test', '/test', {}],
  ['the path of the endpoint', '', '/mcp', {}],
  ['the path of the endpoint behind another', '/bridge', '/bridge/mcp', {}],
  ['a group', '/bridge', '/bridge', { groups }],
]

for (const [name, prefix, publicPath, settings] of rows)
  t.test(`with ${name} in publicUrl, each 401 leads to the metadata of its address, to the byte`, async (t) => {
    const proxy = await startProxy(t, prefix)
    const auth = { issuers: [issuer], scopes: ['mcp'] }
    const { url } = await startGuarded(t, { auth, publicUrl: proxy.origin + publicPath, ...settings }, {}, SERVERS)
    proxy.passTo(url)
    const served = 'groups' in settings ? ['/team/mcp', '/test/mcp'] : ['/mcp', '/test/mcp', '/stock/mcp']
    for (const path of [...served, ...served.map((one) => one.replace(/mcp$/, 'sse'))]) {
      const resource = proxy.origin + prefix + path
      const isStream = path.endsWith('sse')
      const { status, headers } = isStream
        ? await send('GET', resource, undefined, { accept: 'text/event-stream' })
        : await call(resource, 'tools/list')
      const [place = ''] = resourceMetadataPlaces(resource)
      t.same([status, headers['www-authenticate']], [401, `Bearer resource_metadata="${place}", scope="mcp"`], path)
      const document = await send('GET', place, undefined, {})
      t.match(document.message, { resource, authorization_servers: [issuer.issuer] }, path)
    }
  })

for (const [name, prefix, publicPath] of rows.slice(0, -1))
  t.test(`with ${name} in publicUrl, the facade is where its metadata say`, async (t) => {
    const proxy = await startProxy(t, prefix)
    const { url } = await startGuarded(t, { auth: { issuers: [facade] }, publicUrl: proxy.origin + publicPath })
    proxy.passTo(url)
    const [place = ''] = resourceMetadataPlaces(`${proxy.origin}${prefix}/mcp`)
    const { message } = await send('GET', place, undefined, {})
    const [server = ''] = message['authorization_servers'] as string[]
    t.equal(server, `${proxy.origin}${prefix}/oauth`)
    const [own = ''] = issuerMetadataPlaces(server)
    for (const at of [own, `${proxy.origin}/.well-known/oauth-authorization-server`]) {
      const metadata = (await send('GET', at, undefined, {})).message
      t.equal(metadata['issuer'], server, at)
      const body = JSON.stringify({ redirect_uris: ['http://localhost/callback'] })
      const json = { 'content-type': 'application/json' }
      const registered = await send('POST', String(metadata['registration_endpoint']), body, json)
      t.match(registered.message, { client_id: 'client' })
    }
  })
