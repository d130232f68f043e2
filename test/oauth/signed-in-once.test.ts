/** People who sign in at the bridge by their client's own means, and nowhere else: what is behind it takes its own tokens. */
import { generateKeyPairSync } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createLocalJWKSet, exportJWK, type JWK, jwtVerify } from 'jose'
import t, { type Test } from 'tap'
import { parseListen } from '../../src/config/settings.js'
import { createBridge } from '../support/bridge.js'
import { Delegate, EXCHANGE, JWT_BEARER } from '../support/delegate.js'
import { temporaryFolder } from '../support/folder.js'
import { freePort } from '../support/free-port.js'
import { Guarded } from '../support/guarded.js'
import { text } from '../support/guarded-bridge.js'
import { call } from '../support/modern.js'
import { Oidc } from '../support/oidc.js'
import { kits, provider, signedIn } from '../support/sdk-sign-in.js'
import { startSdkV1 } from '../support/sdk-v1.js'
import { personParts } from '../support/sign-in-parts.js'
import { TokenIssuer } from '../support/token-issuer.js'

t.setTimeout(600_000)

type Json = Record<string, unknown>

const credentials = { clientId: 'bridge', clientSecret: 'CANARY-bridge-secret' }
const client = {
  client_id: 'bridge',
  client_secret: 'CANARY-bridge-secret',
  token_endpoint_auth_method: 'client_secret_basic',
  redirect_uris: [],
  response_types: [],
  grant_types: [EXCHANGE],
}

const hello = (t: Test) =>
  startSdkV1(t, (one) => {
    one.registerTool('greet', { description: 'Greets.' }, () => text('Hello'))
  })

async function serve(t: Test, auth: Json, mcpServers: Json, more: Json = {}) {
  const origin = `http://127.0.0.1:${await freePort()}`
  const settings = { publicUrl: origin, auth, mcpServers, ...more }
  const { signIn, opened } = personParts(t, { person: 'none' })
  const { bridge, log } = createBridge(t, {}, settings, { signIn })
  const listen = parseListen(`${origin}/mcp`)
  if (listen.kind !== 'http') throw new TypeError('not HTTP')
  await bridge.listen(listen)
  return { origin, log, opened }
}

for (const [kit, make] of Object.entries(kits))
  for (const how of ['token exchange', 'ID-JAG'])
    t.test(`${kit} signs in once, at the bridge, and calls two servers and their group by ${how}`, async (t) => {
      const oidc = await Oidc.start(t, { jwt: true, scopes: 'mcp mcp:read', exchanges: true, clients: [client] })
      const { keys } = await oidc.keys()
      const idp = await Delegate.start(t, { trusts: [{ issuer: oidc.issuer, keys }] })
      const other = await Delegate.start(t, { trusts: [idp] })
      const isExchange = how === 'token exchange'
      const authority = isExchange ? oidc : other
      const [one, two] = [
        await Guarded.start(t, authority, await hello(t)),
        await Guarded.start(t, authority, await hello(t)),
      ]
      const oauth = isExchange
        ? { grant: 'token-exchange', issuer: oidc.issuer, ...credentials }
        : { grant: 'id-jag', ...credentials, idp: { issuer: idp.issuer, ...credentials } }
      const { origin, log, opened } = await serve(
        t,
        { issuers: [{ issuer: oidc.issuer }], scopes: ['mcp'] },
        { one: { url: one.url, oauth }, two: { url: two.url, oauth } },
        { groups: { both: { servers: ['one', 'two'], prefix: 'always' } } },
      )
      const person = provider()
      const connected = await signedIn(t, make, `${origin}/both/mcp`, person)
      const { tools } = await connected.listTools()
      t.same(tools.map(({ name }) => name).sort(), ['one__greet', 'two__greet'])
      for (const { name } of tools) t.match(await connected.callTool({ name, arguments: {} }), text('Hello'))
      for (const { url, seen } of [one, two]) {
        const sent = [...new Set(seen.flatMap(({ authorization }) => authorization?.slice(7) ?? []))]
        t.equal(sent.length, 1, 'one token for all')
        t.match(await authority.introspect(sent[0] ?? ''), { active: true, sub: 'person', aud: url })
      }
      t.equal(isExchange ? oidc.grants(EXCHANGE).length : other.grants(JWT_BEARER).length, 2, 'one for each server')
      t.same(opened, [], 'nobody is sent to another page')
      const { access_token: own } = person.kept['tokens'] as { access_token: string }
      t.notMatch(JSON.stringify([log, one.seen, two.seen]), own, 'A33')
    })

t.test('a key that is written anew is used for the next exchange, without a restart', async (t) => {
  const company = await TokenIssuer.start(t)
  const file = join(temporaryFolder(t), 'key.json')
  const write = async (kid: string) => {
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    writeFileSync(file, JSON.stringify(await exportJWK(privateKey)))
    return { ...(await exportJWK(publicKey)), kid, alg: 'ES256', use: 'sig' }
  }
  const before = await write('one')
  const { client_secret: _, ...rest } = client
  const clients = [
    {
      ...rest,
      token_endpoint_auth_method: 'private_key_jwt',
      jwks: { keys: [before] },
      grant_types: ['client_credentials'],
    },
  ]
  const oidc = await Oidc.start(t, { clients })
  const server = await Guarded.start(t, oidc, await hello(t))
  const oauth = { grant: 'client_credentials', clientId: 'bridge', key: { file, alg: 'ES256' } }
  const { origin } = await serve(t, { issuers: [{ issuer: company.url }] }, { one: { url: server.url, oauth } })
  const headers = { authorization: `Bearer ${await company.token({ aud: `${origin}/mcp` })}` }
  const greet = async () =>
    (await call(`${origin}/mcp`, 'tools/call', { name: 'greet', arguments: {} }, { headers })).message
  t.match(await greet(), { result: text('Hello') })
  const after = await write('two')
  server.revoked.add(server.seen.at(-1)?.authorization?.slice(7) ?? '')
  await greet()
  const assertions = oidc.grants('client_credentials').map(({ params }) => params.get('client_assertion') ?? '')
  t.equal(assertions.length, 2)
  const isBy = (key: JWK, nth: number) =>
    jwtVerify(assertions[nth] ?? '', createLocalJWKSet({ keys: [key] })).then(
      () => true,
      () => false,
    )
  t.same([await isBy(before, 0), await isBy(after, 0), await isBy(after, 1)], [true, false, true])
})
