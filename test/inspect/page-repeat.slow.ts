/**
 * Recorded calls in the page, in a real browser: they are opened in the view Try, changed, made again, and their answers compared; and
 * copied as code.
 *
 * Runs in its own process: its browser ends with it.
 */
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import t, { type Test } from 'tap'
import { readRecording } from '../../src/inspector/replay/recording.js'
import { noBrowser } from '../support/chromium.js'
import { until } from '../support/eventually.js'
import { pictures, problems } from '../support/inspector-page.js'
import { LegacyHttp } from '../support/legacy-http.js'
import { everything, openTry } from '../support/try-page.js'

/** The list of calls of a bridge with these servers, and a client of either era. */
async function open(t: Test, mcpServers: object, more: { width?: number; scheme?: string } = {}) {
  const page = await openTry(t, mcpServers, { ...more, view: '#/calls' })
  const { browser, url } = page
  /** Opens the newest call of a client with this name. */
  const choose = async (name: string) => {
    await browser.evaluate(
      `location.hash = '#/calls?filter=' + encodeURIComponent('-principal:inspector name:${name}')`,
    )
    const link = `[...document.querySelectorAll('table.calls tbody a')].filter((one) => one.textContent.includes(${JSON.stringify(name)})).at(-1)`
    await until(() => browser.evaluate<boolean>(`Boolean(${link})`), `the call of ${name}`)
    await browser.evaluate(`${link}.click()`)
  }
  const connect = async (mode: 'legacy' | { pin: string }) => {
    const client = new Client(
      { name: 'recorded', version: '1' },
      { versionNegotiation: { mode }, capabilities: { elicitation: { form: {} } } },
    )
    await client.connect(new StreamableHTTPClientTransport(new URL(url)))
    t.teardown(() => client.close())
    return client
  }
  return { ...page, choose, connect }
}

const MODES = [
  ['2026-07-28', { pin: '2026-07-28' }],
  ['2025-11-25', 'legacy'],
] as const

for (const [revision, mode] of MODES)
  t.test(`a call of a client of ${revision} is made again, as it was and changed`, { skip: noBrowser }, async (t) => {
    const { browser, shows, press, fill, choose, connect, withoutMistakes } = await open(t, { everything })
    const client = await connect(mode)
    await client.callTool({ name: 'get-sum', arguments: { a: 1, b: 2 }, _meta: { mine: 'kept' } })
    await choose('get-sum')
    await press('Try again')
    await shows(new RegExp(`tools/call get-sum again[^]*recorded as a client of ${revision}`))
    await until(() => browser.evaluate<boolean>(`Boolean(document.querySelector('.trying form .field'))`), 'the form')
    t.equal(
      await browser.evaluate(`document.querySelectorAll('.choosing select')[1].value`),
      revision,
      'the page is a client of the same revision',
    )
    await press('Call again')
    await shows(/Same as the recorded answer\./)
    t.match(await browser.evaluate(`document.querySelector('.outcome pre').textContent`), /"mine": "kept"/)
    await fill('b', '40')
    await fill('Metadata as JSON', '{"mine": "changed"}')
    await press('Call again')
    await shows(/1 value differs from the recorded answer/)
    t.match(
      await browser.evaluate(
        `[...document.querySelectorAll('.compared-differs code')].map((one) => one.textContent.trim())`,
      ),
      [/The sum of 1 and 2 is 3\./, /The sum of 1 and 40 is 41\./],
    )
    t.match(await browser.evaluate(`document.querySelector('.outcome pre').textContent`), /"mine": "changed"/)
    t.same(await problems(browser), [], 'axe-core finds nothing')
    await browser.screenshot(join(pictures, `repeat-${revision}.png`))
    await fill('Metadata as JSON', '[]')
    await press('Call again')
    await shows(/_meta is not a JSON object/)
    await press('Close', '[aria-label="A recorded call"]')
    await shows(/Choose a tool, prompt or resource/)
    withoutMistakes()
  })

for (const [revision, mode] of MODES)
  t.test(`questions to a client of ${revision} can be answered again as they were`, { skip: noBrowser }, async (t) => {
    const { shows, press, choose, connect, withoutMistakes } = await open(t, { everything })
    const client = await connect(mode)
    client.setRequestHandler('elicitation/create', async () => ({ action: 'accept', content: { name: 'Ada' } }))
    await client.callTool({ name: 'trigger-elicitation-request', arguments: {} })
    await choose('trigger-elicitation-request')
    await press('Try again')
    await press('Call again')
    await shows(/The server asks/)
    await press('Answer as recorded', '.question')
    await shows(/Same as the recorded answer\./)
    await press('Call again')
    await press('Decline', '.question')
    await shows(/values? differs? from the recorded answer/)
    withoutMistakes()
  })

t.test('calls without a form are made again as JSON, also failed ones', { skip: noBrowser }, async (t) => {
  const { browser, shows, press, fill, choose, connect, withoutMistakes } = await open(
    t,
    { everything },
    { width: 400, scheme: 'dark' },
  )
  const client = await connect('legacy')
  await client.readResource({ uri: 'demo://resource/no/such' }).catch(() => {})
  await client.callTool({ name: 'no-such-tool', arguments: { token: 'hunter2' } }).catch(() => {})
  await choose('demo://resource/no/such')
  await press('Try again')
  await shows(/Parameters as JSON|resources\/read/)
  await press('Call again')
  await shows(/Same as the recorded answer\./)
  await fill('Parameters as JSON', '{"uri": "demo://resource/static/document/features.md"}')
  await press('Call again')
  await shows(/\d+ values differ from the recorded answer/)
  await until(() => browser.evaluate<boolean>(`document.documentElement.scrollWidth <= 400`), 'no scrolling sideways')
  t.same(await problems(browser), [], 'axe-core finds nothing')
  await fill('Parameters as JSON', '[1]')
  await press('Call again')
  await shows(/The parameters are not a JSON object/)
  await choose('no-such-tool')
  await press('Try again')
  await shows(/A secret or binary value is hidden in the recording: enter a value for \/arguments\/token/)
  withoutMistakes()
})

/** Texts of a server that wants out of the page. */
const HOSTILE = [
  '<img src=x onerror="alert(1)">',
  '<script>fetch("https://evil.example/")</script>',
  '\u202Eexe.txt',
  '__proto__',
  'javascript:alert(1)',
]

t.test('comparing hostile answers executes nothing', { skip: noBrowser }, async (t) => {
  let answers = 0
  const server = await LegacyHttp.start(t, {
    override: ({ message }: { message?: Record<string, unknown> }, response: ServerResponse) => {
      const method = message?.['method']
      const members = Object.fromEntries(HOSTILE.map((text, i) => [`${text}${i}`, `${text}${answers}`]))
      const result =
        method === 'tools/list'
          ? { tools: [{ name: 'hostile', inputSchema: { type: 'object', properties: {} } }] }
          : method === 'tools/call'
            ? {
                content: HOSTILE.slice(answers++ % 2).map((text) => ({ type: 'text', text })),
                structuredContent: members,
              }
            : undefined
      if (result === undefined) return false
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end(JSON.stringify({ jsonrpc: '2.0', id: message?.['id'], result }))
      return true
    },
  } as never)
  const { browser, shows, press, choose, connect, withoutMistakes } = await open(t, { hostile: { url: server.url } })
  const client = await connect('legacy')
  const args = Object.fromEntries(HOSTILE.map((text) => [text, text]))
  await client.callTool({ name: 'hostile', arguments: args })
  await choose('hostile')
  await press('Try again')
  await shows(/Arguments as JSON|Edit as JSON/)
  t.match(
    await browser.evaluate(`document.querySelector('.trying textarea')?.value ?? ''`),
    /"javascript:alert\(1\)": "javascript:alert\(1\)"/,
    'arguments without a field are JSON',
  )
  await press('Call again')
  await shows(/\d+ values differ from the recorded answer/)
  t.equal(await browser.evaluate(`document.querySelectorAll('.trying img, .trying script, .trying iframe').length`), 0)
  withoutMistakes()
})

t.test('a call is copied as a recording', { skip: noBrowser }, async (t) => {
  const { browser, shows, press, choose, connect, withoutMistakes } = await open(t, { everything })
  await browser.grant(['clipboardReadWrite', 'clipboardSanitizedWrite'])
  await browser.send('Emulation.setFocusEmulationEnabled', { enabled: true })
  const client = await connect({ pin: '2026-07-28' })
  await client.callTool({ name: 'echo', arguments: { message: 'copied' } })
  await choose('echo')
  await shows(/Copy call/)
  t.same(await browser.evaluate(`[...document.querySelectorAll('.copying option')].map(({ text }) => text)`), [
    'curl (sh)',
    'PowerShell',
    'SDK v1',
    'SDK v2',
    'recording',
  ])
  await browser.evaluate(`{
    const select = document.querySelector('.copying select')
    select.value = 'recording'
    select.dispatchEvent(new Event('change', { bubbles: true }))
    0
  }`)
  await press('Copy call')
  await shows(/Copied the file for mcp-bridge replay/)
  const copied = readRecording(await browser.evaluate<string>('navigator.clipboard.readText()'))
  t.match(copied.calls, [
    { server: 'everything', revision: '2026-07-28', params: { arguments: { message: 'copied' } } },
  ])
  withoutMistakes()
})
