/** Tokens that are not accepted at an endpoint, each wrong in one way. */
import { createHmac, createPrivateKey, generateKeyPairSync } from 'node:crypto'
import { CompactEncrypt, type JWK } from 'jose'
import { rsaKeys } from './rsa-keys.js'
import type { TokenIssuer } from './token-issuer.js'

type Json = Record<string, unknown>

/** By what is wrong with them. `here` is the address of the endpoint, `elsewhere` an address that nobody may ask. */
export async function wrongTokens(
  issuer: TokenIssuer,
  here: string,
  elsewhere: string,
): Promise<[name: string, token: string][]> {
  const { host } = new URL(here)
  const other = rsaKeys()
  const elliptic = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const now = Math.floor(Date.now() / 1_000)
  const good: Json = { aud: here }
  const all = { iss: issuer.url, sub: 'alice', aud: here, iat: now, exp: now + 600 }
  const right = await issuer.token(good)
  const [head = '', body = '', signature = ''] = right.split('.')
  const pem = issuer.publicKey.export({ format: 'pem', type: 'spki' })
  const jwk = JSON.stringify(issuer.publicKey.export({ format: 'jwk' }))
  const hmac = (key: string | Buffer, alg = 'HS256') => {
    const text = `${part({ alg, kid: 'k1', typ: 'at+jwt' })}.${part(all)}`
    return `${text}.${createHmac('sha256', key).update(text).digest('base64url')}`
  }
  const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const own = other.publicKey.export({ format: 'jwk' }) as JWK
  const encrypted = await new CompactEncrypt(Buffer.from(JSON.stringify(all)))
    .setProtectedHeader({ alg: 'RSA-OAEP-256', enc: 'A256GCM', kid: 'k1' })
    .encrypt(issuer.publicKey)
  const weak = createPrivateKey(rsaKeys().privateKey.export({ format: 'pem', type: 'pkcs8' }))
  const claims = (more: Json, header: Json = {}) => issuer.token({ ...good, ...more }, header)
  const rows: [name: string, token: string | Promise<string>][] = [
    // The signature.
    ['alg none', issuer.raw({ alg: 'none' }, all, '')],
    ['alg None', issuer.raw({ alg: 'None' }, all, 'x')],
    ['alg none with the signature', `${part({ alg: 'none' })}.${body}.${signature}`],
    ['no alg', issuer.raw({ kid: 'k1' }, all)],
    ['HS256 by the public key as PEM', hmac(pem)],
    ['HS256 by the public key as JWK', hmac(jwk)],
    ['HS256 by nothing', hmac('')],
    ['an alg that is not configured', claims({}, { alg: 'RS512' })],
    ['RS256 in lower case', issuer.raw({ alg: 'rs256', kid: 'k1' }, all, signature)],
    ['no signature', `${head}.${body}.`],
    ['without the last part', `${head}.${body}`],
    ['the signature of another token', `${head}.${part({ ...all, sub: 'root' })}.${signature}`],
    ['a signature that is cut off', right.slice(0, -4)],
    ['a signature with a changed end', `${right.slice(0, -6)}AAAAAA`],
    ['another key with the kid', issuer.token(good, {}, other.privateKey)],
    ['another key without kid', issuer.token(good, { kid: undefined }, weak)],
    ['another kind of key', issuer.token(good, { alg: 'ES256' }, elliptic.privateKey)],
    ['a kid that is unknown', issuer.token(good, { kid: 'k2' }, other.privateKey)],
    ['a kid that is a path', issuer.token(good, { kid: '../../etc/passwd' }, other.privateKey)],
    ['a kid that every object has', issuer.token(good, { kid: '__proto__' }, other.privateKey)],
    ['a key in the header', issuer.token(good, { jwk: own, kid: undefined }, other.privateKey)],
    ['jku', issuer.token(good, { jku: `${elsewhere}/jwks` }, other.privateKey)],
    ['x5u', issuer.token(good, { x5u: `${elsewhere}/x5u` }, other.privateKey)],
    ['x5c', issuer.token(good, { x5c: ['AAAA'] }, other.privateKey)],
    ['crit', claims({}, { crit: ['exp'], exp: now })],
    ['crit that is known', claims({}, { crit: ['b64'], b64: true })],
    ['crit that is empty', issuer.raw({ alg: 'RS256', kid: 'k1', crit: [] }, all, signature)],
    // The form.
    ['a JWE', encrypted],
    ['text that is no token', 'not-a-token'],
    ['three parts that are no JSON', 'aaaa.bbbb.cccc'],
    ['claims that are a list', issuer.raw({ alg: 'RS256', kid: 'k1' }, '[]')],
    ['claims that are null', issuer.raw({ alg: 'RS256', kid: 'k1' }, 'null')],
    ['padding', `${right}=`],
    ['a space within', `${head}. ${body}.${signature}`],
    ['four parts', `${right}.x`],
    ['more than 16 KiB', claims({ x: 'x'.repeat(17_000) })],
    // What kind of token it is.
    ['typ of a DPoP proof', claims({}, { typ: 'dpop+jwt' })],
    ['typ of a logout token', claims({}, { typ: 'logout+jwt' })],
    ['typ that is no text', issuer.raw({ alg: 'RS256', kid: 'k1', typ: 1 }, all, signature)],
    ['an ID token by its nonce', claims({ nonce: 'n' }, { typ: 'JWT' })],
    ['an ID token by at_hash', claims({ at_hash: 'x' })],
    ['an ID token by c_hash', claims({ c_hash: 'x' })],
    ['an ID token of Keycloak', claims({ typ: 'ID' })],
    ['a refresh token of Keycloak', claims({ typ: 'Refresh' })],
    ['an ID token of Cognito', claims({ token_use: 'id' })],
    ['bound to a key', claims({ cnf: { jkt: 'x' } })],
    // The person.
    ['a sub with half of a surrogate pair', claims({ sub: 'alice\ud800' })],
    ['a sub that is the other half', claims({ sub: '\udfff' })],
    // The issuer.
    ['no iss', issuer.token({ ...good, iss: undefined })],
    ['iss of another', claims({ iss: elsewhere })],
    ['iss with a slash', claims({ iss: `${issuer.url}/` })],
    ['iss in upper case', claims({ iss: issuer.url.toUpperCase() })],
    ['iss as a list', claims({ iss: [issuer.url] })],
    ['iss that begins like it', claims({ iss: `${issuer.url}.evil.example` })],
    // The audience.
    ['no aud', issuer.token({})],
    ['an empty aud', claims({ aud: '' })],
    ['an empty list', claims({ aud: [] })],
    ['aud of another mount', claims({ aud: here.replace(/[^/]+(?=\/mcp$)/, 'another') })],
    ['the beginning of aud', claims({ aud: here.replace('/mcp', '') })],
    ['the origin alone', claims({ aud: new URL(here).origin })],
    ['aud with more behind it', claims({ aud: `${here}/more` })],
    ['aud with a slash', claims({ aud: `${here}/` })],
    ['aud in other case', claims({ aud: here.replace(/[^/]+(?=\/mcp$)/, (name) => name.toUpperCase()) })],
    [
      'aud of another scheme',
      claims({ aud: here.replace(/^https?/, (scheme) => (scheme === 'http' ? 'https' : 'http')) }),
    ],
    ['aud with a port', claims({ aud: here.replace(host, `${host}:443`) })],
    ['aud as an object', claims({ aud: { [here]: true } })],
    ['aud with a number in the list', claims({ aud: [here, 1] })],
    // The time.
    ['expired', claims({ exp: now - 61 })],
    ['no exp', issuer.token({ ...good, exp: undefined })],
    ['exp as a text', claims({ exp: String(now + 600) })],
    ['nbf in the future', claims({ nbf: now + 120 })],
    ['iat in the future', claims({ iat: now + 120 })],
    // Whose it is.
    ['no sub', issuer.token({ ...good, sub: undefined })],
    ['an empty sub', claims({ sub: '' })],
    ['sub as a number', claims({ sub: 1 })],
    ['an endless sub', claims({ sub: 's'.repeat(1_025) })],
  ]
  return Promise.all(rows.map(async ([name, token]) => [name, await token] as [string, string]))
}
