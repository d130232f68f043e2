/**
 * The columns of the list of calls on the inspector's page: what a call is comes first, on every width.
 *
 * Runs in its own process: its browser ends with it.
 */
import t from 'tap'
import { Ring } from '../../src/inspector/ring.js'
import { noBrowser } from '../support/chromium.js'
import { until } from '../support/eventually.js'
import { look, pictures, problems } from '../support/inspector-page.js'
import { tellCall, tellQuestion, tickingRing } from '../support/sights.js'

const skip = noBrowser
const MODERN = { era: 'modern', revision: '2026-07-28', transport: 'http' } as const
/** Whether the text of something can be seen as a whole. */
const IS_WHOLE = `(one) => one.scrollWidth <= one.clientWidth`

t.test('the name of a call and its sides are readable from a tablet to a wide screen', { skip }, async (t) => {
  const ring = tickingRing()
  tellCall(ring.record, { id: 1, name: 'read_text_file', more: { client: MODERN, upstream: MODERN } })
  const { browser, rows, withoutMistakes } = await look(t, ring)
  await until(async () => (await rows()).length === 1)
  for (const width of [761, 800, 999, 1000, 1100, 1199, 1200, 1299, 1300, 1400, 1920]) {
    await browser.emulate({ width })
    const cut = await browser.evaluate<string[]>(
      `[...document.querySelectorAll('.calls th, .calls tbody td')].filter((one) => !(${IS_WHOLE})(one)).map((one) => one.innerText)`,
    )
    t.same(cut, [], `nothing is cut at ${width}`)
    const row = (await rows())[0]
    t.match(row, /read_text_file.*M 07-28 http → M 07-28 http/s, `both are there at ${width}`)
  }
  withoutMistakes()
})

t.test('a truncated text is the tooltip of its cell', { skip }, async (t) => {
  const ring = tickingRing()
  const long = 'a-name-that-is-wider-than-its-column-on-a-screen-of-usual-width-and-wider'
  tellCall(ring.record, { id: 1, name: long, server: `${long}-server`, outcome: 'fault', why: `${long}-why` })
  const { browser, rows, withoutMistakes } = await look(t, ring)
  await until(async () => (await rows()).length === 1)
  const tips = await browser.evaluate<string[]>(
    `[...document.querySelectorAll('.calls tbody td')].filter((one) => !(${IS_WHOLE})(one)).map(({ title }) => title)`,
  )
  t.same(tips, [`tools/call ${long}`, `${long}-server`, `fault: ${long}-why (blame: upstream)`])
  withoutMistakes()
})

t.test('the sides of the timeline are distinguishable without colours', { skip }, async (t) => {
  const ring = tickingRing()
  tellQuestion(ring.record, { id: 1, answer: 2 })
  const { browser, shows, go, withoutMistakes } = await look(t, ring)
  await go('#/calls/c1?tab=timeline')
  await shows(/client or person/)
  const tip = `[...document.querySelectorAll('.calls th')].at(-1).title`
  t.match(await browser.evaluate(tip), /^Grey: bridge\. Blue lines: server\. Orange stripes: client/)
  for (const scheme of ['dark', 'light']) {
    await browser.emulate({ scheme })
    await browser.screenshot(`${pictures}timeline-${scheme}.png`)
    await browser.evaluate(
      `for (const who of ['bridge', 'server', 'client']) document.documentElement.style.setProperty('--' + who, 'gray')`,
    )
    const seen = new Set<string>()
    for (const who of ['bridge', 'server', 'client']) {
      const place = `{ const { x, y, width, height } = document.querySelector('.sample.${who}').getBoundingClientRect(); ({ x, y, width, height }) }`
      const clip = { ...(await browser.evaluate<object>(place)), scale: 1 }
      const { data } = await browser.send<{ data: string }>('Page.captureScreenshot', { format: 'png', clip })
      seen.add(data)
    }
    t.equal(seen.size, 3, `three patterns, ${scheme}`)
    await browser.evaluate(`document.documentElement.removeAttribute('style')`)
  }
  withoutMistakes()
})

t.test('times are drawn on a scale that all rows share', { skip }, async (t) => {
  let now = Date.UTC(2026, 6, 28, 3, 7, 20)
  const ring = new Ring({ origin: 0, now: () => now })
  for (const [id, ms] of [0.6, 30, 2_500].entries()) {
    const call = { kind: 'call', call: id + 1, server: 'orders', principal: 'bob', method: 'tools/call' } as const
    ring.record({ ...call, client: MODERN, what: 'begun' })
    now += ms
    ring.record({ ...call, client: MODERN, what: 'ended', outcome: 'ok', ms })
  }
  const { browser, rows, withoutMistakes } = await look(t, ring)
  await until(async () => (await rows()).length === 3)
  const [short = 0, middle = 0, long = 0] = await browser.evaluate<number[]>(
    `[...document.querySelectorAll('.bar')].map((bar) => bar.getBoundingClientRect().width)`,
  )
  t.ok(long > 1.4 * middle && middle > 1.4 * short, `${short} < ${middle} < ${long}`)
  t.match(await browser.evaluate(`document.querySelector('.scale').innerText`), /1 ms\s*100 ms\s*10 s/)
  t.same(await problems(browser), [])
  withoutMistakes()
})

t.test(
  'progress that reaches a client is not drawn in the lane of a client that is waited for',
  { skip },
  async (t) => {
    const ring = tickingRing()
    tellQuestion(ring.record, { id: 1, answer: 2 })
    const { browser, shows, go, withoutMistakes } = await look(t, ring)
    await go('#/calls/c1?tab=timeline')
    await shows(/notifications\/progress/)
    const [client, bridge, server] = await browser.evaluate<number[]>(
      `[...document.querySelectorAll('.lane')].map((lane) => [...lane.querySelectorAll('i')].filter(({ title }) => /progress/.test(title)).length)`,
    )
    t.same([client, bridge, server], [0, 2, 2])
    await shows(/0 ms\s*\d+ ms/)
    withoutMistakes()
  },
)
