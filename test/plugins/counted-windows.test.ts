/** Counting in windows of a minute: here, or in a store that replicas share. */
import t from 'tap'
import { CountedWindows, WINDOW } from '../../src/clients/plugins/counted-windows.js'

t.test('a window ends a minute after its first count, and the next one begins with one', async (t) => {
  let now = 5
  const windows = new CountedWindows(undefined, () => now)
  t.same(await windows.count('a'), { current: 1, ttl: WINDOW })
  now += 20_000
  t.same(await windows.count('a'), { current: 2, ttl: WINDOW - 20_000 })
  t.same(await windows.count('b'), { current: 1, ttl: WINDOW })
  now += WINDOW - 20_001
  t.same(await windows.count('a'), { current: 3, ttl: 1 })
  now++
  t.same(await windows.count('a'), { current: 1, ttl: WINDOW })
  t.same(await windows.count('b'), { current: 2, ttl: 20_000 })
})

t.test('with too many names, the oldest window ends', async (t) => {
  const windows = new CountedWindows()
  await windows.count('first')
  for (let i = 0; i < 9_999; i++) await windows.count(`n${i}`)
  t.match(await windows.count('first'), { current: 2 })
  await windows.count('one more')
  t.match(await windows.count('n0'), { current: 2 })
  t.match(await windows.count('first'), { current: 1 })
})

t.test('counts alone while the shared store is unavailable', async (t) => {
  let available = true
  const windows = new CountedWindows(async () => {
    if (!available) throw new Error('away')
    return { current: 40, ttl: 7 }
  })
  t.same(await windows.count('a'), { current: 40, ttl: 7 })
  available = false
  t.match(await windows.count('a'), { current: 1 })
  t.match(await windows.count('a'), { current: 2 })
})
