/** How many processes one principal may start in a given time. */
import t from 'tap'
import type { Fault } from '../../src/base/fault/fault.js'
import { Starts } from '../../src/servers/transport/stdio/starts.js'

t.test('some start at once, others wait for their turn, and too many are refused', async (t) => {
  const starts = new Starts({ burst: 3, perMinute: 300 })
  const began = performance.now()
  const at: number[] = []
  const turns = Array.from({ length: 5 }, () => starts.turn('greedy').then(() => at.push(performance.now() - began)))
  await starts.turn('modest')
  await Promise.all(turns)
  t.ok((at[3] as number) >= 190, 'the fourth waits for 200 ms')
  t.ok((at[4] as number) >= 390)
  const more = await Promise.allSettled(Array.from({ length: 60 }, () => race(starts.turn('greedy'))))
  const refused = more.flatMap((one) => (one.status === 'rejected' ? [one.reason as Fault] : []))
  t.ok(refused.length >= 30, `${refused.length} would have to wait for more than 5 s`)
  for (const fault of refused) t.match(fault, { fault: 'rateLimited', status: 429, retryAfter: 1 })
  await starts.turn('modest')
})

/** Resolves as the turn does, or after one tick if the turn still waits. */
function race(turn: Promise<void>): Promise<void> {
  turn.catch(() => {})
  return Promise.race([turn, new Promise<void>((resolve) => setImmediate(resolve))])
}
