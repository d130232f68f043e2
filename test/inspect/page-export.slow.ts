/**
 * The exports of the inspector's page: of what the bridge has kept, and without a bridge, of what the page has.
 *
 * Runs in its own process: its browser ends with it.
 */
import t, { type Test } from 'tap'
import type { RecordedEvent } from '../../src/inspector/recorder/events.js'
import type { Ring } from '../../src/inspector/ring.js'
import { type Chromium, noBrowser } from '../support/chromium.js'
import { until } from '../support/eventually.js'
import { drop, look, lookWith, newPage } from '../support/inspector-page.js'
import { ToolScope } from '../support/scope.js'
import { tellCall, tickingRing } from '../support/sights.js'

const skip = noBrowser

/** Presses a button of the page, and gives the file that it saves, with its name. */
async function pressed(browser: Chromium, button: string): Promise<{ name: string; text: string }> {
  return browser.evaluate(`(async () => {
    const saved = new Promise((resolve) => {
      let blob
      URL.createObjectURL = (given) => { blob = given; return 'blob:none' }
      HTMLAnchorElement.prototype.click = async function () { resolve({ name: this.download, text: await blob.text() }) }
    });
    [...document.querySelectorAll('button')].find(({ innerText }) => innerText === ${JSON.stringify(button)}).click()
    return saved
  })()`)
}

const eventsOf = (text: string) =>
  text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as RecordedEvent)
const callsOf = (text: string) => [...new Set(eventsOf(text).map(({ call }) => call))]

function tellThree({ record }: Ring): void {
  record({ kind: 'verdict', server: 'orders', era: 'legacy', transport: 'stdio', why: 'answered initialize', ms: 12 })
  tellCall(record, { id: 1, name: 'first', texts: { request: '{"a":"text"}', result: '{}' } })
  tellCall(record, { id: 2, name: 'second' })
  tellCall(record, { id: 3, name: 'third', outcome: 'tool_error' })
}

t.test('exports the filtered calls as events, and as an archive', { skip }, async (t) => {
  const ring = tickingRing({ payloads: 'all' })
  tellThree(ring)
  const { browser, rows, go, withoutMistakes } = await look(t, ring)
  await until(async () => (await rows()).length === 3)
  const all = await pressed(browser, 'Export JSONL')
  t.equal(all.name, 'mcp-bridge.jsonl')
  t.same(callsOf(all.text), [undefined, 'c1', 'c2', 'c3'])
  t.match(all.text, /\\"a\\":\\"text\\"/, 'with texts')
  await go('#/calls?status=tool_error')
  await until(async () => (await rows()).length === 1)
  t.same(callsOf((await pressed(browser, 'Export JSONL')).text), ['c3'])
  const archive = await pressed(browser, 'Export HAR')
  t.equal(archive.name, 'mcp-bridge.har')
  const { entries } = (JSON.parse(archive.text) as { log: { entries: { _call: string }[] } }).log
  t.same([...new Set(entries.map(({ _call }) => _call))], ['c3'])
  withoutMistakes()
})

t.test('after the end of the bridge, exports the events of the page', { skip }, async (t) => {
  const ring = tickingRing({ payloads: 'all' })
  const call = { kind: 'call', what: 'begun', principal: 'a', client: { era: 'legacy' } } as const
  ring.record({ ...call, call: 4, method: 'ping' })
  tellThree(ring)
  const browser = await newPage()
  const bridge = new ToolScope()
  const { shows, rows, go } = await lookWith(browser, bridge as unknown as Test, ring)
  await until(async () => (await rows()).length === 4)
  await bridge.end()
  await shows(/the bridge is unreachable|the connection was closed/)
  const { name, text } = await pressed(browser, 'Export JSONL')
  t.equal(name, 'mcp-bridge.jsonl')
  t.same(eventsOf(text), [...ring.after(0)], 'the events, in order, without texts')
  await shows(/Exported from this page, without message texts/)
  t.notMatch(await browser.text(), /Export HAR/)
  await go('#/calls?filter=tool:second')
  await until(async () => (await rows()).length === 1)
  t.same(callsOf((await pressed(browser, 'Export JSONL')).text), ['c2'])
  await go('#/calls?filter=ms>1+status:open')
  await until(async () => (await rows()).length === 1)
  t.same(callsOf((await pressed(browser, 'Export JSONL')).text), ['c4'])
  await go('#/calls/c1')
  await shows(/first #c1/)
  const one = await pressed(browser, 'Export call')
  t.equal(one.name, 'mcp-bridge-c1.jsonl')
  t.same(callsOf(one.text), ['c1'])

  await drop(browser, text)
  await shows(/file bug\.jsonl/)
  await go('#/servers')
  await shows(/answered initialize/)
  t.same(eventsOf((await pressed(browser, 'Export JSONL')).text), [...ring.after(0)], 'a file can be exported again')
})
