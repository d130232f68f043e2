/** The recipes of docs/identity-providers.md, each with a token that has the claims which its identity provider documents. */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { Verifier } from '../../src/services/oauth/server/verifier.js'
import { settingsOf } from '../support/bridge.js'
import { TokenIssuer } from '../support/token-issuer.js'

type Json = Record<string, unknown>

const page = readFileSync(new URL('../../docs/identity-providers.md', import.meta.url), 'utf8')
const recipes = new Map(
  [...page.matchAll(/^### (\w+)\n(?:(?!^#).*\n)*?```json\n(.+)\n```/gm)].map(([, name = '', json = '']) => [
    name,
    JSON.parse(json) as Json,
  ]),
)

/** Claims and headers as the providers document them; `wrong` is a token of the same provider for something else. */
const tokens: Record<string, { claims: Json; header?: Json; scopes: string[]; wrong: Json }> = {
  Keycloak: {
    claims: {
      typ: 'Bearer',
      azp: 'claude',
      aud: ['https://mcp.example.com', 'account'],
      sub: '3f8a3a2e-1b7a-4d3c-9c57-0a4f9b7d1e11',
      scope: 'openid mcp',
      realm_access: { roles: ['offline_access', 'mcp-admins'] },
      acr: '1',
      sid: 'x',
    },
    header: { typ: 'JWT' },
    scopes: ['mcp', 'openid', 'write'],
    wrong: { aud: 'account' },
  },
  Auth0: {
    claims: {
      sub: 'auth0|5f7c8ec7c33c6c004bbafe82',
      aud: ['https://mcp.example.com', 'https://tenant.auth0.com/userinfo'],
      azp: 'my_client_id',
      scope: 'openid mcp',
    },
    scopes: ['mcp', 'openid'],
    wrong: { aud: ['https://tenant.auth0.com/userinfo'] },
  },
  Okta: {
    claims: {
      ver: 1,
      aud: 'https://mcp.example.com',
      cid: '0oabc',
      uid: '00ujc',
      scp: ['openid', 'mcp'],
      sub: 'alice@example.com',
      groups: ['Everyone', 'mcp-admins'],
    },
    header: { typ: undefined },
    scopes: ['mcp', 'openid', 'write'],
    wrong: { aud: 'api://default' },
  },
  Entra: {
    claims: {
      aud: 'APPLICATION',
      azp: '04b07795-8ddb-461a-bbee-02f9e1bf7b46',
      azpacr: '0',
      oid: 'x',
      tid: 'y',
      sub: 'AAAAAAAAAAAAAAAAAAAAAIkzqFVrSaSaFHy782bbtaQ',
      scp: 'mcp',
      roles: ['Mcp.Admin'],
      ver: '2.0',
      aio: 'z',
      rh: 'r',
      uti: 'u',
    },
    header: { typ: 'JWT' },
    scopes: ['mcp', 'write'],
    wrong: { aud: '00000003-0000-0000-c000-000000000000' },
  },
  Cognito: {
    claims: {
      sub: 'aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee',
      'cognito:groups': ['mcp-admins'],
      client_id: 'APPLICATION',
      token_use: 'access',
      scope: 'openid mcp',
      username: 'alice',
    },
    header: { typ: undefined },
    scopes: ['mcp', 'openid', 'write'],
    wrong: { client_id: 'another' },
  },
  ADFS: {
    claims: {
      iss: 'http://adfs.example.com/adfs/services/trust',
      aud: 'microsoft:identityserver:APPLICATION',
      sub: 'AAAA=',
      appid: 'APPLICATION',
      apptype: 'Public',
      authmethod: 'urn:oasis:names:tc:SAML:2.0:ac:classes:PasswordProtectedTransport',
      scp: 'openid',
      ver: '1.0',
      group: 'mcp-admins',
    },
    header: { typ: 'JWT' },
    scopes: ['openid', 'write'],
    wrong: { aud: 'microsoft:identityserver:ANOTHER' },
  },
  Kubernetes: {
    claims: {
      aud: ['https://mcp.example.com'],
      sub: 'system:serviceaccount:shop:orders',
      nbf: Math.floor(Date.now() / 1_000),
      'kubernetes.io': { namespace: 'shop', serviceaccount: { name: 'orders', uid: 'x' } },
    },
    header: { typ: undefined },
    scopes: [],
    wrong: { aud: ['https://kubernetes.default.svc.cluster.local'] },
  },
}

t.test('every recipe has a token here', async (t) => {
  t.same([...recipes.keys()].sort(), Object.keys(tokens).sort())
})

for (const [name, { claims, header, scopes, wrong }] of Object.entries(tokens))
  t.test(`the recipe for ${name} accepts its tokens, and none for another resource`, async (t) => {
    const issuer = await TokenIssuer.start(t)
    const recipe = recipes.get(name) ?? {}
    if (name === 'ADFS') issuer.metadata = { access_token_issuer: claims['iss'] }
    const entry = { ...recipe, issuer: issuer.url, ...('jwksUri' in recipe && { jwksUri: `${issuer.url}/jwks` }) }
    const publicUrl = 'https://mcp.example.com'
    const { auth } = settingsOf({ mcpServers: { test: { command: 'x' } }, publicUrl, auth: { issuers: [entry] } })
    const verifier = new Verifier({ issuers: auth?.issuers ?? [] })
    const at = new Set([`${publicUrl}/mcp`])
    const verified = await verifier.verify(await issuer.token(claims, header), at)
    t.same('why' in verified ? verified : [...verified.grant.scopes].sort(), scopes)
    t.match(await verifier.verify(await issuer.token({ ...claims, ...wrong }, header), at), { why: /^expected/ })
    t.ok('jwksUri' in recipe ? !issuer.asked.some((path) => path.includes('well-known')) : true)
  })
