/**
 * Where the events of the inspector's page come from: the bridge and its clock, and files.
 *
 * Runs in its own process: its browser ends with it.
 */
import t from 'tap'
import { Ring } from '../../src/inspector/ring.js'
import { noBrowser } from '../support/chromium.js'
import { until } from '../support/eventually.js'
import { drop, look } from '../support/inspector-page.js'
import { eventsIn, tellCall, tickingRing } from '../support/sights.js'

const skip = noBrowser

/** A ring whose clock is so many milliseconds off that of the browser. */
const ringOff = (by: number) => new Ring({ origin: performance.timeOrigin + by })
const MINUTES = 10 * 60 * 1_000
const CLOCKS: readonly [how: string, by: number][] = [
  ['slow', -MINUTES],
  ['fast', MINUTES],
]

for (const [how, by] of CLOCKS)
  t.test(`uses the clock of the bridge, even if it is ${how}`, { skip }, async (t) => {
    const ring = ringOff(by)
    const { browser, shows, rows, withoutMistakes } = await look(t, ring)
    const call = { kind: 'call', what: 'begun', server: 'orders', principal: 'bob' } as const
    ring.record({ ...call, call: 1, client: { era: 'legacy', transport: 'sse' }, method: 'resources/read' })
    await until(async () => (await rows()).length === 1)
    await until(async () => /[1-9]\d* ms …|\d s …/.test((await rows())[0] ?? ''), 'it has taken some time')
    t.notMatch((await rows())[0], / min …|\b0\.0 ms …/)
    await shows(/Keep texts for 5 min/)
    await browser.evaluate(
      `[...document.querySelectorAll('button')].find(({ innerText }) => /texts/i.test(innerText)).click()`,
    )
    await shows(/Keeping texts until/)
    // The clock of the page goes on for longer than it waits between two requests.
    const running = async () => Number(/(\d+)(?:\.\d)? s …/.exec((await rows())[0] ?? '')?.[1] ?? 0)
    const before = await running()
    await until(async () => (await running()) >= before + 2, 'two seconds have passed')
    const looks = browser.requests.filter((url) => url.includes('/inspect/payloads'))
    t.equal(looks.length, 2, 'whether texts are kept is asked once, and when somebody changes it')
    withoutMistakes()
  })

t.test('a file that is closed while it loads adds no more events', { skip }, async (t) => {
  const ring = tickingRing()
  tellCall(ring.record, { id: 1, name: 'of-the-bridge' })
  const { browser, shows, rows, withoutMistakes } = await look(t, ring)
  await shows(/of-the-bridge/)
  const [line = ''] = eventsIn(ring).map((seen) => JSON.stringify({ ...seen, name: 'of-the-file' }))
  // Whoever goes back as soon as there is a button for it, leaves in the middle.
  await browser.evaluate(`{
    new MutationObserver((_, observer) => {
      const back = [...document.querySelectorAll('button')].find((one) => one.innerText === 'Back to the bridge')
      if (!back) return
      observer.disconnect()
      back.click()
      window.left_ = true
    }).observe(document.body, { childList: true, subtree: true })
    const lines = Array.from({ length: 30000 }, (_, i) => JSON.stringify({ ...${line}, seq: i + 1, call: 'c' + i }))
    const data = new DataTransfer()
    window.file_ = new File([lines.join('\\n')], 'large.jsonl')
    data.items.add(window.file_)
    window.dispatchEvent(new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true }))
    0
  }`)
  await until(() => browser.evaluate<boolean>('window.left_ === true'))
  await shows(/live.*?of-the-bridge/s)
  // Who reads the same file now has read it after the page would have.
  await browser.evaluate('window.file_.text().then((text) => new Promise((done) => setTimeout(done, 0, text.length)))')
  t.equal((await rows()).length, 1)
  await shows(/8 events, 0 lost/)
  withoutMistakes()
})

t.test('shows all events of a file that are out of order', { skip }, async (t) => {
  const ring = tickingRing()
  tellCall(ring.record, { id: 1, name: 'first' })
  tellCall(ring.record, { id: 2, name: 'second' })
  const all = eventsIn(ring)
  const lines = [...all.slice(8), ...all.slice(0, 8)].map((seen) => JSON.stringify(seen))
  const { browser, shows, rows, withoutMistakes } = await look(t, tickingRing(), {}, '/calls')
  await shows(/no token/)
  await drop(browser, lines.join('\n'))
  await until(async () => (await rows()).length === 2)
  t.match((await rows())[0], /first.*ok/s)
  await shows(/16 events, 0 not in the file/)
  withoutMistakes()
})
