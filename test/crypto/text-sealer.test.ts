/** Sealed cursors and states that clients keep for a group. */
import fc from 'fast-check'
import t from 'tap'
import { newKey } from '../../src/base/crypto/seal.js'
import { TextSealer } from '../../src/base/crypto/text-sealer.js'

const carrier = new TextSealer([newKey()], 'test')

t.test('returns fields and the text of a server unchanged', async () => {
  fc.assert(
    fc.property(fc.option(fc.string({ unit: 'binary', maxLength: 100 }), { nil: undefined }), (text) => {
      const given = text === undefined ? undefined : JSON.stringify(text)
      const opened = carrier.open(carrier.seal({ a: 'b', n: 1 }, given))
      return opened?.fields['a'] === 'b' && opened.fields['n'] === 1 && opened.text === given
    }),
  )
})

t.test('seals a long text of a server', async (t) => {
  const long = JSON.stringify('x'.repeat(100_000))
  t.equal(carrier.open(carrier.seal({}, long))?.text, long)
})

t.test('refuses a text that was changed, truncated, extended or sealed with another key', async (t) => {
  const carried = JSON.parse(carrier.seal({ a: 'b' }, '"theirs"')) as string
  const bare = JSON.parse(carrier.seal({ a: 'b' }, undefined)) as string
  const wrong: unknown[] = [
    carried.replace('theirs', 'others'),
    carried.replace('.theirs', ''),
    `${bare}.theirs`,
    `${carried}x`,
    JSON.parse(new TextSealer([newKey()], 'test').seal({ a: 'b' }, '"theirs"')),
    '',
    'a.b.c.d',
    5,
    null,
  ]
  for (const one of wrong) t.equal(carrier.open(JSON.stringify(one)), undefined, String(one))
  for (let at = 0; at < carried.length; at += 7) {
    const flipped = carried.slice(0, at) + (carried[at] === 'A' ? 'B' : 'A') + carried.slice(at + 1)
    if (flipped !== carried) t.equal(carrier.open(JSON.stringify(flipped)), undefined, `at ${at}`)
  }
})

t.test('refuses a text that was sealed for another purpose', async (t) => {
  const keys = [newKey()]
  const carried = new TextSealer(keys, 'cursor').seal({ a: 'b' }, undefined)
  t.equal(new TextSealer(keys, 'state').open(carried), undefined)
})
