/** How to sign in to servers that discovery has found: nobody has chosen them, so the guard applies to their own hosts, too. */
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { discover } from '../../src/services/discovery/steps.js'
import { temporaryFolder } from '../support/folder.js'
import { HOST, makeWorld } from '../support/found.js'
import { personParts } from '../support/sign-in-parts.js'

/** A server at a host of the network that refuses everybody, and what discovery reaches it with. */
async function behind(t: Test, metadata: (origin: string) => object) {
  const world = await makeWorld(t)
  const { origin, pages, url } = world
  const asked: string[] = []
  pages['/mcp'] = ((_request: unknown, response: ServerResponse) => {
    asked.push('/mcp')
    response.writeHead(401, { 'www-authenticate': 'Bearer' }).end()
  }) as never
  pages['/.well-known/oauth-protected-resource/mcp'] = ((_request: unknown, response: ServerResponse) => {
    asked.push('/.well-known/oauth-protected-resource/mcp')
    response.setHeader('content-type', 'application/json').end(JSON.stringify({ resource: url, ...metadata(origin) }))
  }) as never
  const { signIn, folder } = personParts(t, { folder: join(temporaryFolder(t), 'tokens') })
  const discovery = world.discovery({ discover: [url] }, { signIn })
  return { world, asked, folder, look: () => discover([url], discovery.parts) }
}

t.test('checks each address of the host of a discovered server', async (t) => {
  const { world, asked, look } = await behind(t, (origin) => ({ authorization_servers: [origin] }))
  let asks = 0
  // The server is where it may be when it is met, and elsewhere on this machine when it is asked for its metadata.
  world.resolve.current = (host) => {
    if (host === HOST && asked.length > 0) asks++
    return asks > 0 ? ['127.0.0.2'] : ['127.0.0.1']
  }
  const { servers } = await look()
  t.match(servers, [{ failure: { reason: 'sign-in' }, signIn: undefined }])
  t.match(
    servers[0]?.steps.find(({ step }) => step === 'sign-in'),
    { ok: false, message: /not contacted: .*resolves to 127\.0\.0\.2/ },
  )
  t.notOk(asked.includes('/.well-known/oauth-protected-resource/mcp'))
})

t.test('does not request a private issuer that a discovered server names', async (t) => {
  const { look } = await behind(t, () => ({ authorization_servers: ['https://10.1.2.3'] }))
  const { servers } = await look()
  t.match(
    servers[0]?.steps.find(({ step }) => step === 'sign-in'),
    { ok: false, message: /oauth\.allow/ },
  )
  t.match(servers, [{ signIn: undefined, introspected: undefined }])
})
