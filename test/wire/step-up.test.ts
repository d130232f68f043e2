/** 403 `insufficient_scope`: who may do more with another token is told so, with the address where it is given. */
import type { ServerResponse } from 'node:http'
import t, { type Test } from 'tap'
import { startBridge } from '../support/bridge.js'
import { Guarded } from '../support/guarded.js'
import { startGuarded } from '../support/guarded-bridge.js'
import { LegacyClient } from '../support/legacy-client.js'
import { LegacyHttp } from '../support/legacy-http.js'
import { type Answer, call } from '../support/modern.js'
import { ModernHttp } from '../support/modern-http.js'
import { Oidc } from '../support/oidc.js'
import { personParts } from '../support/sign-in-parts.js'
import { TokenIssuer } from '../support/token-issuer.js'

type Json = Record<string, unknown>
type Arrived = { message?: Json | undefined }

const METADATA = '/.well-known/oauth-protected-resource'
const CHALLENGE = `Bearer error="insufficient_scope", scope="read write", resource_metadata="https://server.example${METADATA}/mcp", error_description="needs write"`
const SERVERS = {
  modern: (t: Test, override: (arrived: Arrived, response: ServerResponse) => boolean) =>
    ModernHttp.start(t, { override }),
  legacy: (t: Test, override: (arrived: Arrived, response: ServerResponse) => boolean) =>
    LegacyHttp.start(t, { override }),
}

/** A server that wants another scope for calls of `echo`, and what it has done. */
async function needy(t: Test, era: keyof typeof SERVERS) {
  const refused: unknown[] = []
  const { url } = await SERVERS[era](t, ({ message }, response) => {
    if (message?.['method'] !== 'tools/call') return false
    refused.push((message['params'] as Json)['name'])
    response.writeHead(403, { 'www-authenticate': CHALLENGE, 'content-type': 'text/plain' }).end('More scopes')
    return true
  })
  return { url, refused }
}

/** A call of each kind of client. */
async function callsOf(url: string, name: string, headers: Record<string, string>): Promise<[string, Answer][]> {
  const legacy = await LegacyClient.open(url, { headers })
  const old = await LegacyClient.open(url, { headers, revision: '2025-03-26' })
  return [
    ['modern', await call(url, 'tools/call', { name, arguments: {} }, { headers })],
    ['legacy', await legacy.call(name)],
    ['older', await old.call(name)],
  ]
}

for (const era of ['modern', 'legacy'] as const) {
  t.test(`a ${era} server that wants another scope of the client's own token says so to this client`, async (t) => {
    const [one, other] = [await needy(t, era), await needy(t, era)]
    const mcpServers = { one: { url: one.url }, other: { url: other.url } }
    const groups = { team: { servers: ['one'] }, bare: { servers: ['one'], prefix: 'never' } }
    const { url } = await startBridge(t, {}, { auth: { passthrough: true }, mcpServers, groups })
    const headers = { authorization: 'Bearer a-token-of-the-client-0123456789' }
    for (const path of ['/one/mcp', '/team/mcp', '/bare/mcp']) {
      const at = new URL(path, url).href
      for (const [who, answer] of await callsOf(at, 'echo', headers)) {
        const name = `${who} client, ${path}`
        t.equal(answer.status, 403, name)
        const expected = CHALLENGE.replace(
          /resource_metadata="[^"]*"/,
          `resource_metadata="${new URL(METADATA, url).href}${path}"`,
        )
        t.equal(answer.headers['www-authenticate'], expected, name)
        t.notOk('result' in answer.message, name)
      }
    }
    t.same(other.refused, [])
  })

  t.test(
    `a ${era} server in a group that wants another scope of the bridge is no reason for its clients to sign in`,
    async (t) => {
      const [one, other] = [await needy(t, era), await SERVERS[era](t, () => false)]
      const mcpServers = { one: { url: one.url, oauth: false }, other: { url: other.url } }
      const { url } = await startBridge(t, {}, { mcpServers, groups: { team: {} } })
      const at = new URL('/team/mcp', url).href
      for (const [who, answer] of await callsOf(at, 'one__echo', {})) {
        t.notOk(answer.headers['www-authenticate'], `${who} client`)
        t.not(answer.status, 403, `${who} client`)
        t.match(JSON.stringify(answer.message), /HTTP 403.*More scopes|More scopes/, `${who} client`)
      }
      for (const [who, answer] of await callsOf(at, 'other__echo', {})) t.match(answer.message, { result: {} }, who)
    },
  )
}

t.test('a tool of one server in a group that needs a scope is refused with the address of the group', async (t) => {
  const issuer = await TokenIssuer.start(t)
  const scopes = { write: ['files:write'] }
  const groups = { team: {}, pair: { servers: ['test', 'stock'] } }
  const auth = { issuers: [{ issuer: issuer.url }] }
  const { url, seen } = await startGuarded(t, { auth, groups }, { scopes }, ['test', 'stock'])
  for (const [path, name] of [
    ['/team/mcp', 'stock__write'],
    ['/pair/mcp', 'test__write'],
    ['/test/mcp', 'write'],
  ] as const) {
    const at = new URL(path, url).href
    const bearer = async (scope: string) => ({ authorization: `Bearer ${await issuer.token({ aud: at, scope })}` })
    for (const [who, answer] of await callsOf(at, name, await bearer('a'))) {
      t.equal(answer.status, 403, `${who} client, ${path}`)
      t.equal(
        answer.headers['www-authenticate'],
        `Bearer error="insufficient_scope", scope="a files:write", resource_metadata="${new URL(METADATA, url).href}${path}"`,
        `${who} client, ${path}`,
      )
    }
    t.equal(seen.length, 0, 'no tool ran')
    for (const [who, answer] of await callsOf(at, name, await bearer('a files:write')))
      t.match(answer.message, { result: { content: [{ text: 'written' }] } }, `${who} client, ${path}`)
    t.equal(seen.splice(0).length, 3)
  }
})

t.test(
  'a server in a group for which the bridge signs in gets a token with the missing scope, and its caller notices nothing',
  async (t) => {
    for (const era of ['modern', 'legacy'] as const) {
      const oidc = await Oidc.start(t)
      const target = await SERVERS[era](t, () => false)
      const scopeFor = ({ method }: { method?: string }) => (method === 'tools/call' ? 'mcp:write' : undefined)
      const guarded = await Guarded.start(t, oidc, target.url, { scopeFor })
      const other = await SERVERS[era](t, () => false)
      const mcpServers = { one: { url: guarded.url }, other: { url: other.url } }
      const { signIn, opened } = personParts(t)
      const { url } = await startBridge(t, {}, { mcpServers, groups: { team: {} } }, { signIn })
      for (const [who, answer] of await callsOf(new URL('/team/mcp', url).href, 'one__echo', {}))
        t.match(answer.message, { result: { content: [{ type: 'text' }] } }, `${who} client, ${era} server`)
      const scopes = opened.map((address) => new URL(address).searchParams.get('scope'))
      t.same(scopes, ['mcp:read offline_access', 'mcp:read mcp:write offline_access'], `${era} server`)
      t.notOk(
        other.received.some(({ headers }) => headers.authorization),
        'the other server has no part in it',
      )
    }
  },
)
