/** Details of the inspector's page that a reader stumbles over: scrolling, empty values, line breaks, motion. */
import t from 'tap'
import { noBrowser } from '../support/chromium.js'
import { until } from '../support/eventually.js'
import { look } from '../support/inspector-page.js'
import { tellCall, tickingRing } from '../support/sights.js'

const skip = noBrowser

t.test(
  'another call, and another part of it, begin at the top, with nothing above the headings',
  { skip },
  async (t) => {
    const ring = tickingRing()
    for (const id of [1, 2]) {
      tellCall(ring.witness, { id })
      const message = { kind: 'message', server: 'orders', call: id, hop: 'server', dir: 'in', bytes: 20 } as const
      for (let i = 1; i <= 100; i++) ring.witness({ ...message, form: 'notification', method: `progress-${i}` })
    }
    const { browser, shows, go, withoutMistakes } = await look(t, ring)
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
