/**
 * The view Try as a client of each of the five revisions, of each of the five servers of the matrix: lists, a call, a question that
 * a person answers, and a cancellation that the server gets. And all of that by keyboard alone.
 *
 * Runs in its own process: its browser ends with it.
 */
import t from 'tap'
// @ts-expect-error: plain JavaScript, because servers on stdio run it without any loader
import { QUESTIONS } from '../fixtures/modern-questions.mjs'
import { nameOf } from '../matrix/run.js'
import { SERVERS } from '../matrix/servers.js'
import { noBrowser } from '../support/chromium.js'
import { until } from '../support/eventually.js'
import { problems } from '../support/inspector-page.js'
import { everything, openTry } from '../support/try-page.js'

const REVISIONS = ['2026-07-28', '2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05']
/** Every revision has this question. */
const ASKING = JSON.stringify({ rounds: [{ model: (QUESTIONS as Record<string, object>)['model'] }] })

t.test('each pair of a revision and a server: lists, calls, answers and cancels', { skip: noBrowser }, async (t) => {
  const servers = await Promise.all(SERVERS.map(async (kind) => [nameOf(kind), await kind.start(t)] as const))
  const entries = servers.map(([name, { entry }]) => [name.replaceAll(/[ +]/g, '-'), entry])
  const { browser, asks, press, fillJson, as, choose, withoutMistakes } = await openTry(t, Object.fromEntries(entries))
  const chosen = (tool: string) =>
    until(
      () =>
        browser.evaluate<boolean>(
          `document.querySelector('.trying form')?.getAttribute('aria-label') === ${JSON.stringify(tool)}`,
        ),
      `the form of ${tool}`,
    )
  const call = async (tool: string, json: string) => {
    await press(tool, '.items')
    await chosen(tool)
    await fillJson(json)
    await press('Call', '.trying')
  }
  /** The last call, in words. */
  const outcome = (text: RegExp) =>
    until(
      async () => text.test(await browser.evaluate<string>(`document.querySelector('.outcome')?.textContent ?? ''`)),
      `the call says ${text}`,
    )
  for (const [i, [name, server]] of servers.entries())
    for (const revision of REVISIONS) {
      await choose(String(entries[i]?.[0]))
      await as(revision)
      await asks(/Tools \d+/)
      // In expressions, + is no character of its own.
      const marker = `${name.replace('+', ' and ')} as ${revision}`
      await call('echo', JSON.stringify({ text: marker }))
      await outcome(new RegExp(`echo.*client of ${revision}.*done.*${marker}`, 's'))
      await call('ask', ASKING)
      await asks(/answer in place of the model/)
      await browser.evaluate(`{
        const field = document.querySelector('.question textarea')
        field.value = ${JSON.stringify(`Paris for ${marker}`)}
        0
      }`)
      await press('Answer', '.question')
      await outcome(new RegExp(`ask.*done.*Paris for ${marker}`, 's'))
      const cancelled = server.cancelled().length
      const reached = () => server.reached().filter(({ text }) => text.includes(`wait ${marker}`)).length
      await call('wait', JSON.stringify({ ms: 3_600_000, say: `wait ${marker}` }))
      await until(() => reached() > 0, 'the server has the call')
      await press('Cancel', '.outcome')
      await outcome(/You cancelled the call/)
      await until(() => server.cancelled().length > cancelled, 'the server is told')
      t.pass(marker)
    }
  // Each process of a modern server is asked once whether it keeps sessions.
  const isInquiry = (complaint: string) => complaint.includes('it is a handshake of a legacy client')
  for (const [name, server] of servers)
    t.same(
      server.complaints().filter((one) => !isInquiry(one)),
      [],
      `what reached ${name} was of its era`,
    )
  withoutMistakes()
})

t.test(
  'by keyboard alone: a person calls, answers, corrects and cancels, in both eras',
  { skip: noBrowser },
  async (t) => {
    const { browser, asks, withoutMistakes } = await openTry(t, { everything })
    const CODES: Record<string, [code: number, text?: string]> = {
      Tab: [9],
      Enter: [13, '\r'],
      ' ': [32, ' '],
      Escape: [27],
      ArrowDown: [40],
    }
    const hit = async (key: string) => {
      const [windowsVirtualKeyCode, text] = CODES[key] as [number, string?]
      const about = { key, code: key === ' ' ? 'Space' : key, windowsVirtualKeyCode }
      await browser.send('Input.dispatchKeyEvent', {
        type: text === undefined ? 'rawKeyDown' : 'keyDown',
        ...about,
        ...(text && { text }),
      })
      await browser.send('Input.dispatchKeyEvent', { type: 'keyUp', ...about })
    }
    const focused = () =>
      browser.evaluate<string>(`{
      const one = document.activeElement
      const name = one?.getAttribute('aria-label') ?? one?.labels?.[0]?.textContent ?? one?.textContent ?? ''
      ;(one?.tagName ?? '') + ' ' + name.trim().slice(0, 60)
    }`)
    /** Goes on with the Tab key until this has the focus. */
    const goTo = async (what: RegExp) => {
      for (let steps = 0; steps < 200; steps++) {
        await hit('Tab')
        if (what.test(await focused())) return
      }
      throw new Error(`Nothing with the name ${what} gets the focus`)
    }
    for (const era of ['modern', 'legacy']) {
      await asks(/Tools \d+/)
      await goTo(/^BUTTON echo/)
      await hit('Enter')
      await goTo(/^INPUT message/)
      await browser.type(`typed as ${era}`)
      await hit('Enter')
      await asks(new RegExp(`Echo: typed as ${era}`))
      await goTo(/^BUTTON get-sum/)
      await hit(' ')
      await goTo(/^INPUT a/)
      await browser.type('2')
      await goTo(/^BUTTON Call/)
      await hit('Enter')
      await asks(/\/b is required/)
      await goTo(/^INPUT b/)
      await browser.type('40')
      await hit('Enter')
      await asks(/sum of 2 and 40 is 42/)
      await goTo(/^BUTTON trigger-elicitation-request/)
      await hit('Enter')
      await goTo(/^BUTTON Call/)
      await hit('Enter')
      await asks(/The server asks$/m)
      await goTo(/^BUTTON Decline/)
      await hit('Enter')
      await asks(/declined/)
      await goTo(/^BUTTON trigger-long-running-operation/)
      await hit('Enter')
      await goTo(/^INPUT duration/)
      await browser.evaluate(`document.activeElement.select()`)
      await browser.type('600')
      await hit('Enter')
      await asks(/in progress/)
      await goTo(/^BUTTON Cancel/)
      await hit('Enter')
      await asks(/You cancelled the call/)
      if (era === 'legacy') break
      await goTo(/^SELECT Client revision/)
      await hit('ArrowDown')
      await asks(/Connecting|Listing|client of 2025-11-25|Tools/)
      await until(
        () => browser.evaluate<boolean>(`document.querySelectorAll('.choosing select')[1].value === '2025-11-25'`),
        'the other era',
      )
    }
    t.same(await problems(browser), [], 'axe-core finds nothing')
    withoutMistakes()
  },
)
