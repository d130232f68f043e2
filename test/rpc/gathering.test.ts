/** Collecting pieces of bytes: the bytes stay the same however they are split, and small pieces are joined. */
import fc from 'fast-check'
import t from 'tap'
import { Gathering } from '../../src/base/rpc/gathering.js'

t.test('returns bytes in the order in which they were pushed', async () => {
  const sizes = fc.array(fc.oneof(fc.integer({ min: 1, max: 20 }), fc.integer({ min: 1, max: 70_000 })), {
    maxLength: 60,
  })
  fc.assert(
    fc.property(sizes, (lengths) => {
      let next = 0
      const pieces = lengths.map((length) => Uint8Array.from({ length }, () => next++ % 251))
      const gathering = new Gathering()
      for (const piece of pieces) gathering.push(piece)
      const all = Buffer.concat(pieces)
      if (gathering.length !== all.length) return false
      const same = Buffer.concat(gathering.take()).equals(all)
      return same && gathering.length === 0 && gathering.take().length === 0
    }),
  )
})

t.test('does not copy a single piece, or large ones, and joins many small ones', async (t) => {
  const gathering = new Gathering()
  const one = Buffer.from('one')
  gathering.push(one)
  t.equal(gathering.take()[0], one)
  const large = Buffer.alloc(10_000)
  gathering.push(one)
  gathering.push(large)
  t.equal(gathering.take()[1], large)
  for (let at = 0; at < 1_000_000; at++) gathering.push(Buffer.from('x'))
  t.ok(gathering.take().length < 20)
})
