/** The messages of a call on the page of the inspector: where the counterpart of each one is, and the changes of each. */
import t from 'tap'
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
