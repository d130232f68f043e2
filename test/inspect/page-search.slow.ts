/**
 * Searching kept texts on the inspector's page.
 *
 * Runs in its own process: its browser ends with it.
 */
import t from 'tap'
import { noBrowser } from '../support/chromium.js'
import { until } from '../support/eventually.js'
import { drop, look, problems } from '../support/inspector-page.js'
import { eventsIn, tellCall, tickingRing } from '../support/sights.js'

const skip = noBrowser
const texts = (city: string) => ({ request: JSON.stringify({ city, token: 'hunter2' }), result: '{}' })

t.test('the filter finds calls by their texts, also those that come later', { skip }, async (t) => {
  const ring = tickingRing({ payloads: 'all' })
  tellCall(ring.record, { id: 1, name: 'one', texts: texts('Oslo') })
  tellCall(ring.record, { id: 2, name: 'two', texts: texts('Bergen') })
  const { browser, rows, shows, go, withoutMistakes } = await look(t, ring)
  await until(async () => (await rows()).length === 2)
  const isFound = (...names: string[]) =>
    until(async () => {
      const found = await rows()
      return found.length === names.length && names.every((name, i) => found[i]?.includes(name))
    }, `${names.join()} are found`)
  await browser.press('/')
  await browser.type('oslo')
  await isFound('one')
  tellCall(ring.record, { id: 3, name: 'three', texts: texts('Oslo') })
  await isFound('one', 'three')
  await go('#/calls?filter=-text:oslo')
  await isFound('two')
  await go('#/calls?filter=hunter2')
  await shows(/No call of 3 matches the filter\./)
  // After a search that finds something, the one before it is over.
  await go('#/calls?filter=text:hunter2,bergen')
  await isFound('two')
  const file = eventsIn(ring)
    .map((seen) => JSON.stringify(seen))
    .join('\n')
  await drop(browser, file)
  await shows(/file bug\.jsonl/)
  await go('#/calls?filter=text:bergen')
  await isFound('two')
  withoutMistakes()
})

t.test('a searched word is highlighted and in sight, however far down it is', { skip }, async (t) => {
  const ring = tickingRing({ payloads: 'all' })
  const many = Object.fromEntries(
    Array.from({ length: 200 }, (_, i) => [`member ${i}`, `value ${i} (a.b) ${'x'.repeat(30)}`]),
  )
  tellCall(ring.record, { id: 1, texts: { request: JSON.stringify(many), result: '{}' } })
  const { browser, shows, go, withoutMistakes } = await look(t, ring)
  const marks = () =>
    browser.evaluate<string[]>(`[...document.querySelectorAll('#panel mark')].map((one) => one.innerText)`)
  await go('#/calls/c1?filter=%22VALUE+180+(a.b)%22')
  await until(async () => (await marks()).length > 0, 'it is highlighted')
  t.same([...new Set(await marks())], ['value 180 (a.b)'])
  const isInSight = `{
    const { top, bottom } = document.querySelector('#panel mark').getBoundingClientRect()
    const panel = document.getElementById('panel').getBoundingClientRect();
    top >= panel.top && bottom <= panel.bottom
  }`
  await until(() => browser.evaluate<boolean>(isInSight), 'it is in sight')
  t.same(await problems(browser), [])
  await go('#/calls/c1')
  await until(async () => (await marks()).length === 0)
  await shows(/Show \d+ more lines/)
  withoutMistakes()
})

t.test('says so if no texts are kept', { skip }, async (t) => {
  const ring = tickingRing()
  tellCall(ring.record, { id: 1, texts: texts('Oslo') })
  const { shows, go, withoutMistakes } = await look(t, ring)
  await go('#/calls?filter=oslo')
  await shows(/No call of 1 matches the filter\. Message texts are not kept, so they were not searched\./)
  withoutMistakes()
})
