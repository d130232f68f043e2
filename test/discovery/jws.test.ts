/** Signatures that are what they have to be; test/discovery/hostile-trust.slow.ts has those that are not. */
import { generateKeyPairSync } from 'node:crypto'
import t from 'tap'
import { type DocumentVersion, verifyManifest } from '../../src/services/discovery/trust/jws.js'
import { type PublisherKey, readPublicKey, readSigningKey } from '../../src/services/discovery/trust/keys.js'
import { bytesOf, DAY, manifestOf, NOW, publisherWith } from '../support/trust.js'

const ed = await publisherWith('ed25519')
const ec = await publisherWith('p256')
const bytes = bytesOf(manifestOf())

function verify(
  jws: Uint8Array | undefined,
  changes: { keys?: PublisherKey[]; last?: DocumentVersion; now?: number } = {},
) {
  const { keys = [ed.key, ec.key], last, now = NOW } = changes
  const keysOf = (publisher: string) => (publisher === 'acme.example' ? keys : [])
  return verifyManifest({ bytes, jws, keysOf, lastOf: () => last, now })
}

for (const [name, publisher] of Object.entries({ EdDSA: ed, ES256: ec }))
  t.test(`accepts a manifest signed with ${name}`, async (t) => {
    const signed = await publisher.sign(bytes)
    const { id } = publisher.key
    t.match(await verify(signed), {
      trusted: true,
      publisher: 'acme.example',
      keyId: id,
      serial: 7,
      expires: NOW + DAY,
    })
    const header = JSON.parse(Buffer.from(String(signed).split('.')[0] ?? '', 'base64url').toString()) as object
    t.same(header, { alg: name, kid: id })
  })

t.test('the signature may end with a line break, as files do', async (t) => {
  for (const end of ['\n', '\r\n'])
    t.match(await verify(bytesOf(String(await ed.sign(bytes)) + end)), { trusted: true })
})

t.test('a publisher may have several keys while it replaces one', async (t) => {
  const other = await publisherWith('ed25519')
  t.match(await verify(await ed.sign(bytes), { keys: [other.key, ed.key] }), { keyId: ed.key.id })
  t.match(await verify(await other.sign(bytes), { keys: [other.key, ed.key] }), { keyId: other.key.id })
})

t.test('accepts the same document again, and a newer one', async (t) => {
  const jws = await ed.sign(bytes)
  const first = await verify(jws)
  if (!first.trusted) return t.fail(first.message)
  t.match(await verify(jws, { last: { serial: 7, digest: first.digest } }), { trusted: true })
  t.match(await verify(jws, { last: { serial: 6, digest: 'another' } }), { trusted: true })
})

t.test('accepts a signature from a clock that is off by a minute', async (t) => {
  const jws = await ed.sign(bytes)
  const cases: [number, object][] = [
    [NOW - DAY - 60_000, { trusted: true }],
    [NOW - DAY - 60_001, { trusted: false, reason: 'not-yet-valid' }],
    [NOW + DAY + 60_000, { trusted: true }],
    [NOW + DAY + 60_001, { trusted: false, reason: 'expired' }],
  ]
  for (const [now, expected] of cases) t.match(await verify(jws, { now }), expected)
})

t.test('reads keys from PEM and from JWK, with the same id', async (t) => {
  for (const { key, pair } of [ed, ec]) {
    const jwk = { ...pair.publicKey.export({ format: 'jwk' }), kid: 'mine', use: 'sig', alg: 'whatever' }
    t.same(await readPublicKey(JSON.stringify(jwk)), key)
    const secret = JSON.stringify(pair.privateKey.export({ format: 'jwk' }))
    t.equal((await readSigningKey(secret)).id, key.id)
  }
})

t.test('ignores a byte order mark before a key, which hides no private key', async (t) => {
  const spki = { type: 'spki', format: 'pem' } as const
  const pkcs8 = { type: 'pkcs8', format: 'pem' } as const
  const { key, pair } = ed
  for (const text of [pair.publicKey.export(spki) as string, JSON.stringify(pair.publicKey.export({ format: 'jwk' }))])
    t.same(await readPublicKey(`\ufeff${text}`), key)
  for (const text of [
    pair.privateKey.export(pkcs8) as string,
    JSON.stringify(pair.privateKey.export({ format: 'jwk' })),
  ]) {
    t.equal((await readSigningKey(`\ufeff${text}`)).id, key.id)
    await t.rejects(readPublicKey(`\ufeff${text}`), { message: /private key/ })
  }
})

t.test('refuses other keys, and private keys where public ones are expected', async (t) => {
  const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const p384 = generateKeyPairSync('ec', { namedCurve: 'P-384' })
  const x25519 = generateKeyPairSync('x25519')
  const spki = { type: 'spki', format: 'pem' } as const
  const pkcs8 = { type: 'pkcs8', format: 'pem' } as const
  const cases: [string, string][] = [
    ['RSA', rsa.publicKey.export(spki) as string],
    ['P-384', p384.publicKey.export(spki) as string],
    ['X25519', x25519.publicKey.export(spki) as string],
    ['a secret', '{"kty":"oct","k":"c2VjcmV0"}'],
    ['a private key in PEM', ed.pair.privateKey.export(pkcs8) as string],
    ['a private key as a JWK', JSON.stringify(ec.pair.privateKey.export({ format: 'jwk' }))],
    ['a certificate', '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n'],
    ['a point that is on no curve', JSON.stringify({ kty: 'EC', crv: 'P-256', x: 'A'.repeat(43), y: 'A'.repeat(43) })],
    ['an address', 'https://acme.example/key.pem'],
    ['nothing', ''],
  ]
  for (const [name, text] of cases) await t.rejects(readPublicKey(text), { name: 'KeyError' }, name)
  for (const text of [rsa.privateKey.export(pkcs8) as string, ed.pair.publicKey.export(spki) as string, '{}'])
    await t.rejects(readSigningKey(text), { name: 'KeyError' })
})
