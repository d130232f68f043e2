/**
 * What portable schemas make of tools, as the page of the inspector says it.
 *
 * Runs in its own process: its browser ends with it.
 */
import { join } from 'node:path'
import t from 'tap'
import { EventRecorder } from '../../src/inspector/recorder/recorder.js'
import { Ring } from '../../src/inspector/ring.js'
import { createBridge } from '../support/bridge.js'
import { noBrowser } from '../support/chromium.js'
import { until } from '../support/eventually.js'
import { look, pictures, problems } from '../support/inspector-page.js'
import { INTRICATE } from '../support/intricate.js'
import { call } from '../support/modern.js'

t.test(
  'the page says of servers and groups what is simplified, and which tool keeps its schema',
  { skip: noBrowser },
  async (t) => {
    const ring = new Ring({ payloads: 'off' })
    const recorder = new EventRecorder((trace, text) => ring.record(trace, text))
    const mcpServers = { notes: { ...INTRICATE, schemas: 'portable' }, plain: INTRICATE }
    const groups = { team: { servers: ['plain'], prefix: 'always', schemas: 'portable' } }
    const { bridge } = createBridge(t, {}, { mcpServers, groups }, { recorder })
    const urls = await bridge.listen({ kind: 'http', host: '127.0.0.1', port: 0, path: '/mcp' })
    const { browser, go, withoutMistakes } = await look(t, ring, { bridge: bridge.inspected })
    await go('#/servers')
    const card = (name: string) => `document.querySelector('.card[aria-label="${name}"]')`
    const textOf = (name: string) => browser.evaluate<string>(`${card(name)}?.innerText ?? ''`)
    await until(async () => (await textOf('notes')) !== '', 'the servers')
    t.notMatch(await textOf('notes'), /For models/, 'nothing is said of tools that nobody has listed')
    for (const url of [urls.get('notes'), urls.get('plain'), bridge.groupUrls.get('team')])
      t.ok((await call(url ?? '', 'tools/list', {})).message['result'])
    const opened = async (name: string) => {
      await until(async () => /For models/.test(await textOf(name)), `what is said of ${name}`)
      await browser.evaluate(`for (const one of ${card(name)}.querySelectorAll('details.tools')) one.open = true; 0`)
      return textOf(name)
    }
    const notes = await opened('notes')
    for (const said of [
      /3 simplified, 1 with the schema of the server/,
      /tree #\/\$defs\/node is recursive: cut after 2 levels/,
      /find its alternatives are in the argument "input"/,
      /files\.read\/all clients call it files_read_all_\w{6}; the member "the path" is called "the_path"; in words only: format/,
      /lost it keeps its schema, because its reference "#\/\$defs\/nowhere" leads nowhere/,
    ])
      t.match(notes, said)
    const team = await opened('team')
    t.match(team, /plain: tree #\/\$defs\/node is recursive: cut after 2 levels/)
    t.match(team, /plain: lost it keeps its schema/)
    t.match(team, /plain__files\.read\/all clients call it plain__files_read_all_\w{6}/)
    t.notMatch(await textOf('plain'), /For models/, 'whose own clients see its tools as they are')
    t.same(await problems(browser), [], 'axe-core finds nothing')
    // docs/schemas.webp is a copy of this picture.
    await browser.emulate({ width: 760, height: 700 })
    await browser.evaluate(`${card('notes')}.scrollIntoView(); 0`)
    await browser.screenshot(join(pictures, 'schemas.webp'))
    withoutMistakes()
  },
)
