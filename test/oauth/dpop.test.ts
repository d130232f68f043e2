/** Tokens that are bound to a key, for servers that ask for them (RFC 9449), with a real authorization server. */
import { decodeJwt, EmbeddedJWK, jwtVerify } from 'jose'
import t from 'tap'
import { Nonce } from '../../src/services/oauth/client/nonce.js'
import { startModern } from '../interop/modern-servers.js'
import { startBridge } from '../support/bridge.js'
import { Guarded } from '../support/guarded.js'
import { LegacyClient } from '../support/legacy-client.js'
import { call } from '../support/modern.js'
import { Oidc } from '../support/oidc.js'
import { startSdkV1 } from '../support/sdk-v1.js'
import { personParts } from '../support/sign-in-parts.js'
import { Protected, reasonOf, signingIn } from '../support/signing-in.js'

t.setTimeout(600_000)

const never = new AbortController().signal
const HOUR = 3_600_000
const text = (words: string) => ({ content: [{ type: 'text' as const, text: words }] })

t.test('a token is bound to a key of the account, which stays when the token is renewed', async (t) => {
  const oidc = await Oidc.start(t, { nonces: true })
  const server = await Protected.start(t, oidc.issuer)
  let ahead = 0
  const { account, store, unauthorized } = signingIn(t, { server, now: () => Date.now() + ahead })
  const challenge = server.challenge(', scope="mcp:read offline_access"').replace('Bearer', 'DPoP')
  const header = await unauthorized(undefined, challenge)
  t.match(header, /^DPoP /)
  const bound = await oidc.introspect(header.slice(5))
  t.match(bound, { active: true, token_type: 'DPoP', cnf: { jkt: String } })
  t.equal(oidc.grants('authorization_code').length, 2, 'the second time with the nonce that was asked for')
  ahead = 2 * HOUR
  const renewed = await account.authorization(never)
  t.not(renewed, header)
  t.same((await oidc.introspect(String(renewed).slice(5))).cnf, bound.cnf)
  const { token, key } = (await store.read(account.key)) ?? {}
  t.match([token?.type, key?.kty], ['dpop', 'EC'])
})

t.test('each request has a proof of its own, with the nonce that the server wants', async (t) => {
  const oidc = await Oidc.start(t)
  const server = await Protected.start(t, oidc.issuer)
  const { account, unauthorized } = signingIn(t, { server })
  const challenge = server.challenge(', scope="mcp:read"').replace('Bearer', 'DPoP')
  const authorization = await unauthorized(undefined, challenge)
  const request = { authorization, method: 'POST', url: `${server.url}?key=secret` }
  const one = await account.proof(request)
  const { payload, protectedHeader } = await jwtVerify(one, EmbeddedJWK, { typ: 'dpop+jwt' })
  t.match(payload, { htm: 'POST', htu: server.url, ath: String, jti: String })
  t.equal(payload['nonce'], undefined)
  t.notMatch(protectedHeader.jwk, { d: String }, 'nothing of the private key')
  const wanted = (nonce: string) =>
    account.refused(
      { status: 401, challenges: [`${challenge}, error="use_dpop_nonce"`], sent: authorization, nonce },
      never,
      false,
    )
  t.equal(await wanted('first'), authorization, 'the same token')
  t.equal(oidc.of('/token').length, 1, 'no other token is asked for')
  const two = decodeJwt(await account.proof(request))
  t.equal(two['nonce'], 'first')
  t.not(two.jti, payload.jti)
  account.nonce('second')
  t.equal(decodeJwt(await account.proof(request))['nonce'], 'second')
  account.nonce('not\nvisible')
  t.equal(decodeJwt(await account.proof(request))['nonce'], 'second')
  await account.logout()
  t.match(await reasonOf(account.proof(request)), { reason: 'sign_in_required' })
})

t.test('two requests at once that are refused for the same nonce are both sent again', async (t) => {
  const nonce = new Nonce()
  const refusal = { status: 401, challenges: ['DPoP error="use_dpop_nonce"'], sent: 'DPoP x', nonce: 'n' }
  for (let nth = 0; nth < 2; nth++) t.ok(nonce.isWanted(refusal as Parameters<Nonce['isWanted']>[0]))
  t.notOk(nonce.isWanted({ ...refusal, nonce: 'no\nnonce' } as Parameters<Nonce['isWanted']>[0]))
})

const servers = {
  legacy: (t: Parameters<typeof startSdkV1>[0]) =>
    startSdkV1(t, (one) => {
      one.registerTool('echo', { description: 'Echoes.' }, () => text('Hello'))
    }),
  modern: async (t: Parameters<typeof startSdkV1>[0]) => (await startModern(t))['Streamable HTTP'].upstream,
}

for (const era of ['legacy', 'modern'] as const)
  t.test(`a ${era} server that changes its nonce with each answer is used by clients of both eras`, async (t) => {
    const oidc = await Oidc.start(t, { nonces: true })
    const server = await Guarded.start(t, oidc, await servers[era](t), { dpop: true })
    const { signIn } = personParts(t)
    const { url, log } = await startBridge(t, { url: server.url }, {}, { signIn })
    const params = { name: 'echo', arguments: { message: 'Hello' } }
    for (let nth = 0; nth < 3; nth++)
      t.match((await call(url, 'tools/call', params)).message, { result: { content: [{ type: 'text' }] } })
    const legacy = await LegacyClient.open(url)
    for (let nth = 0; nth < 3; nth++)
      t.match((await legacy.call('echo', params.arguments)).message, { result: { content: [{ type: 'text' }] } })
    const answered = server.seen.filter(({ status }) => status >= 200 && status < 300)
    t.ok(
      answered.length > 6 && server.proofs.size >= answered.length,
      'a proof for each request, which the server checks',
    )
    t.notMatch(JSON.stringify(log), /eyJ[\w-]+\.eyJ/, 'no proof and no token in the log')
  })
