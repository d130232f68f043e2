/**
 * The inspector's page with 10,000 calls, and on a slow machine. The times are printed; what is claimed is that everything is
 * there, and that little of it is in the document.
 *
 * Runs in its own process: its browser ends with it.
 */
import t from 'tap'
import { type Chromium, noBrowser } from '../support/chromium.js'
import { until } from '../support/eventually.js'
import { drop, look, newPage } from '../support/inspector-page.js'
import { eventsIn, tellCall, tickingRing } from '../support/sights.js'
import { trace } from './tracing.js'

const skip = noBrowser
const CALLS = 10_000
/** Height of a row, as in src/inspector/page/calls.ts. */
const ROW = 32

/** Scrolls the list from its top to its end in so many frames. Milliseconds between frames, sorted, and the rows in the document. */
function scrolled(browser: Chromium, frames: number) {
  return browser.evaluate<{ gaps: number[]; rows: number }>(`new Promise((resolve) => {
    const list = document.querySelector('.scroller')
    const gaps = []
    let [before, rows] = [performance.now(), 0]
    const step = (now) => {
      gaps.push(now - before)
      before = now
      rows = Math.max(rows, list.querySelectorAll('tbody tr').length)
      list.scrollTop = (list.scrollHeight - list.clientHeight) * gaps.length / ${frames}
      if (gaps.length < ${frames}) requestAnimationFrame(step)
      else requestAnimationFrame(() => resolve({ gaps: gaps.slice(1).sort((a, b) => a - b), rows }))
    }
    list.scrollTop = 0
    requestAnimationFrame((now) => { before = now; step(now) })
  })`)
}

t.test('10,000 calls of a file can all be scrolled to, with few rows in the document', { skip }, async (t) => {
  const ring = tickingRing({ bounds: { calls: CALLS, messages: CALLS * 8, bytes: 256 * 1024 * 1024 } })
  for (let id = 1; id <= CALLS; id++) tellCall(ring.record, { id, name: `tool-${id}` })
  const file = eventsIn(ring)
    .map((seen) => JSON.stringify(seen))
    .join('\n')
  const { browser, shows, withoutMistakes } = await look(t, tickingRing())
  await browser.emulate({ width: 1440 })
  await drop(browser, file)
  await shows(/80,000 events, 0 not in the file/)
  await shows(/tool-10000/)
  t.equal(await browser.evaluate(`document.querySelector('.calls').ariaRowCount`), `${CALLS + 1}`)
  for (const rate of [1, 4]) {
    await browser.send('Emulation.setCPUThrottlingRate', { rate })
    const end = await trace(browser)
    const { gaps, rows } = await scrolled(browser, 300)
    const { tasksCpu } = await end()
    const longest = Math.max(...tasksCpu)
    t.ok(rows < 100, `${rows} rows in the document`)
    const late = gaps.filter((ms) => ms > 100).length
    t.comment(
      `CPU / ${rate}: frames of ${gaps[150]?.toFixed(1)} ms (median), ${gaps.at(-1)?.toFixed(1)} ms (longest), ${late} over 100 ms; longest task ${longest.toFixed(1)} ms of CPU time`,
    )
  }
  await browser.send('Emulation.setCPUThrottlingRate', { rate: 1 })
  await browser.evaluate(`document.querySelector('.scroller').scrollTop = ${ROW * 5_000}`)
  await shows(/tool-5001\b/)
  await browser.evaluate(`document.querySelector('.scroller').scrollTop = 0`)
  await shows(/tool-1\b/)
  withoutMistakes()
})

t.test('opens on a machine that is four times slower', { skip }, async (t) => {
  const ring = tickingRing()
  for (let id = 1; id <= 100; id++) tellCall(ring.record, { id })
  const slow = await newPage()
  await slow.send('Emulation.setCPUThrottlingRate', { rate: 4 })
  const { browser, rows, withoutMistakes } = await look(t, ring)
  await browser.send('Emulation.setCPUThrottlingRate', { rate: 4 })
  await browser.send('Page.reload')
  await until(async () => (await rows()).length > 0, 'calls are listed')
  const paint = await browser.evaluate<Record<string, number>>(
    `Object.fromEntries(performance.getEntriesByType('paint').map(({ name, startTime }) => [name, startTime]))`,
  )
  t.ok('first-contentful-paint' in paint)
  t.comment(`CPU / 4: first paint after ${Math.round(paint['first-contentful-paint'] ?? 0)} ms`)
  withoutMistakes()
})
