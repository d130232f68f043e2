/** Signing in with a real authorization server, from the first refusal to a token that it takes for its own. */
import { readdirSync, statSync } from 'node:fs'
import t from 'tap'
import { Oidc } from '../support/oidc.js'
import { bearer, Protected, signingIn } from '../support/signing-in.js'

t.test('a user signs in once, and the token is for this server, from its authorization server', async (t) => {
  const oidc = await Oidc.start(t)
  const server = await Protected.start(t, oidc.issuer)
  const { account, visits, folder, unauthorized } = signingIn(t, { server })
  t.equal(await account.authorization(new AbortController().signal), undefined)
  const header = await unauthorized(undefined, server.challenge(', scope="mcp:read"'))
  t.match(await oidc.introspect(bearer(header)), { active: true, aud: server.url, scope: 'mcp:read' })
  t.equal(await account.authorization(new AbortController().signal), header)
  t.equal(visits.length, 1)
  t.match(await visits[0], { status: 200, page: /Signed in/ })
  t.equal(oidc.of('/reg').length, 1)
  const [name = ''] = readdirSync(folder)
  t.match(name, /^[0-9a-f]{64}\.json$/)
  t.equal(statSync(`${folder}/${name}`).mode & 0o777, 0o600)
  t.equal(statSync(folder).mode & 0o777, 0o700)
})
