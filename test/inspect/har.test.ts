/**
 * The export as an HTTP archive: it is valid, and a viewer of such archives shows it.
 *
 * Runs in its own process: its browser ends with it.
 */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { Ajv } from 'ajv'
import t, { type Test } from 'tap'
import { EventRecorder } from '../../src/inspector/recorder/recorder.js'
import { Ring } from '../../src/inspector/ring.js'
import { startBridge } from '../support/bridge.js'
import { noBrowser } from '../support/chromium.js'
import { messages } from '../support/inspected.js'
import { startInspector, TOKEN } from '../support/inspector.js'
import { newPage } from '../support/inspector-page.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { tellCall, tellQuestion, tickingRing } from '../support/sights.js'

const require = createRequire(import.meta.url)

interface Entry {
  _hop: string
  _call: string
  request: { url: string; postData?: { text: string } }
  response: { status: number }
  time: number
}

async function archive(t: Test, ring: Ring): Promise<string> {
  const base = await startInspector(t, ring)
  const headers = { authorization: `Bearer ${TOKEN}` }
  return (await fetch(`${base}/inspect/export?format=har`, { headers })).text()
}

/** The entries of the archive, which is valid. */
async function entriesOf(t: Test, ring: Ring): Promise<Entry[]> {
  const har = JSON.parse(await archive(t, ring)) as { log: { entries: Entry[] } }
  const schemas = require('har-schema') as Record<string, { $id: string }>
  const ajv = new Ajv({ strict: false })
  ajv.addFormat('uri', (text) => URL.canParse(text))
  ajv.addFormat('date-time', (text) => new Date(text).toISOString() === text)
  for (const unused of ['ipv4', 'ipv6']) ajv.addFormat(unused, () => true)
  ajv.addMetaSchema(JSON.parse(readFileSync(require.resolve('ajv/lib/refs/json-schema-draft-06.json'), 'utf8')))
  ajv.addSchema(Object.values(schemas))
  const validate = ajv.getSchema('har.json#')
  t.ok(validate?.(har), `it is valid: ${JSON.stringify(validate?.errors)}`)
  return har.log.entries
}

t.test('writes a valid archive, with an entry for each request on each wire', async (t) => {
  const ring = tickingRing({ payloads: 'all' })
  tellCall(ring.record, { id: 1, texts: { request: '{"id":7}', result: '{"id":7,"result":{}}' } })
  tellQuestion(ring.record, { id: 2, answer: 3 })
  ring.record({
    kind: 'call',
    what: 'begun',
    call: 9,
    principal: 'a',
    client: { era: 'legacy' },
    method: 'ping',
  })
  const entries = await entriesOf(t, ring)
  const of = (id: string) => entries.filter((entry) => entry._call === id)
  t.same(
    of('c1').map(({ _hop }) => _hop),
    ['client', 'server'],
  )
  t.ok(of('c1').every(({ request, time }) => request.postData !== undefined && time > 0))
  t.equal(of('c2').length, 4, 'a question and its answer are two requests on each wire')
  t.equal(of('c9').length, 1)
})

t.test('an address names server, method and target, whatever their characters', async (t) => {
  const ring = tickingRing()
  tellCall(ring.record, { id: 1, name: 'weather' })
  tellCall(ring.record, { id: 2, name: 'file:///a b', more: { method: 'resources/read' }, server: 'io.github/a b' })
  tellCall(ring.record, { id: 3, name: '\ud800日本?#%"<', more: { method: 'a b/c?d#e%' }, server: 'ü/@:' })
  const urls = (await entriesOf(t, ring)).map(({ request }) => request.url)
  t.same(urls, [
    'http://mcp-bridge.invalid/tools/call/weather',
    'http://orders.invalid/tools/call/weather',
    'http://mcp-bridge.invalid/resources/read/file%3A%2F%2F%2Fa%20b',
    'http://io.github-a-b.invalid/resources/read/file%3A%2F%2F%2Fa%20b',
    'http://mcp-bridge.invalid/a%20b/c%3Fd%23e%25/%3F%E6%97%A5%E6%9C%AC%3F%23%25%22%3C',
    'http://-.invalid/a%20b/c%3Fd%23e%25/%3F%E6%97%A5%E6%9C%AC%3F%23%25%22%3C',
  ])
})

t.test('the export contains only statuses that were sent', async (t) => {
  const legacy = { era: 'legacy', transport: 'http' } as const
  const ring = tickingRing()
  const call = {
    kind: 'call',
    principal: 'a',
    client: legacy,
    method: 'ping',
    server: 'orders',
  } as const
  const message = { kind: 'message', server: 'orders', hop: 'client', bytes: 9, id: 1 } as const
  const fault = 'upstreamAuthRequired'
  const statuses: [more: object, status: number][] = [
    [{ fault, outcome: 'fault' }, 0],
    [{ outcome: 'ok' }, 200],
    [{ outcome: 'ok', client: { era: 'legacy', transport: 'stdio' } }, 200],
  ]
  for (const [i, [more]] of statuses.entries()) {
    ring.record({ ...call, ...more, call: i + 1, what: 'begun' })
    ring.record({ ...message, call: i + 1, dir: 'in', form: 'request' })
    ring.record({ ...message, call: i + 1, dir: 'out', form: 'error' })
    ring.record({ ...call, ...more, call: i + 1, what: 'ended' })
  }
  const found = (await entriesOf(t, ring)).map(({ response }) => response.status)
  t.same(
    found,
    statuses.map(([, status]) => status),
    'it is 0 if it is not known',
  )
})

t.test('a viewer shows a row for each request, with its content', { skip: noBrowser }, async (t) => {
  const ring = new Ring({ payloads: 'all' })
  const { url } = await startBridge(t, legacyStdio(t).server, {}, { recorder: new EventRecorder(ring.record) })
  for (const message of ['first', 'second']) await (await messages.post(url, messages.call('echo', { message }))).text()
  const text = await archive(t, ring)
  const { entries } = (JSON.parse(text) as { log: { entries: Entry[] } }).log
  t.same(
    entries.map(({ _hop }) => _hop),
    ['client', 'server', 'client', 'server'],
  )

  const browser = await newPage()
  await browser.open('about:blank')
  await browser.evaluate(`${readFileSync(require.resolve('perf-cascade/dist/perf-cascade.js'), 'utf8')};0`)
  await browser.evaluate(`document.body.append(perfCascade.fromHar(${text}));0`)
  const rows = await browser.evaluate<string[]>(
    `[...document.querySelectorAll('.row-item')].map((row) => row.textContent)`,
  )
  t.equal(rows.length, entries.length)
  for (const row of rows) t.match(row, /tools\/call/)
  await browser.evaluate(
    `document.querySelectorAll('.row-item')[2].dispatchEvent(new MouseEvent('click', { bubbles: true }));0`,
  )
  t.match(await browser.evaluate<string>('document.body.textContent'), /"second"|second/, 'the details of a request')
  t.same(browser.mistakes, [])
})
