/**
 * The banner of a failed call on the inspector's page, with a program that really exits.
 *
 * Runs in its own process: its browser ends with it.
 */
import { execPath } from 'node:process'
import t from 'tap'
import { EventRecorder } from '../../src/inspector/recorder/recorder.js'
import { Ring } from '../../src/inspector/ring.js'
import { startBridge } from '../support/bridge.js'
import { noBrowser } from '../support/chromium.js'
import { until } from '../support/eventually.js'
import { temporaryFile } from '../support/folder.js'
import { messages } from '../support/inspected.js'
import { look, pictures, problems } from '../support/inspector-page.js'
import { tellCall, tickingRing } from '../support/sights.js'

const skip = noBrowser

/** Speaks the legacy era, and exits with code 3 when a tool is called. */
const PROGRAM = `
const answer = (id, result) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, result }) + '\\n')
require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method } = JSON.parse(line)
  if (method === 'initialize') answer(id, { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'fragile', version: '1' } })
  else if (method === 'tools/list') answer(id, { tools: [{ name: 'crash', inputSchema: { type: 'object' } }] })
  else if (method === 'tools/call') {
    process.stderr.write('reading the table\\nTypeError: <b>table</b> is undefined\\n')
    process.exitCode = 3
    process.stdin.destroy()
  } else if (id !== undefined) process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32601, message: 'no ' + method } }) + '\\n')
})
`

t.test('says how the program has exited, and what it wrote, on the first tab', { skip }, async (t) => {
  const ring = new Ring({ payloads: 'all' })
  const entry = { command: execPath, args: [temporaryFile(t, 'fragile.cjs', PROGRAM)] }
  const { url } = await startBridge(t, entry, {}, { recorder: new EventRecorder(ring.record) })
  await (await messages.post(url, messages.call('crash', {}))).text()
  const { browser, rows, shows, withoutMistakes } = await look(t, ring)
  await until(async () => (await rows()).some((row) => /crash/.test(row)), 'the call')
  await browser.evaluate(
    `[...document.querySelectorAll('.calls tbody tr')].find((row) => /crash/.test(row.innerText)).click()`,
  )
  await shows(/fault: [^\n]*exited with code 3/)
  await shows(
    /Last lines on stderr\s+after \S+ m?s reading the table\s+after \S+ m?s TypeError: <b>table<\/b> is undefined/,
  )
  await shows(/What to do:/)
  t.equal(await browser.evaluate(`document.querySelector('[aria-selected="true"]').innerText`), 'Messages')
  t.equal(await browser.evaluate(`document.querySelectorAll('.failure b').length`), 2, 'lines of a program are text')
  for (const scheme of ['dark', 'light']) {
    await browser.emulate({ scheme, width: 1440 })
    await until(() => browser.evaluate<boolean>('document.getAnimations().length === 0'), 'colours have changed')
    t.same(await problems(browser), [])
  }
  await browser.screenshot(`${pictures}failure.png`)
  withoutMistakes()
})

t.test('has the text of an error, with its line breaks and within bounds', { skip }, async (t) => {
  const ring = tickingRing({ payloads: 'all' })
  const message = `No table\nfor ${'x'.repeat(5_000)}`
  const texts = { request: '{}', result: JSON.stringify({ error: { code: -32603, message } }) }
  tellCall(ring.record, { id: 1, outcome: 'error', texts })
  tellCall(ring.record, { id: 2, outcome: 'ok' })
  const { browser, go, shows, withoutMistakes } = await look(t, ring)
  await go('#/calls/c1')
  await shows(/error -32603: No table\nfor x{500}/)
  t.ok((await browser.evaluate<number>(`document.querySelector('.failure').innerText.length`)) < 1_200)
  await go('#/calls/c2')
  await until(() => browser.evaluate<boolean>(`document.querySelector('.failure') === null`))
  withoutMistakes()
})
