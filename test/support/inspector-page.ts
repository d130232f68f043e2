/** The page of the inspector in a browser. */
import { mkdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import root, { type Test } from 'tap'
import type { InspectorOptions } from '../../src/inspector/answers.js'
import type { PageFiles } from '../../src/inspector/page.js'
import type { Ring } from '../../src/inspector/ring.js'
import { Chromium, noBrowser } from './chromium.js'
import { until } from './eventually.js'
import { startInspector, TOKEN } from './inspector.js'

const { bundlePage } = (await import(new URL('../../.ci/page.mjs', import.meta.url).href)) as {
  bundlePage(): Promise<{ page: PageFiles }>
}
const page = noBrowser ? undefined : (await bundlePage()).page
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
/** Where pictures of the page are kept. */
export const pictures = fileURLToPath(new URL('../../results/inspector/', import.meta.url))
mkdirSync(pictures, { recursive: true })

let started: Promise<Chromium> | undefined

/** The browser of this file of tests, with a new page. It starts when a test first needs it. */
export async function newPage(): Promise<Chromium> {
  started ??= Chromium.start(root)
  const browser = await started
  await browser.renew()
  return browser
}

/** A page that shows the inspector of a ring. It has made no mistake when the test ends. */
export async function look(t: Test, ring: Ring, more: Partial<InspectorOptions> = {}, fragment = TOKEN) {
  const browser = await newPage()
  await browser.emulate({})
  return lookWith(browser, t, ring, more, fragment)
}

/** The same with a browser that runs. */
export async function lookWith(
  browser: Chromium,
  t: Test,
  ring: Ring,
  more: Partial<InspectorOptions> = {},
  fragment = TOKEN,
) {
  const base = await startInspector(t, ring, { page, ...more })
  // The page that it showed before asks for nothing any more.
  await browser.open('about:blank')
  browser.mistakes.length = 0
  browser.requests.length = 0
  await browser.open(`${base}/inspect#${fragment}`)
  const shows = (text: RegExp) => until(async () => text.test(await browser.text()), `the page shows ${text}`)
  const rows = () =>
    browser.evaluate<string[]>(
      `[...document.querySelectorAll('.calls tbody tr:not(.space)')].map((row) => row.innerText)`,
    )
  const go = (place: string) => browser.evaluate(`location.hash = ${JSON.stringify(place)}`)
  const withoutMistakes = () => {
    t.same(browser.mistakes, [], 'no error and no violation of the policy')
    t.same(
      browser.requests.filter((url) => !url.startsWith(base) && url !== 'about:blank' && !url.startsWith('blob:')),
      [],
      'no request to another host',
    )
  }
  return { base, browser, shows, rows, go, withoutMistakes }
}

/** Drops a file with a text on the page. */
export function drop(browser: Chromium, text: string): Promise<unknown> {
  return browser.evaluate(`{
    const data = new DataTransfer()
    data.items.add(new File([${JSON.stringify(text)}], 'bug.jsonl'))
    window.dispatchEvent(new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true }))
    0
  }`)
}

/** Problems that axe-core finds. */
export async function problems(browser: Chromium): Promise<string[]> {
  await browser.evaluate(`${axe};0`)
  return browser.evaluate<string[]>(
    `axe.run().then(({ violations }) => violations.map(({ id, nodes }) => id + ': ' + nodes.map(({ html }) => html).join(' ').slice(0, 600)))`,
  )
}
