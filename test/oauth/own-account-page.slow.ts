/** The page where people sign in to servers, in a real browser: without scripts, in light and dark, by keyboard, for everybody. */
import { mkdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { Client as ModernClient, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import t, { type Test } from 'tap'
import { bearer } from '../support/asked-to-sign-in.js'
import { Chromium, noBrowser } from '../support/chromium.js'
import { startCompany } from '../support/company.js'
import { until } from '../support/eventually.js'

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const pictures = fileURLToPath(new URL('../../results/sign-in/', import.meta.url))
mkdirSync(pictures, { recursive: true })

/** What is wrong with a page for people with other abilities. */
async function barriers(browser: Chromium): Promise<unknown[]> {
  // The policy of the page allows no scripts: DevTools run this one.
  await browser.evaluate(axe)
  return browser.evaluate(
    `axe.run().then(({ violations }) => violations.map(({ id, nodes }) => id + ': ' + nodes.map((node) => node.html).join(' ')))`,
  )
}

async function looksRight(t: Test, browser: Chromium, name: string): Promise<void> {
  for (const scheme of ['light', 'dark'] as const) {
    await browser.emulate({ scheme, width: scheme === 'light' ? 1000 : 380, height: 700 })
    t.same(await barriers(browser), [], `${name}, ${scheme}`)
    await browser.screenshot(`${pictures}${name}-${scheme}.png`)
    const isWide = await browser.evaluate<boolean>('document.documentElement.scrollWidth > innerWidth')
    t.notOk(isWide, `${name} fits a screen of this width`)
  }
}

t.test('the question of a call is answered in a browser, by keyboard alone', { skip: noBrowser }, async (t) => {
  const { url, origin, tokenOf, becomes } = await startCompany(t)
  const browser = await Chromium.start(t)
  const token = await tokenOf('alice')
  const client = new ModernClient(
    { name: 'An <i>application</i>', version: '1' },
    { capabilities: { elicitation: { url: {} } }, versionNegotiation: { mode: { pin: '2026-07-28' } } },
  )
  t.teardown(() => client.close())
  // While it goes from one page to the next, there is none.
  const shows = (text: RegExp) =>
    until(async () => text.test(await browser.text().catch(() => '')), `the page shows ${text}`)
  const press = async (label: string) => {
    const focused = 'document.activeElement.innerText'
    for (let tabs = 0; tabs < 20 && (await browser.evaluate(focused)) !== label; tabs++) await browser.press('Tab')
    await browser.send('Input.dispatchKeyEvent', {
      type: 'keyDown',
      key: 'Enter',
      code: 'Enter',
      text: '\r',
      windowsVirtualKeyCode: 13,
    })
    await browser.send('Input.dispatchKeyEvent', {
      type: 'keyUp',
      key: 'Enter',
      code: 'Enter',
      windowsVirtualKeyCode: 13,
    })
  }
  becomes('alice')
  client.setRequestHandler('elicitation/create', async ({ params }) => {
    await browser.open(String((params as { url?: string }).url))
    await shows(/Sign in to test/)
    t.match(await browser.text(), /a client that calls itself “An <i>application<\/i>”/, 'as text')
    await looksRight(t, browser, 'agreement')
    await press('Continue')
    await shows(/You are signed in to test/)
    await looksRight(t, browser, 'accounts')
    return { action: 'accept' }
  })
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: bearer(token) } }))
  t.match(await client.callTool({ name: 'whoami', arguments: {} }), { content: [{ text: 'alice' }] })
  t.equal(await browser.evaluate('document.cookie'), '', 'no script could read the cookie')
  t.equal(await browser.evaluate('document.scripts.length'), 0)
  await press('Sign out')
  await shows(/Not signed in/)
  await press('Not you?')
  await shows(/Goodbye/)
  t.equal(new URL(await browser.evaluate<string>('location.href')).origin, origin)
  t.same(browser.mistakes, [], 'no error and no violation of the policy')
})

t.test('the form for a token can be used by everybody', { skip: noBrowser }, async (t) => {
  const { origin } = await startCompany(t, { auth: { tokens: { alice: 'the-token-of-alice' } } })
  const browser = await Chromium.start(t)
  await browser.open(`${origin}/sign-in`)
  await looksRight(t, browser, 'token')
  await browser.evaluate(`document.querySelector('#token').value = 'the-token-of-alice'`)
  await browser.evaluate(`document.querySelector('form').submit()`)
  await until(async () => /You are alice/.test(await browser.text().catch(() => '')), 'the page knows alice')
  t.same(browser.mistakes, [])
})
