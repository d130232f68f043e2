/**
 * `mcp-bridge inspect` with bridges that clients start, and with a file, in a real browser: they appear, can be chosen and called,
 * and stay when they have ended.
 *
 * Runs in its own process: its browser ends with it.
 */
import { truncateSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { execPath } from 'node:process'
import t, { type Test } from 'tap'
import { noBrowser } from '../support/chromium.js'
import { run, says, startProgram } from '../support/cli.js'
import { until } from '../support/eventually.js'
import { temporaryFolder } from '../support/folder.js'
import { messages } from '../support/inspected.js'
import { newPage, problems } from '../support/inspector-page.js'
import { eventsIn, tellCall, tickingRing } from '../support/sights.js'

const skip = noBrowser || (process.platform === 'win32' && 'Windows has pipes')
const EVERYTHING = createRequire(import.meta.url).resolve('@modelcontextprotocol/server-everything/dist/index.js')

/** A bridge as a client starts it. */
function startBridge(t: Test, env: Record<string, string>) {
  const bridge = startProgram(t, ['--inspect', '-l', 'stdio', '--', execPath, EVERYTHING, 'stdio'], env)
  return {
    pid: String(bridge.child.pid),
    call: (message: string) => bridge.child.stdin.write(`${messages.call('echo', { message })}\n`),
    kill: () => bridge.child.kill('SIGKILL'),
  }
}

/** The page of `mcp-bridge inspect`. */
async function open(t: Test, args: readonly string[], env: Record<string, string>) {
  const program = startProgram(t, ['inspect', '--no-browser', ...args], env)
  const [, url = ''] = await says(program, /Inspector: (http:\S+)/)
  const browser = await newPage()
  await browser.emulate({})
  await browser.open('about:blank')
  browser.mistakes.length = 0
  await browser.open(url)
  const shows = (text: RegExp) => until(async () => text.test(await browser.text()), `the page shows ${text}`)
  const rows = () =>
    browser.evaluate<string[]>(
      `[...document.querySelectorAll('.calls tbody tr:not(.space)')].map((row) => row.innerText)`,
    )
  const go = (place: string) => browser.evaluate(`location.hash = ${JSON.stringify(place)}`)
  return { program, browser, url, shows, rows, go }
}

t.test('shows, filters and calls the bridges of a user, as they start and end', { skip }, async (t) => {
  const env = { XDG_STATE_HOME: temporaryFolder(t) }
  const { program, browser, url, shows, rows, go } = await open(t, [], env)
  t.match(program.stderr(), /0 bridges run with --inspect --listen stdio as this user; others appear/)
  const first = startBridge(t, env)
  first.call('one')
  await until(async () => (await rows()).length === 1, 'its call is on the page')
  const second = startBridge(t, env)
  second.call('two')
  await until(async () => (await rows()).length === 2, 'and that of another bridge')
  await until(async () => (await rows()).every((row) => /server-everything \(\d+\)/.test(row)))
  await until(
    () =>
      browser.evaluate<boolean>(
        `[...document.querySelectorAll('select[aria-label=bridge] option')].some((one) => one.textContent === 'server-everything (${first.pid})')`,
      ),
    'bridges can be chosen',
  )
  t.same(await problems(browser), [])
  await go(`#/calls?bridge=${first.pid}`)
  await until(async () => (await rows()).length === 1)
  await go(`#/calls?filter=bridge:${second.pid}`)
  await until(async () => (await rows()).length === 1)
  t.match(await rows(), [new RegExp(`server-everything \\(${second.pid}\\)`)])

  await go('#/servers')
  await shows(new RegExp(`server-everything \\(${first.pid}\\)\\s+ready`))
  await go('#/try')
  await shows(/Tools \d+/)
  const press = (text: string, within: string) =>
    until(
      () =>
        browser.evaluate<boolean>(`{
          const one = [...document.querySelectorAll('${within} button')].find((one) => one.textContent.trim().startsWith('${text}'))
          one?.click()
          Boolean(one)
        }`),
      `the button ${text}`,
    )
  await press('echo', '.items')
  await until(
    () =>
      browser.evaluate<boolean>(`{
        const label = [...document.querySelectorAll('.trying label')].find((one) => one.textContent.trim().startsWith('message'))
        const field = label && document.getElementById(label.htmlFor)
        if (field) field.value = 'hello from the page'
        field?.dispatchEvent(new Event('input', { bubbles: true }))
        Boolean(field)
      }`),
    'the form',
  )
  await press('Call', '.trying')
  await until(async () => {
    // The server asks for the roots of its client when a session begins.
    await browser.evaluate(`document.querySelector('.question button')?.click()`)
    return /Echo: hello from the page/.test(await browser.text())
  }, 'the answer')

  second.kill()
  await says(program, new RegExp(`bridge ${second.pid} has ended; 1 now`))
  await go(`#/calls?bridge=${second.pid}`)
  await until(async () => (await rows()).length === 1, 'its calls stay')
  await go('#/servers')
  await shows(/the bridge has ended/)

  t.match(await (await fetch(url)).text(), /<html/)
  t.equal((await fetch(new URL('/inspect/calls', url))).status, 401, 'without the token there is only the page')
  const other = await fetch(new URL('/inspect/calls', url), { headers: { origin: 'https://evil.example' } })
  t.equal(other.status, 403)
  t.same(browser.mistakes, [])
  program.child.kill('SIGTERM')
  t.equal(await program.ended, 0)
})

t.test('shows a past session from a file, without anything that needs a bridge', { skip }, async (t) => {
  const folder = temporaryFolder(t)
  const ring = tickingRing({ payloads: 'all' })
  tellCall(ring.record, { id: 1, name: 'book', texts: { request: '{"params":{"a":"mine"}}', result: '{}' } })
  tellCall(ring.record, { id: 2, name: 'broken', outcome: 'fault', why: 'Connection refused' })
  const file = join(folder, 'past.jsonl')
  writeFileSync(
    file,
    `${eventsIn(ring)
      .map((seen) => JSON.stringify(seen))
      .join('\n')}\n{"cut off`,
  )
  const { program, browser, shows, rows, go } = await open(t, [file], {})
  t.match(program.stderr(), /16 events of .*past\.jsonl; 1 lines are not events and were skipped, the first is line 17/)
  await shows(/file past\.jsonl/)
  await until(async () => (await rows()).length === 2)
  await go('#/calls/c1?tab=raw')
  await until(() => browser.evaluate<boolean>(`document.getElementById('panel')?.textContent.includes('mine')`))
  t.same(await problems(browser), [])
  const buttons = await browser.evaluate<string[]>(
    `[...document.querySelectorAll('button')].map((one) => one.innerText)`,
  )
  for (const one of ['Clear', 'Pin call', 'Keep texts for 5 min', 'Back to the bridge'])
    t.notOk(buttons.includes(one), one)
  await go('#/refused')
  await shows(/No refused requests in this file/)
  t.same(browser.mistakes, [])
  program.child.kill('SIGINT')
  t.equal(await program.ended, 0)
})

t.test('says what is wrong with a file', async (t) => {
  const folder = temporaryFolder(t)
  const cases: [name: string, content: string | number, says: RegExp][] = [
    ['empty.jsonl', '', /has no events: give an export as JSONL, or what mcp-bridge tail --json has printed/],
    ['text.txt', 'hello\nworld', /has no events/],
    ['calls.har', '{"log":{"version":"1.2"}}', /is an HTTP archive \(HAR\).*export JSONL instead/],
    ['large.jsonl', 100 * 1024 * 1024 + 1, /is larger than 100 MiB: /],
  ]
  for (const [name, content, says] of cases) {
    const file = join(folder, name)
    writeFileSync(file, typeof content === 'string' ? content : '')
    if (typeof content === 'number') truncateSync(file, content)
    const { code, stderr } = await run(t, ['inspect', file])
    t.equal(code, 2, name)
    t.match(stderr, says)
  }
  t.match((await run(t, ['inspect', join(folder, 'none')])).stderr, /cannot be read: ENOENT/)
  t.match((await run(t, ['inspect', folder])).stderr, /is not a file/)
})
