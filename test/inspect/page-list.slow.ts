/**
 * The list of calls on the page of the inspector: it keeps up with many calls, and stands still for who reads it.
 *
 * Runs in its own process: its browser ends with it.
 */
import t from 'tap'
import { noBrowser } from '../support/chromium.js'
import { until, untilFound } from '../support/eventually.js'
import { look } from '../support/inspector-page.js'
import { tellCall, tickingRing } from '../support/sights.js'

const skip = noBrowser
/** Milliseconds between two drawings, as in src/inspector/page/state.ts. */
const DRAW = 100

t.test('redraws the page at most ten times a second, whatever the rate of events', { skip }, async (t) => {
  const ring = tickingRing()
  const { browser, shows, withoutMistakes } = await look(t, ring)
  await shows(/live/)
  await browser.evaluate(`{
    window.drawn_ = 0
    window.began_ = performance.now()
    new MutationObserver(() => drawn_++).observe(document.querySelector('.count'), { characterData: true, childList: true, subtree: true })
  }`)
  for (let i = 1; i <= 300; i++) {
    tellCall(ring.record, { id: i })
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  await shows(/2,400 events, 0 lost/)
  const { drawn, ms } = await browser.evaluate<{ drawn: number; ms: number }>(
    `({ drawn: drawn_, ms: performance.now() - began_ })`,
  )
  t.ok(drawn >= 1)
  t.ok(drawn <= ms / DRAW + 2, `${drawn} drawings in ${ms} ms`)
  withoutMistakes()
})

t.test('after scrolling up, the rows stay the same while calls are added and dropped', { skip }, async (t) => {
  const ring = tickingRing()
  const { browser, shows, withoutMistakes } = await look(t, ring)
  const tell = async (from: number, to: number) => {
    for (let i = from; i <= to; i++) {
      tellCall(ring.record, { id: i, name: `tool-${i}` })
      if (i % 20 === 0) await new Promise((resolve) => setTimeout(resolve, 5))
    }
    await shows(new RegExp(`${(to * 8).toLocaleString('en')} events, 0 lost`))
  }
  const seen = () =>
    browser.evaluate<string>(`{
      const scroller = document.querySelector('.scroller')
      const top = scroller.getBoundingClientRect().top + document.querySelector('.calls thead').offsetHeight
      const row = [...document.querySelectorAll('.calls tbody tr:not(.space)')].find((one) => one.getBoundingClientRect().bottom > top + 1)
      row.cells[1].innerText
    }`)
  const height = () => browser.evaluate<number>(`document.querySelector('.scroller').scrollHeight`)
  // The bridge keeps fewer calls than the page, which has to read them in between.
  for (let from = 1; from < 9_901; from += 1_100) await tell(from, from + 1_099)
  await shows(/tool-9900/)
  const heights = await browser.evaluate<number[]>(
    `[...document.querySelectorAll('.calls tbody tr:not(.space)')].map((row) => row.getBoundingClientRect().height)`,
  )
  t.ok(
    heights.every((one) => one === 32),
    'all rows are equally high',
  )
  await browser.evaluate(`document.querySelector('.scroller').scrollTop = 32 * 5000; 0`)
  await until(async () => (await seen()) === 'tools/call tool-5001')
  await tell(9_901, 10_600)
  await until(async () => (await height()) > 32 * 10_000, 'the list is full')
  t.equal(await seen(), 'tools/call tool-5001', '600 calls have left before it')
  await shows(/Newest/)
  await browser.evaluate(`document.querySelector('.newest').click()`)
  await shows(/tool-10600/)
  await tell(10_601, 10_620)
  await shows(/tool-10620/)
  await browser.press('k')
  await until(() => browser.evaluate<boolean>(`document.querySelector('.calls .selected') !== null`))
  const selected = await browser.evaluate<string>(`document.querySelector('.calls .selected').cells[1].innerText`)
  await tell(10_621, 10_700)
  const stays = await browser.evaluate<string>(`document.querySelector('.calls .selected')?.cells[1].innerText`)
  t.equal(stays, selected, 'the selected call stays in trace')
  withoutMistakes()
})

t.test('a call leaves and enters a filtered list when it changes', { skip }, async (t) => {
  const ring = tickingRing()
  const { shows, rows, go, withoutMistakes } = await look(t, ring)
  await shows(/live/)
  const call = {
    kind: 'call',
    call: 1,
    server: 'orders',
    principal: 'bob',
    client: { era: 'legacy', transport: 'sse' },
    method: 'resources/read',
  } as const
  ring.record({ ...call, what: 'begun' })
  await go('#/calls?status=open')
  await until(async () => (await rows()).length === 1, 'it is open')
  ring.record({ ...call, what: 'ended', outcome: 'error', code: -32602, ms: 9 })
  await until(async () => (await rows()).length === 0, 'it has ended')
  await go('#/calls?filter=status:-32602')
  await until(async () => (await rows()).length === 1, 'it has ended with an error')
  withoutMistakes()
})

t.test('keys start at the newest visible call, and do nothing while the help is open', { skip }, async (t) => {
  const ring = tickingRing()
  for (let id = 1; id <= 200; id++) tellCall(ring.record, { id, name: `tool-${id}` })
  const { browser, shows, withoutMistakes } = await look(t, ring)
  const isAt = (address: string) => until(async () => (await browser.evaluate('location.hash')) === address, address)
  await shows(/tool-200/)
  await browser.press('j')
  await isAt('#/calls/c200')
  await browser.press('?')
  await until(() => browser.evaluate<boolean>(`document.querySelector('dialog').open`))
  await browser.press('k')
  await browser.press(']')
  await browser.press('?')
  await until(() => browser.evaluate<boolean>(`!document.querySelector('dialog').open`))
  await isAt('#/calls/c200')
  await browser.press('Escape')
  await isAt('#/calls')
  await browser.evaluate(`document.querySelector('.scroller').scrollTop = 32 * 100; 0`)
  const last = await untilFound(() =>
    browser.evaluate<string | undefined>(`{
      const end = document.querySelector('.scroller').getBoundingClientRect().bottom
      const isLast = ({ bottom }) => bottom <= end && bottom > end - 32
      const rows = [...document.querySelectorAll('.calls tbody tr:not(.space)')]
      rows.find((row) => isLast(row.getBoundingClientRect()))?.querySelector('a').hash
    }`),
  )
  await browser.press('k')
  await isAt(last)
  withoutMistakes()
})

t.test('the list follows the newest call after returning to it', { skip }, async (t) => {
  const ring = tickingRing()
  for (let id = 1; id <= 200; id++) tellCall(ring.record, { id, name: `tool-${id}` })
  const { browser, shows, go, withoutMistakes } = await look(t, ring)
  await shows(/tool-200/)
  await go('#/calls/c1')
  await until(() => browser.evaluate<boolean>(`document.querySelector('.calls .selected') !== null`))
  await go('#/servers')
  await shows(/Circuit breaker|orders/)
  await go('#/calls')
  await shows(/tool-200/)
  tellCall(ring.record, { id: 201, name: 'tool-201' })
  await shows(/tool-201/)
  withoutMistakes()
})
