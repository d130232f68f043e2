/**
 * The messages of a call on the page of the inspector: where the counterpart of each one is, and the changes of each.
 *
 * Runs in its own process: its browser ends with it.
 */
import t from 'tap'
import { Ring } from '../../src/inspect/ring.js'
import { answered, asked, httpClient } from '../support/asked-clients.js'
import { ADA, NAME } from '../support/asking.js'
import { noBrowser } from '../support/chromium.js'
import { look, problems } from '../support/inspector-page.js'
import { ModernHttp } from '../support/modern-http.js'
import { startWatched } from '../support/watched.js'

const skip = noBrowser

t.test(
  'a message whose counterpart is in another row says so, and changes are at what was changed',
  { skip },
  async (t) => {
    const { url, calls, ring } = await startWatched(t, { url: (await ModernHttp.start(t)).url })
    const client = await httpClient(url)
    const form = { method: NAME.method, params: { mode: 'form', ...NAME.params } }
    await client.begin('a', 'tools/call', {
      name: 'ask',
      arguments: { rounds: [{ one: form, roots: { method: 'roots/list' } }] },
    })
    const [roots, name] = await asked(client, 'a', 2)
    await client.say({ id: roots?.id, result: { roots: [] } })
    await client.say({ id: name?.id, result: ADA })
    await answered(client, 'a')
    const { browser, shows, go, withoutMistakes } = await look(t, ring)
    await go(`#/calls/${calls().find((call) => call.name === 'ask')?.id}`)
    await shows(/← elicitation\/create\s+id 2.*?caused by result\s+id \d+\s+HTTP 200, above/s)
    await shows(/→ result\s+id 1.*?sent on in tools\/call\s+id \d+, below/s)
    const cells = await browser.evaluate<string[][]>(
      `[...document.querySelectorAll('.sides tbody tr')].map((row) => [...row.cells].map((cell) => cell.innerText))`,
    )
    const [answer, again] =
      cells.find(([left, right]) => /→ result/.test(left ?? '') && /→ tools/.test(right ?? '')) ?? []
    t.notMatch(answer, /~|−/, 'nothing of the answer was changed')
    t.match(again, /compared with tools\/call\s+id "a":\s+~\s+replaced\s+id.*?inputResponses/s)
    t.same(await problems(browser), [])
    withoutMistakes()
  },
)

t.test('a call whose server is being started says what is waited for', { skip }, async (t) => {
  const ring = new Ring()
  const message = { kind: 'message', server: 'orders', hop: 'server', dir: 'out', form: 'request', bytes: 9 } as const
  const call = { kind: 'call', what: 'begun', server: 'orders', call: 1, principal: 'bob', relayed: false } as const
  ring.record({ ...call, client: { era: 'modern' }, method: 'tools/call' })
  ring.record({ ...message, call: 1, hop: 'client', dir: 'in', method: 'tools/call' })
  ring.record({ ...message, method: 'initialize', id: 1 })
  const { shows, go, withoutMistakes } = await look(t, ring)
  await go('#/calls/c1')
  await shows(/… in the bridge for \S+ \w+ so far: the server has not answered initialize …/)
  ring.record({ ...message, dir: 'in', form: 'result', id: 1 })
  ring.record({ ...message, call: 1, method: 'tools/call', id: 2 })
  await shows(/… waiting for the server for \S+ \w+ so far …/)
  withoutMistakes()
})
