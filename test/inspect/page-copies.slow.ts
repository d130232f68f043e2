/**
 * What the inspector's page copies: links, and requests as command lines.
 *
 * Runs in its own process: its browser ends with it.
 */
import t from 'tap'
import { type Chromium, noBrowser } from '../support/chromium.js'
import { until } from '../support/eventually.js'
import { TOKEN } from '../support/inspector.js'
import { look } from '../support/inspector-page.js'
import { tellCall, tickingRing } from '../support/sights.js'

const skip = noBrowser

/** Lets the page use the clipboard, and gives what is in it. */
async function clipboardOf(browser: Chromium): Promise<() => Promise<string>> {
  await browser.grant(['clipboardReadWrite', 'clipboardSanitizedWrite'])
  await browser.send('Emulation.setFocusEmulationEnabled', { enabled: true })
  return () => browser.evaluate<string>('navigator.clipboard.readText()')
}

const press = (browser: Chromium, button: string) =>
  browser.evaluate(
    `[...document.querySelectorAll('button')].find(({ innerText }) => innerText === '${button}').click()`,
  )

/** Copies the call in the form with this label. */
const copyAs = (browser: Chromium, label: string) =>
  browser.evaluate(`{
    const select = document.querySelector('.copying select')
    select.value = [...select.options].find(({ text }) => text === ${JSON.stringify(label)}).value
    select.dispatchEvent(new Event('change', { bubbles: true }))
    setTimeout(() => document.querySelector('.copying button').click())
    0
  }`)

t.test('copies a link to the current view by a key and by a button, without the token', { skip }, async (t) => {
  const ring = tickingRing()
  tellCall(ring.record, { id: 1 })
  const { base, browser, shows, rows, go, withoutMistakes } = await look(t, ring)
  const clipboard = await clipboardOf(browser)
  await until(async () => (await rows()).length === 1)
  await go('#/calls?status=ok')
  await until(async () => (await browser.evaluate('location.hash')) === '#/calls?status=ok')
  await browser.press('y')
  await shows(/Copied the link/)
  t.equal(await clipboard(), `${base}/inspect#/calls?status=ok`)
  await go('#/calls/c1?status=ok&tab=why')
  await shows(/Rules/)
  await press(browser, 'Copy link')
  await until(async () => (await clipboard()) === `${base}/inspect#/calls/c1?status=ok&tab=why`)
  t.notMatch(await clipboard(), TOKEN)
  withoutMistakes()
})

t.test('copies a request as a command, if its text is stored completely', { skip }, async (t) => {
  const ring = tickingRing({ payloads: 'all' })
  // As long as the message is said to be.
  const request = '{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"book"}}'.padEnd(280)
  tellCall(ring.record, { id: 1, texts: { request, result: '{}' } })
  tellCall(ring.record, { id: 2, texts: { request: '{"password":"hidden"}'.padEnd(280), result: '{}' } })
  const { browser, shows, go, withoutMistakes } = await look(t, ring)
  const clipboard = await clipboardOf(browser)
  await go('#/calls/c1')
  await shows(/Copy call/)
  await copyAs(browser, 'curl (sh)')
  await shows(/Copied the command for sh: it needs \$MCP_BRIDGE_URL, \$MCP_SESSION_ID, \$TOKEN/)
  t.equal(
    await clipboard(),
    [
      'curl "$MCP_BRIDGE_URL"',
      "-H 'content-type: application/json'",
      "-H 'accept: application/json, text/event-stream'",
      "-H 'mcp-protocol-version: 2026-07-28'",
      "-H 'mcp-method: tools/call'",
      "-H 'mcp-name: book'",
      '-H "mcp-session-id: $MCP_SESSION_ID"',
      '-H "authorization: Bearer $TOKEN"',
      `--data-binary '${request}'`,
    ].join(' \\\n  '),
  )
  await copyAs(browser, 'PowerShell')
  await shows(/Copied the command for PowerShell: it needs \$env:MCP_BRIDGE_URL, \$env:MCP_SESSION_ID, \$env:TOKEN/)
  t.match(await clipboard(), /^\(Invoke-WebRequest .*'mcp-name' = 'book'\n.*Bearer \$env:TOKEN".* -Body '\{"jsonrpc/s)
  await go('#/calls/c2')
  await shows(/book #c2.*?1 hidden value/s)
  t.same(
    await browser.evaluate(`[...document.querySelectorAll('.copying option')].map(({ text }) => text)`),
    [],
    'a request with a hidden value cannot be repeated as a command',
  )
  withoutMistakes()
})
