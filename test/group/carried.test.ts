/** What clients keep for a group: a text of a server with a seal. */
import fc from 'fast-check'
import t from 'tap'
import { Carrier } from '../../src/group/carried.js'
import { newKey } from '../../src/seal.js'

const carrier = new Carrier([newKey()], 'test')

t.test('fields and the text of a server come back as they were given', async () => {
  fc.assert(
    fc.property(fc.option(fc.string({ unit: 'binary', maxLength: 100 }), { nil: undefined }), (text) => {
      const given = text === undefined ? undefined : JSON.stringify(text)
      const opened = carrier.open(carrier.carry({ a: 'b', n: 1 }, given))
      return opened?.fields['a'] === 'b' && opened.fields['n'] === 1 && opened.text === given
    }),
  )
})

t.test('a text of a server may be long', async (t) => {
  const long = JSON.stringify('x'.repeat(100_000))
  t.equal(carrier.open(carrier.carry({}, long))?.text, long)
})

t.test('a text that was changed, cut off, added or sealed elsewhere is refused', async (t) => {
  const carried = JSON.parse(carrier.carry({ a: 'b' }, '"theirs"')) as string
  const bare = JSON.parse(carrier.carry({ a: 'b' }, undefined)) as string
  const wrong: unknown[] = [
    carried.replace('theirs', 'others'),
    carried.replace('.theirs', ''),
    `${bare}.theirs`,
    `${carried}x`,
    JSON.parse(new Carrier([newKey()], 'test').carry({ a: 'b' }, '"theirs"')),
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

t.test('what was sealed for one purpose cannot be opened for another', async (t) => {
  const keys = [newKey()]
  const carried = new Carrier(keys, 'cursor').carry({ a: 'b' }, undefined)
  t.equal(new Carrier(keys, 'state').open(carried), undefined)
})
