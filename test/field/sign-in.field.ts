/**
 * mcp-remote signs in at the bridge, with a browser of its own choice: in front of authorization servers of two libraries, and
 * through the facade in front of a provider that behaves as Entra does. Run by `npm run test:field`.
 */
import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { execPath } from 'node:process'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { Entra } from '../support/entra.js'
import { temporaryFolder } from '../support/folder.js'
import { freePort } from '../support/free-port.js'
import { startGuarded, text } from '../support/guarded-bridge.js'
import { Oidc } from '../support/oidc.js'
import { CALLBACK, kits, provider, signedIn } from '../support/sdk-sign-in.js'
import { legacyClient } from './clients.js'
import { install, type Package, programOf, registryProblem } from './install.js'
import { OAuth2Server } from './oauth2-server.js'

const MCP_REMOTE: Package = { name: 'mcp-remote', version: '0.15.1' }
const problem = (await registryProblem()) ?? false
const browser = fileURLToPath(new URL('../fixtures/willing-browser.mjs', import.meta.url))

/** A client behind mcp-remote, whose browser goes where it is sent. */
async function remote(t: Test, url: string, port: number) {
  const folder = temporaryFolder(t)
  const program = join(folder, 'browser.sh')
  writeFileSync(program, `#!/bin/sh\nexec "${execPath}" "${browser}" "$1"\n`)
  chmodSync(program, 0o700)
  const env = { MCP_REMOTE_CONFIG_DIR: folder, BROWSER: program }
  return legacyClient(t, {
    command: execPath,
    args: [await programOf(await install(MCP_REMOTE), 'mcp-remote'), url, String(port)],
    env,
  })
}

t.test('mcp-remote registers, signs its person in, and calls', { skip: problem }, async (t) => {
  const oidc = await Oidc.start(t, { jwt: true, scopes: 'mcp' })
  for (const path of ['/mcp', '/test/mcp']) {
    const { url } = await startGuarded(t, { auth: { issuers: [{ issuer: oidc.issuer }], scopes: ['mcp'] } })
    const { ask } = await remote(t, new URL(path, url).href, await freePort())
    t.match(await ask('tools/call', { name: 'read', arguments: {} }), text('read'), path)
  }
  t.same(
    oidc.of('/reg').map(({ status }) => status),
    [201, 201],
  )
  t.ok(oidc.grants('authorization_code').every(({ params }) => params.has('resource')))
})

t.test('mcp-remote signs in at a provider that behaves as Entra does', { skip: problem }, async (t) => {
  const port = await freePort()
  const entra = await Entra.start(t, [`http://localhost:${port}/oauth/callback`])
  const facade = { clientId: Entra.id, clientSecret: Entra.secret, scopes: [`api://${Entra.id}/.default`] }
  const issuers = [
    { issuer: entra.issuer, audience: Entra.id, groups: 'roles', map: { 'Mcp.Admin': ['write'] }, facade },
  ]
  const { url } = await startGuarded(t, { auth: { issuers, scopes: ['mcp'] } }, { scopes: { write: ['write'] } })
  const { ask } = await remote(t, url, port)
  t.match(await ask('tools/call', { name: 'write', arguments: {} }), text('written'))
  t.ok(entra.asked.every(({ params }) => !params.has('resource')))
})

/** Tokens of this server are no JWTs, and say nothing of the endpoint. */
const introspected = ({ issuer }: OAuth2Server) => ({
  issuer,
  audience: 'api://bridge',
  introspection: OAuth2Server.bridge,
})

for (const [kit, make] of Object.entries(kits))
  t.test(`${kit} signs in at an authorization server of another library`, { skip: problem }, async (t) => {
    const server = await OAuth2Server.start(t)
    const { url, log } = await startGuarded(t, { auth: { issuers: [introspected(server)], scopes: ['mcp'] } })
    const person = provider()
    const client = await signedIn(t, make, url, person)
    t.match(await client.callTool({ name: 'read', arguments: {} }), text('read'))
    const before = person.kept['tokens'] as { refresh_token: string }
    person.kept['tokens'] = { ...before, access_token: 'expired' }
    t.match(await client.callTool({ name: 'read', arguments: {} }), text('read'))
    t.not((person.kept['tokens'] as typeof before).refresh_token, before.refresh_token, 'renewed')
    t.match(JSON.stringify(log), /says that it is not active/)
  })

t.test('mcp-remote signs in at an authorization server of another library', { skip: problem }, async (t) => {
  const server = await OAuth2Server.start(t)
  const { url } = await startGuarded(t, { auth: { issuers: [introspected(server)], scopes: ['mcp'] } })
  const { ask } = await remote(t, url, await freePort())
  t.match(await ask('tools/call', { name: 'read', arguments: {} }), text('read'))
})

t.test('the facade stands before an authorization server of another library', { skip: problem }, async (t) => {
  const server = await OAuth2Server.start(t)
  server.register({ id: 'registered', redirectUris: [CALLBACK] })
  const issuer = { ...introspected(server), facade: { clientId: 'registered', scopes: ['mcp'] } }
  const { url } = await startGuarded(t, { auth: { issuers: [issuer], scopes: ['mcp'] } })
  const client = await signedIn(t, kits['SDK v2'], url, provider())
  t.match(await client.callTool({ name: 'read', arguments: {} }), text('read'))
  t.notOk(server.asked.includes('/registration'))
})
