/** SHA-256 in the forms that keys, names and principals have. */
import { createHash } from 'node:crypto'
import t from 'tap'
import { digest, digestedPrincipal, sha256, shortDigest } from '../../src/base/crypto/digest.js'
import { shownPrincipal } from '../../src/base/texts/principal.js'

const TEXTS = ['', 'secret', 'ü\u0000"\\']

t.test('all forms are of one SHA-256 digest', async (t) => {
  for (const text of TEXTS) {
    const expected = createHash('sha256').update(text)
    const bytes = expected.digest()
    t.same(sha256(text), bytes)
    t.same(sha256(Buffer.from(text)), bytes, 'of bytes as of text')
    t.equal(digest(text), bytes.toString('base64url'))
    t.equal(shortDigest(text), bytes.toString('hex').slice(0, 32))
  }
})

t.test('principals of several kinds never meet, and that of a token is shortened where it is shown', async (t) => {
  const of = (['subject', 'forwarded', 'token'] as const).map((kind) => digestedPrincipal(kind, 'same'))
  t.same(
    of.map((principal) => principal.slice(0, 2)),
    ['j:', 'f:', 't:'],
  )
  t.equal(new Set(of).size, 3)
  const [, , token = ''] = of
  t.equal(shownPrincipal(token), token.slice(0, 14))
})

t.test('texts that differ in halves of surrogate pairs have different digests', async (t) => {
  const texts = ['\ud800', '\ud801', '\udfff', '\ufffd', 'a\ud800', '\ud800a', '\ud83d\ude00', '\ude00\ud83d']
  for (const made of [digest, shortDigest, (text: string) => sha256(text).toString('hex')])
    t.equal(new Set(texts.map(made)).size, texts.length)
  t.equal(digest('\ud83d\ude00'), digest(Buffer.from('\ud83d\ude00')), 'a whole pair is a character')
})
