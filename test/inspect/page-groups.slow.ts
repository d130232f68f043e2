/**
 * A call at a group, as the page of the inspector shows it.
 *
 * Runs in its own process: its browser ends with it.
 */
import t from 'tap'
import { EventRecorder } from '../../src/inspector/recorder/recorder.js'
import { Ring } from '../../src/inspector/ring.js'
import { createBridge } from '../support/bridge.js'
import { noBrowser } from '../support/chromium.js'
import { until } from '../support/eventually.js'
import { look, problems } from '../support/inspector-page.js'
import { LegacyHttp } from '../support/legacy-http.js'
import { call } from '../support/modern.js'
import { ModernHttp } from '../support/modern-http.js'
import { marksOn, messagesOn } from '../support/pair-page.js'

const override = { echo: { name: 'say' } }
const CALLS = {
  'a call': { name: 'old__say', arguments: { a: 1 } },
  'a call through call_tool': { name: 'call_tool', arguments: { name: 'old__say', arguments: { a: 1 } } },
}

for (const [what, params] of Object.entries(CALLS))
  t.test(`${what} has the wire of its server, with the name before and after`, { skip: noBrowser }, async (t) => {
    const [old, fresh] = [await LegacyHttp.start(t), await ModernHttp.start(t)]
    const ring = new Ring({ payloads: 'all' })
    const recorder = new EventRecorder((trace, text) => ring.record(trace, text))
    const mcpServers = { old: { url: old.url, tools: { override } }, fresh: { url: fresh.url } }
    const { bridge } = createBridge(t, {}, { mcpServers, groups: { team: { search: true } } }, { recorder })
    await bridge.listen({ kind: 'http', host: '127.0.0.1', port: 0, path: '/mcp' })
    const url = bridge.groupUrls.get('team') ?? ''
    t.match((await call(url, 'tools/call', params)).message, { result: { content: [{ text: '{"a":1}' }] } })
    const { browser, rows, go, shows, withoutMistakes } = await look(t, ring)
    await until(async () => (await rows()).some((row) => row.includes('old__say')), 'the call')
    t.match(
      (await rows()).find((row) => row.includes('old__say')),
      /team\s/,
    )
    const link = `[...document.querySelectorAll('.calls tbody a')].find((one) => one.innerText.includes('old__say'))`
    await go(await browser.evaluate<string>(`${link}.hash`))
    const tools = (messages: readonly string[]) => messages.filter((text) => text.startsWith('→ tools/call'))
    await until(async () => (await messagesOn(browser)).every((side) => tools(side).length === 1), 'both wires')
    const isName = ([sign, place]: readonly string[]) => sign === '~' && place === 'params.name'
    await until(async () => (await marksOn(browser)).filter(isName).length === 2, 'the name on both wires')
    await shows(new RegExp(`params\\.name "${params.name}"`))
    await shows(/params\.name "echo"/)
    t.same(await problems(browser), [], 'axe-core finds nothing')
    withoutMistakes()
  })
