/**
 * What stays on the page of the inspector: pinned calls, and what quiet calls do not push out; and that it can be cleared.
 *
 * Runs in its own process: its browser ends with it.
 */
import t from 'tap'
import { noBrowser } from '../support/chromium.js'
import { until } from '../support/eventually.js'
import { look, problems } from '../support/inspector-page.js'
import { tellCall, tickingRing } from '../support/sights.js'

const skip = noBrowser

t.test('pins a call by button and key, keeps it through 6,000 others, and clears the rest', { skip }, async (t) => {
  const ring = tickingRing()
  const { browser, shows, go, rows, withoutMistakes } = await look(t, ring)
  ring.record({ kind: 'refused', status: 401, why: 'unauthorized' })
  tellCall(ring.record, { id: 1, name: 'mine' })
  tellCall(ring.record, { id: 2, name: 'broken', outcome: 'error' })
  await shows(/mine/)
  await go('#/calls/c1')
  await shows(/Pin call/)
  await browser.press('*')
  await until(() => ring.pinned.includes('c1'), 'the key pins')
  await shows(/Unpin call/)
  await until(async () => (await rows()).some((row) => /★/.test(row)), 'the row has a star')
  t.same(await problems(browser), [])
  for (let i = 10_000; i < 16_000; i++) {
    tellCall(ring.record, { id: i })
    if (i % 20 === 0) await new Promise((resolve) => setTimeout(resolve, 2))
  }
  await until(() => ring.first > 1_000)
  await go('#/calls?filter=mine')
  await until(async () => (await rows()).length === 1, 'the pinned call is on the page')
  await go('#/calls?filter=broken')
  await until(async () => (await rows()).length === 1, 'the failed call, too')
  await go('#/refused')
  await shows(/unauthorized/)

  await go('#/calls')
  await browser.evaluate(`[...document.querySelectorAll('button')].find((one) => one.innerText === 'Clear').click()`)
  await until(async () => (await rows()).length === 1, 'only the pinned call is left')
  t.match(await rows(), [/mine/])
  await go('#/refused')
  await shows(/No refused requests since the memory was cleared at \d/)
  await go('#/calls/c1')
  await shows(/Unpin call/)
  await browser.press('*')
  await until(() => ring.pinned.length === 0, 'the key unpins')
  withoutMistakes()
})

t.test('a viewer with a read-only token can neither pin nor clear, and gets the reason', { skip }, async (t) => {
  const ring = tickingRing()
  tellCall(ring.record, { id: 1, name: 'mine' })
  const { browser, shows, go } = await look(t, ring, { mayTry: true, tryToken: 'another-token-for-tests' })
  await go('#/calls/c1')
  await shows(/Pin call/)
  await browser.press('*')
  await shows(/This token is read-only: pinning/)
  t.same(ring.pinned, [])
})
