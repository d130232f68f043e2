/**
 * The links of the inspector's page: what is shown is in the address, and a click changes only what it names.
 *
 * Runs in its own process: its browser ends with it.
 */
import t from 'tap'
import { noBrowser } from '../support/chromium.js'
import { until } from '../support/eventually.js'
import { TOKEN } from '../support/inspector.js'
import { look } from '../support/inspector-page.js'
import { tellCall, tickingRing } from '../support/sights.js'

const skip = noBrowser

t.test('keeps filter, choices and tab after a click on a call or a view', { skip }, async (t) => {
  const ring = tickingRing()
  for (let id = 1; id <= 3; id++) tellCall(ring.record, { id, name: `tool-${id}` })
  tellCall(ring.record, { id: 4, name: 'failed', outcome: 'tool_error' })
  const { browser, rows, shows, go, withoutMistakes } = await look(t, ring)
  const click = (selector: string) => browser.evaluate(`document.querySelector(${JSON.stringify(selector)}).click()`)
  const isAt = (address: string) =>
    until(async () => (await browser.evaluate('location.hash')) === address, `the address is ${address}`)
  await until(async () => (await rows()).length === 4)
  await go('#/calls?status=ok&filter=tool%3Atool')
  await until(async () => (await rows()).length === 3)
  await click('.calls tbody tr:nth-child(2) a')
  await isAt('#/calls/c2?status=ok&filter=tool%3Atool')
  await click('#tab-why')
  await isAt('#/calls/c2?status=ok&filter=tool%3Atool&tab=why')
  await click('.calls tbody tr:nth-child(3) a')
  await isAt('#/calls/c3?status=ok&filter=tool%3Atool&tab=why')
  t.equal((await rows()).length, 3)
  for (const [i, view] of ['servers', 'sessions', 'refused', 'calls'].entries()) {
    const title = `${view[0]?.toUpperCase()}${view.slice(1)}`
    await browser.evaluate(
      `[...document.querySelectorAll('nav a')].find((one) => one.innerText === '${title}').click()`,
    )
    await isAt(`#/${view}?status=ok&filter=tool%3Atool`)
    if (i === 0) await shows(/orders/)
  }
  await until(async () => (await rows()).length === 3)
  await click('.calls tbody tr:nth-child(1) a')
  await isAt('#/calls/c1?status=ok&filter=tool%3Atool&tab=why')
  await go('#/calls/c99?status=ok')
  await shows(/Call c99 is not in memory/)
  await click('.detail a')
  await isAt('#/calls?status=ok')
  withoutMistakes()
})

t.test(
  'a link to a call has no token, and the address with the token leaves the tab where it is',
  { skip },
  async (t) => {
    const ring = tickingRing()
    tellCall(ring.record, { id: 1 })
    tellCall(ring.record, { id: 2, name: 'linked' })
    const { browser, shows, go, withoutMistakes } = await look(t, ring, {}, '/calls/c2?tab=why')
    await shows(/Open the address that the bridge printed, or drop/)
    t.notMatch(await browser.text(), /is not in memory|No calls yet/)
    for (const view of ['servers', 'sessions', 'refused']) {
      await go(`#/${view}`)
      await shows(/Open the address that the bridge printed/)
    }
    await go('#/calls/c2?tab=why')
    await shows(/Open the address that the bridge printed/)
    await go(`#${TOKEN}`)
    await shows(/linked #c2.*?Rules/s)
    t.equal(await browser.evaluate('location.hash'), '#/calls/c2?tab=why')
    await go('#/calls/c3')
    await shows(/Call c3 is not in memory/)
    withoutMistakes()
  },
)

t.test('takes a token with all legal characters from the address', { skip }, async (t) => {
  const token = 'ABC.def_123~+/=-'
  const { shows, withoutMistakes } = await look(t, tickingRing(), { token }, token)
  await shows(/live/)
  withoutMistakes()
})
