/** The queue of sights that wait to be recorded: nothing is lost, nothing waits for long, and little memory is held. */
import t from 'tap'
import { SightQueue } from '../../src/inspect/sight-queue.js'
import type { Sight } from '../../src/ports/seen.js'
import { until } from '../support/eventually.js'

const message = (bytes: number): Sight => ({ kind: 'message', hop: 'server', dir: 'in', form: 'result', bytes })

function watched() {
  const recorded: [at: number, text: unknown][] = []
  const queue = new SightQueue((_sight, text, at) => recorded.push([at, text]))
  return { queue, recorded }
}

t.test('sights are recorded in the order in which they were told, at the time when they were', async (t) => {
  const { queue, recorded } = watched()
  const texts = Array.from({ length: 1_000 }, (_, n) => `text ${n}`)
  for (const [n, text] of texts.entries()) queue.add(message(10), text, n)
  t.ok(recorded.length > 900, 'many are recorded at once')
  t.equal(recorded.length + queue.length, 1_000)
  queue.recordAll()
  t.same(
    recorded,
    texts.map((text, n) => [n, text]),
  )
  t.equal(queue.length, 0)
  queue.recordAll()
  t.equal(recorded.length, 1_000, 'once')
})

t.test('large messages do not wait', async (t) => {
  const { queue, recorded } = watched()
  queue.add(message(1), 'small', 1)
  queue.add(message(1024 * 1024), 'large', 2)
  t.equal(recorded.length, 2)
})

t.test('a single sight is recorded after a while', async (t) => {
  const { queue, recorded } = watched()
  for (const n of [1, 2]) {
    queue.add({ kind: 'config', text: 'changed' }, undefined, n)
    t.equal(queue.length, 1)
    await until(() => recorded.length === n, 'the record')
  }
})
