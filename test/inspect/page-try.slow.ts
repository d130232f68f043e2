/**
 * Calls from the page, in a real browser, of real servers through the bridge: lists, forms, results, questions, both eras.
 *
 * Runs in its own process: its browser ends with it.
 */
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import t from 'tap'
import { noBrowser } from '../support/chromium.js'
import { until } from '../support/eventually.js'
import { pictures, problems } from '../support/inspector-page.js'
import { everything, openTry } from '../support/try-page.js'

t.test('the page is at most 120 KB, compressed', async (t) => {
  const { bundlePage } = await import(new URL('../../.ci/page.mjs', import.meta.url).href)
  const { script, style, html } = (await bundlePage()).page as Record<string, string>
  const bytes = gzipSync([script, style, html].join('')).length
  t.ok(bytes <= 120_000, `${bytes} bytes`)
})

t.test(
  'a person calls tools, answers questions and cancels, as a client of either era',
  { skip: noBrowser },
  async (t) => {
    const { browser, asks, press, fill, as, withoutMistakes } = await openTry(t, { everything })
    for (const revision of ['2026-07-28', '2025-11-25']) {
      await as(revision)
      await asks(/Tools \d+/)
      await press('echo', '.items')
      await fill('message', `hello from ${revision}`)
      await press('Call', '.trying')
      await asks(new RegExp(`Echo: hello from ${revision}`))
      await press('get-sum', '.items')
      await fill('a', '2')
      await fill('b', 'x')
      await press('Call', '.trying')
      await asks(/\/b is not a number/)
      await fill('b', '40')
      await press('Call', '.trying')
      await asks(/sum of 2 and 40 is 42/)
      await press('trigger-sampling-request', '.items')
      await fill('prompt', 'What is the capital of France?')
      await press('Call', '.trying')
      await asks(/answer in place of the model/)
      await browser.evaluate(`{
      const field = [...document.querySelectorAll('.question textarea')].at(-1)
      field.value = 'Paris, says a person'
      field.dispatchEvent(new Event('input', { bubbles: true }))
      0
    }`)
      await press('Answer', '.question')
      await asks(/Paris, says a person/)
      await press('trigger-elicitation-request', '.items')
      await press('Call', '.trying')
      await asks(/The server asks$/m)
      t.same(await problems(browser), [], 'axe-core finds nothing while a question waits')
      await press('Decline', '.question')
      await asks(/declined/)
      await press('trigger-long-running-operation', '.items')
      await fill('duration', '600')
      await press('Call', '.trying')
      await asks(/in progress/)
      await press('Cancel', '.outcome')
      await asks(/You cancelled the call/)
    }
    await press('get-tiny-image', '.items')
    await press('Call', '.trying')
    await until(
      () => browser.evaluate<boolean>(`(document.querySelector('canvas.picture')?.width ?? 300) !== 300`),
      'the drawn image',
    )
    await browser.screenshot(join(pictures, 'try.png'))
    t.same(await problems(browser), [], 'axe-core finds nothing')
    withoutMistakes()
  },
)

t.test(
  'servers that ask for roots are told those of the page, and lists are searched',
  { skip: noBrowser },
  async (t) => {
    const { browser, shows, press, as, withoutMistakes } = await openTry(t, { everything })
    /** Types into a field at the left. */
    const type = (field: string, text: string) =>
      browser.evaluate(`{
      const field = document.querySelector(${JSON.stringify(`.choosing ${field}`)})
      field.value = ${JSON.stringify(text)}
      field.dispatchEvent(new Event('input', { bubbles: true }))
      0
    }`)
    await shows(/Tools \d+/)
    await type('textarea', 'file:///home/ada')
    for (const revision of ['2026-07-28', '2025-11-25']) {
      await as(revision)
      await shows(/Tools \d+/)
      await press('get-roots-list', '.items')
      await press('Call', '.trying')
      await until(
        () => browser.evaluate<boolean>(`document.querySelector('.outcome')?.textContent.includes('file:///home/ada')`),
        `the roots as a client of ${revision}`,
      )
    }
    await type('input[type=search]', 'SUM')
    const listed = () =>
      browser.evaluate<string[]>(`[...document.querySelectorAll('.items button')].map((one) => one.textContent)`)
    await until(async () => (await listed()).length === 1, 'one item')
    t.match(await listed(), [/^get-sum/])
    withoutMistakes()
  },
)

for (const scheme of ['dark', 'light'])
  t.test(`it fits on a narrow screen, ${scheme}`, { skip: noBrowser }, async (t) => {
    const { browser, shows, press, withoutMistakes } = await openTry(t, { everything }, { width: 400, scheme })
    await shows(/Tools \d+/)
    await press('get-structured-content', '.items')
    await press('Call', '.trying')
    await until(() => browser.evaluate<boolean>(`document.documentElement.scrollWidth <= 400`), 'no scrolling sideways')
    await browser.screenshot(join(pictures, `try-narrow-${scheme}.png`))
    t.same(await problems(browser), [], 'axe-core finds nothing')
    withoutMistakes()
  })
