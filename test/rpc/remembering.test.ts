/** Caching by text: recently used entries stay, others are dropped, and no entry keeps a larger text in memory. */
import t from 'tap'
import { MAX_KEY, memoize, Recent } from '../../src/base/rpc/memoize.js'
import { detach } from '../../src/base/rpc/source.js'

t.test('a result for a text is computed once', async (t) => {
  let made = 0
  const judge = memoize((text) => `${text} ${++made}`)
  t.equal(judge('a'), 'a 1')
  t.equal(judge('b'), 'b 2')
  t.equal(judge('a'), 'a 1')
})

t.test('keeps a recently used result', async (t) => {
  const dropped: number[] = []
  const recent = new Recent<number>({ max: 3, dropped: (value) => dropped.push(value) })
  recent.set('stays', 0)
  for (let at = 1; at < 100; at++) {
    recent.set(`passes ${at}`, at)
    t.equal(recent.get('stays'), 0)
  }
  t.equal(recent.get('passes 1'), undefined)
  t.ok(dropped.length >= 99 - 6, 'at most two generations are kept')
  t.notOk(dropped.includes(0))
  t.equal(new Set(dropped).size, dropped.length, 'nothing is dropped twice')
})

t.test('does not keep a text that is too long', async (t) => {
  const dropped: number[] = []
  const recent = new Recent<number>({ dropped: (value) => dropped.push(value) })
  recent.set('x'.repeat(MAX_KEY), 1)
  recent.set('x'.repeat(MAX_KEY + 1), 2)
  t.equal(recent.get('x'.repeat(MAX_KEY)), 1)
  t.equal(recent.get('x'.repeat(MAX_KEY + 1)), undefined)
  t.same(dropped, [2])
})

t.test('a copy is the same text', async (t) => {
  for (const text of ['', 'a', 'of some length at least', 'also ✓ with others 世界'.repeat(20)])
    t.equal(detach(text), text)
  t.equal(detach(undefined), undefined)
})

t.test('parts of large texts that are stored do not keep the large texts in memory', async (t) => {
  const before = process.memoryUsage()
  const judge = memoize(() => 'judged')
  for (let at = 0; at < 100; at++) judge(`${'x'.repeat(500_000)}${at}${'y'.repeat(500_000)}`.slice(499_900, 500_100))
  const after = process.memoryUsage()
  const grown = after.heapUsed + after.external - before.heapUsed - before.external
  // If the texts were kept, this would be 100 MB; garbage is collected long before that.
  t.ok(grown < 60_000_000, `${grown} bytes more`)
})
