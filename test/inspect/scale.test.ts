/** The scales on which the page draws times. */
import t from 'tap'
import { LABELS, reach, ticksOf } from '../../src/inspector/scale.js'

t.test('a time reaches farther than each shorter one, within the scale', async (t) => {
  const times = [0.1, 0.6, 1, 9, 30, 100, 2_500, 10_000, 60_000]
  const reaches = times.map(reach)
  t.same(
    reaches,
    reaches.toSorted((a, b) => a - b),
  )
  t.equal(new Set(reaches).size, times.length)
  t.ok(reach(2_500) - reach(0.6) > 0.5, '0.6 ms and 2.5 s are far apart')
  for (const ms of [0, -1, 0.05]) t.equal(reach(ms), 0, `${ms}`)
  t.equal(reach(1e9), 1)
  for (const label of LABELS) t.ok(reach(label) > 0.1 && reach(label) < 0.9, `${label} has room for its label`)
})

t.test('a linear scale has a few round times', async (t) => {
  t.same(ticksOf(2_600), [0, 1_000, 2_000])
  t.same(ticksOf(5), [0, 1, 2, 3, 4, 5])
  t.same(ticksOf(0.6), [0, 0.2, 0.4, 0.6000000000000001])
  for (const ms of [0.01, 0.3, 1, 7, 9.99, 10, 42, 999, 1e3, 86_400_000]) {
    const ticks = ticksOf(ms)
    t.ok(ticks.length >= 2 && ticks.length <= 6, `${ms}: ${ticks.length}`)
    t.ok((ticks.at(-1) as number) <= ms * 1.000_001)
  }
  for (const ms of [0, -1, Number.NaN, Number.POSITIVE_INFINITY]) t.same(ticksOf(ms), [0])
})
