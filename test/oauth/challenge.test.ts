import fc from 'fast-check'
import t from 'tap'
import { readChallenges, wantedBy } from '../../src/services/oauth/challenge.js'

const wanted = (...lines: string[]) => wantedBy(readChallenges(lines))
const plain = (...lines: string[]) =>
  readChallenges(lines).map(({ scheme, params }) => [scheme, Object.fromEntries(params)])

t.test('reads challenges in any spelling', async (t) => {
  t.same(plain('Bearer'), [['bearer', {}]])
  t.same(plain('Bearer realm="a, b", scope=read'), [['bearer', { realm: 'a, b', scope: 'read' }]])
  t.same(plain('bearer RESOURCE_METADATA = "https://a/b?c=d"'), [['bearer', { resource_metadata: 'https://a/b?c=d' }]])
  t.same(plain('Bearer error="say \\"no\\""'), [['bearer', { error: 'say "no"' }]])
  t.same(plain('Basic realm="x", Bearer scope="a b", error=invalid_token, DPoP algs="ES256"'), [
    ['basic', { realm: 'x' }],
    ['bearer', { scope: 'a b', error: 'invalid_token' }],
    ['dpop', { algs: 'ES256' }],
  ])
  t.same(plain('Negotiate abc==, Bearer scope="a"'), [
    ['negotiate', {}],
    ['bearer', { scope: 'a' }],
  ])
  t.same(plain('Basic realm="x"', 'Bearer'), [
    ['basic', { realm: 'x' }],
    ['bearer', {}],
  ])
  t.same(plain('Bearer scope="a", scope="b"'), [['bearer', { scope: 'a' }]], 'the first of two')
  t.same(plain('Bearer scope="a'), [['bearer', {}]], 'what is not closed is not read')
  t.same(plain('', ' , ,', '="x"'), [])
})

t.test('the requirements are those of token schemes, whichever of them', async (t) => {
  const metadata = 'https://a.example/.well-known/oauth-protected-resource'
  t.same(wanted(`Basic scope="no", Bearer resource_metadata="${metadata}"`, 'DPoP scope="a b a", error="x"'), {
    metadata,
    scopes: ['a', 'b'],
    error: 'x',
    dpop: false,
  })
  t.same(wanted('Basic realm="x"'), { metadata: undefined, scopes: undefined, error: undefined, dpop: false })
  t.equal(wanted('DPoP algs="ES256"').dpop, true, 'a key is wanted only where a plain token is not enough')
  t.same(wanted('Bearer scope=""').scopes, [])
})

t.test('reads any text of a challenge to its end', async () => {
  fc.assert(
    fc.property(fc.array(fc.string({ unit: 'binary', maxLength: 400 }), { maxLength: 5 }), (lines) => {
      readChallenges(lines)
    }),
  )
  const long = 'Bearer '.repeat(100_000) + ','.repeat(100_000)
  readChallenges([long, `Bearer x="${'\\'.repeat(20_001)}`])
})

t.test('reads a well-formed challenge without loss', async () => {
  const token = fc.stringMatching(/^[a-z][a-z0-9_-]{0,12}$/)
  const value = fc.string({ unit: 'grapheme-ascii', maxLength: 40 })
  const challenge = fc.record({
    scheme: token,
    params: fc.dictionary(token, value, { maxKeys: 4, noNullPrototype: true }),
  })
  fc.assert(
    fc.property(fc.array(challenge, { minLength: 1, maxLength: 4 }), (challenges) => {
      const text = challenges
        .map(({ scheme, params }) => {
          const written = Object.entries(params).map(([key, one]) => `${key}="${one.replace(/["\\]/g, '\\$&')}"`)
          return `${scheme} ${written.join(', ')}`
        })
        .join(', ')
      const read = plain(text)
      return JSON.stringify(read) === JSON.stringify(challenges.map(({ scheme, params }) => [scheme, params]))
    }),
  )
})
