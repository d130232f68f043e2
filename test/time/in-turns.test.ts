/** Long work is done in several turns of the event loop. */
import t from 'tap'
import { inChunks, inTurns } from '../../src/base/time/in-turns.js'

/** Items that take a millisecond each. */
function* slow(count: number): Generator<number> {
  for (let item = 0; item < count; item++) {
    const until = performance.now() + 1
    while (performance.now() < until);
    yield item
  }
}

t.test('yields between some items, and keeps all items in order', async (t) => {
  let turns = 0
  let isOver = false
  const turn = () => {
    turns++
    if (!isOver) setImmediate(turn)
  }
  setImmediate(turn)
  const items: number[] = []
  for await (const item of inTurns(slow(60))) items.push(item)
  isOver = true
  t.same(
    items,
    Array.from({ length: 60 }, (_, item) => item),
  )
  t.ok(turns >= 5, `${turns} turns`)
})

t.test('the work ends when its reader stops', async (t) => {
  let made = 0
  const items = (function* () {
    try {
      for (;;) yield made++
    } finally {
      made = -1
    }
  })()
  for await (const item of inTurns(items)) if (item === 3) break
  t.equal(made, -1)
})

t.test('joins small pieces of text', async (t) => {
  const text = 'x'.repeat(1_000)
  const pieces = Array.from({ length: 200 }, () => text)
  const chunks: string[] = []
  for await (const chunk of inChunks(inTurns(pieces))) chunks.push(chunk)
  t.equal(chunks.join(''), pieces.join(''))
  t.ok(chunks.length < 10)
  for await (const _chunk of inChunks(inTurns([]))) t.fail('there is nothing')
})
