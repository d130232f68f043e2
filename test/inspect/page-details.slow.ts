/**
 * Details of the inspector's page that a reader stumbles over: scrolling, empty values, line breaks, motion.
 *
 * Runs in its own process: its browser ends with it.
 */
import t from 'tap'
import { noBrowser } from '../support/chromium.js'
import { until } from '../support/eventually.js'
import { drop, look } from '../support/inspector-page.js'
import { eventsIn, tellCall, tickingRing } from '../support/sights.js'

const skip = noBrowser

t.test(
  'another call, and another part of it, begin at the top, with nothing above the headings',
  { skip },
  async (t) => {
    const ring = tickingRing()
    for (const id of [1, 2]) {
      tellCall(ring.record, { id })
      const message = { kind: 'message', server: 'orders', call: id, hop: 'server', dir: 'in', bytes: 20 } as const
      for (let i = 1; i <= 100; i++) ring.record({ ...message, form: 'notification', method: `progress-${i}` })
    }
    const { browser, shows, rows, go, withoutMistakes } = await look(t, ring)
    // A key goes from a call to the next one that the list has.
    await until(async () => (await rows()).length === 2, 'both calls are listed')
    const top = () => browser.evaluate<number>(`document.getElementById('panel').scrollTop`)
    const scroll = async () => {
      await browser.evaluate(`document.getElementById('panel').scrollTop = 150`)
      await until(async () => (await top()) === 150, 'it is scrolled')
    }
    await go('#/calls/c1')
    await shows(/progress-100/)
    await scroll()
    const gap = await browser.evaluate<number>(
      `document.querySelector('.sides th').getBoundingClientRect().top - document.getElementById('panel').getBoundingClientRect().top`,
    )
    t.equal(gap, 0, 'the headings are at the top')
    await browser.press('j')
    await shows(/#c2/)
    await until(async () => (await top()) === 0, 'another call')
    await shows(/progress-100/)
    await scroll()
    await browser.press(']')
    await until(async () => (await top()) === 0, 'another part')
    withoutMistakes()
  },
)

t.test('the message of an error keeps its line breaks', { skip }, async (t) => {
  const ring = tickingRing({ payloads: 'all' })
  const texts = { request: '{}', result: '{"error":{"code":-32603,"message":"No table\\nfor \\u202etwo"}}' }
  tellCall(ring.record, { id: 1, outcome: 'error', texts })
  const { shows, go, withoutMistakes } = await look(t, ring)
  await go('#/calls/c1?tab=why')
  await shows(/Error message\s+No table\nfor \?two\n/)
  withoutMistakes()
})

t.test('marks a missing value, and repeats no heading', { skip }, async (t) => {
  const ring = tickingRing()
  const session = { kind: 'session', server: 'orders', what: 'opened', session: 'a-session' } as const
  ring.record({ ...session, side: 'server', principal: 'alice' })
  ring.record({ kind: 'refused', status: 403, why: 'foreignHost' })
  ring.record({ kind: 'refused', status: 400, why: 'no-such-fault' })
  const { browser, shows, go, withoutMistakes } = await look(t, ring)
  const cells = () =>
    browser.evaluate<string[][]>(
      `[...document.querySelectorAll('.records tbody tr')].map((row) => [...row.cells].map(({ innerText }) => innerText))`,
    )
  await go('#/sessions')
  await shows(/alice/)
  t.equal((await cells())[0]?.[4], '–', 'the client of a session with a server')
  await go('#/refused')
  await shows(/foreignHost/)
  const [unknown, known] = await cells()
  t.same(unknown?.slice(3), ['–', '–', '–', '–'])
  t.match(known?.[3], /^The request names a host .*What to do: Add the name to allowedHosts\.$/)
  t.same(known?.slice(4), ['–', '–', '–'])
  t.notMatch(await browser.evaluate<string>(`document.querySelector('thead').innerText`), /What to do/)
  withoutMistakes()
})

t.test('does not open an empty file, and shows no links for an opened one', { skip }, async (t) => {
  const ring = tickingRing()
  tellCall(ring.record, { id: 1, name: 'of-the-bridge' })
  const { browser, shows, go, withoutMistakes } = await look(t, ring)
  await shows(/of-the-bridge/)
  await drop(browser, '\n')
  await shows(/bug\.jsonl has no events/)
  await shows(/live.*?of-the-bridge/s)
  await drop(browser, JSON.stringify(eventsIn(ring)[0]))
  await shows(/file bug\.jsonl/)
  await go('#/calls/c1')
  await shows(/of-the-bridge #c1.*?Export call/s)
  t.notMatch(await browser.text(), /Copy link/)
  await browser.press('y')
  await shows(/A file has no link/)
  withoutMistakes()
})

t.test('animates nothing with prefers-reduced-motion', { skip }, async (t) => {
  const { browser, shows, withoutMistakes } = await look(t, tickingRing())
  await shows(/live/)
  const moving = `[...document.querySelectorAll('*')].filter((one) => {
    const { transitionDuration, animationName, scrollBehavior } = getComputedStyle(one)
    return transitionDuration.split(', ').some((time) => time !== '0s') || animationName !== 'none' || scrollBehavior !== 'auto'
  }).length`
  const prefer = (value: string) =>
    browser.send('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-reduced-motion', value }] })
  await prefer('no-preference')
  t.ok((await browser.evaluate<number>(moving)) > 0)
  await prefer('reduce')
  t.equal(await browser.evaluate(moving), 0)
  withoutMistakes()
})

t.test('formats numbers the same in every language of the browser', { skip }, async (t) => {
  const ring = tickingRing()
  ring.record({ kind: 'lost', what: 'calls', text: 'Calls were not recorded', count: 1_200 })
  const { browser, shows, withoutMistakes } = await look(t, ring)
  await browser.send('Emulation.setLocaleOverride', { locale: 'de-DE' })
  t.equal(await browser.evaluate('(1200).toLocaleString()'), '1.200')
  for (let i = 0; i < 1_500; i++) ring.record({ kind: 'config', text: 'changed' })
  await shows(/1,501 events, 0 lost, 1,200 calls not recorded/)
  withoutMistakes()
})
