/**
 * The page of the inspector in a real browser, with events that a test tells: what it shows, its keys, its links, and attacks.
 *
 * Runs in its own process: its browser ends with it.
 */
import t from 'tap'
import { plainOf } from '../../src/inspector/markdown.js'
import { phasesOf } from '../../src/inspector/phases.js'
import { EventRecorder } from '../../src/inspector/recorder/recorder.js'
import { RULES } from '../../src/inspector/recorder/rules.js'
import { Ring } from '../../src/inspector/ring.js'
import { RULE_SENTENCES } from '../../src/inspector/rule-sentences.js'
import { type CallView, Views } from '../../src/inspector/views.js'
import { duration } from '../../src/inspector/words.js'
import { SERVERS, type ServerKind } from '../matrix/servers.js'
import { startBridge } from '../support/bridge.js'
import { Chromium, noBrowser } from '../support/chromium.js'
import { until } from '../support/eventually.js'
import { messages } from '../support/inspected.js'
import { bridgeOf, TOKEN } from '../support/inspector.js'
import { drop, look, lookWith, pictures, problems } from '../support/inspector-page.js'
import { eventsIn, listed, tellCall, tellQuestion, tickingRing } from '../support/sights.js'

const skip = noBrowser
/** The session of a client begins. */
const OPENED = {
  kind: 'session',
  server: 'orders',
  side: 'client',
  what: 'opened',
  session: 'a-secret-session-id',
  principal: 'alice',
} as const

/** Elements with text below 13 pixels. */
const SMALL = `[...document.querySelectorAll('*')].filter((one) => ['', '::before'].some((part) => parseFloat(getComputedStyle(one, part).fontSize) < 13)).map(({ tagName }) => tagName)`
/** Elements that can be scrolled sideways, or that are cut off at the side. */
const WIDE = `[...document.querySelectorAll('html, main, main :not(thead, thead *, .hidden)')].filter((one) => one.scrollWidth > one.clientWidth && getComputedStyle(one).display !== 'inline').map(({ tagName, className }) => tagName + ' ' + className)`

/** Calls of all kinds. */
function tellEverything(ring: Ring): void {
  const { record } = ring
  record({
    kind: 'verdict',
    server: 'orders',
    era: 'legacy',
    revision: '2025-11-25',
    transport: 'stdio',
    why: 'answered initialize',
    ms: 12,
  })
  record({ kind: 'child', server: 'orders', what: 'started', pid: 812 })
  record({ kind: 'child', server: 'orders', what: 'stderr', line: 'listening for orders' })
  record(OPENED)
  record({ kind: 'stream', server: 'orders', session: 'a-secret-session-id', what: 'opened', stream: 'g1' })
  record({
    kind: 'refused',
    status: 403,
    why: 'foreignHost',
    said: 'Host "evil.example" is not one of this bridge',
    path: '/mcp?x=y',
    from: '192.0.2.7',
  })
  tellCall(record, { id: 1, name: 'echo' })
  tellQuestion(record, { id: 2, answer: 3 })
  tellCall(record, { id: 4, name: 'nope', outcome: 'tool_error' })
  tellCall(record, { id: 5, name: 'list', server: 'billing', outcome: 'fault', why: 'connection refused' })
  record({
    kind: 'call',
    what: 'begun',
    call: 6,
    server: 'billing',
    principal: 'bob',
    client: { era: 'legacy', revision: '2024-11-05', transport: 'sse' },
    method: 'resources/read',
  })
}

t.test('calls appear with their eras, outcomes and times, and both sides of each one', { skip }, async (t) => {
  const ring = tickingRing({ payloads: 'all' })
  tellEverything(ring)
  const { browser, shows, rows, go, withoutMistakes } = await look(t, ring)
  await shows(/live/)
  await until(async () => (await rows()).length === 5, 'five calls are listed')
  const [echo = '', book = '', nope = '', list = '', open = ''] = await rows()
  t.match(echo, /tools\/call echo\s+orders\s+M 07-28 http → L 11-25 stdio\s+✓ ok/)
  t.match(book, /ok, asked once/)
  t.match(nope, /✕ tool error/)
  t.match(list, /✕ fault: connection refused/)
  t.match(open, /resources\/read.*L 11-05 sse → –\s+… open/s)

  tellCall(ring.record, { id: 7, name: 'live-one', texts: { request: '{"token":"CANARY","a":1}', result: '{}' } })
  await shows(/live-one/)

  const ended = { kind: 'call', what: 'ended', call: 6, outcome: 'ok', ms: 9 } as const
  const client = { era: 'legacy', transport: 'sse' } as const
  ring.record({ ...ended, principal: 'bob', client, method: 'resources/read' })
  await until(async () => /✓ ok/.test((await rows())[4] ?? ''), 'the row of a call that was open says how it ended')

  await go('#/calls/c7')
  await shows(/minted|progressToken/)
  const sides = await browser.evaluate<string[][]>(
    `[...document.querySelectorAll('.sides tbody tr')].map((row) => [...row.cells].map((cell) => cell.innerText))`,
  )
  t.equal(sides.length, 3, 'request, progress and result')
  t.match(sides[0]?.[0], /→ tools\/call\s+id 7.*?−.*?protocolVersion envelope/s)
  t.match(sides[0]?.[1], /→ tools\/call\s+id 31.*?\+.*?progressToken progress/s)
  t.match(sides[2]?.[0], /← result\s+id 7\s+HTTP 200.*?\+.*?resultType/s)
  t.match(sides[2]?.[1], /← result\s+id 31/)
  await until(
    async () => (await browser.evaluate<string>(`document.querySelector('.sides').innerText`)).includes('"a": 1'),
    'the text of a message',
  )
  await browser.screenshot(`${pictures}dark.png`)
  t.same(await problems(browser), [], 'axe-core finds nothing')

  await go('#/calls/c2?tab=timeline')
  await shows(/client or person.*?question sent.*?continued with answers/s)
  await go('#/calls/c5?tab=why')
  await shows(/upstreamUnavailable.*?connection refused/s)
  await shows(/The server is unreachable\. Nothing was executed\. What to do: See A server cannot be used\./)
  const advice = `document.querySelector('.advice a').href`
  t.match(await browser.evaluate(advice), /\/docs\/troubleshooting\.md#a-server-cannot-be-used$/)
  await go('#/calls/c6?tab=why')
  await shows(/Server\s+billing: none\s+Path\s+did not reach the server/)
  await go('#/calls/c4')
  await shows(/The tool ran, and reports an error in its result\. What to do:/)
  await go('#/calls/c1')
  await shows(/echo #c1/)
  t.equal(await browser.evaluate(`document.querySelector('.advice')`), null, 'a call that ended well has no advice')
  await go('#/calls/c7?tab=raw')
  await shows(/bridge → client: result/)
  await until(
    () => browser.evaluate<boolean>(`document.getElementById('panel').textContent.includes('‹hidden›')`),
    'the texts are there',
  )
  const raw = await browser.evaluate<string>(`document.getElementById('panel').textContent`)
  t.notMatch(raw, /CANARY/)
  await browser.emulate({ scheme: 'light' })
  await browser.screenshot(`${pictures}light.png`)
  t.same(await problems(browser), [], 'axe-core finds nothing in light')
  withoutMistakes()
})

t.test('shows who cancelled a call, and when the client was away', { skip }, async (t) => {
  const ring = tickingRing()
  const { record } = ring
  tellCall(record, { id: 1, outcome: 'cancelled', more: { cancelled: 'notification' } })
  tellCall(record, { id: 2, outcome: 'cancelled', more: { cancelled: 'disconnected' } })
  tellCall(record, { id: 3, outcome: 'fault', why: 'The server is silent', more: { fault: 'upstreamTimeout' } })
  tellQuestion(record, { id: 4, answer: 5 })
  const session = 'left-and-resumed'
  tellCall(record, { id: 6, more: { session } })
  const stream = { kind: 'stream', stream: 'p1', id: 7, server: 'orders', session } as const
  record({ ...stream, what: 'left' })
  const { browser, shows, rows, go, withoutMistakes } = await look(t, ring)
  await until(async () => (await rows()).length === 5)
  const [notified, disconnected, late, , away] = await rows()
  t.match(notified, /– cancelled by the client\s/)
  t.match(disconnected, /– cancelled by the client, which closed its connection/)
  t.match(late, /✕ fault, timed out: The server is silent/)
  t.match(away, /✓ ok, client away/)

  const marks = () =>
    browser.evaluate<string[]>(
      `[...document.querySelectorAll('.lane')].map((lane) => [...lane.querySelectorAll('i.cancelled')].map(({ title }) => title.replace(/.*: /, '')).join())`,
    )
  await go('#/calls/c2?tab=timeline')
  await shows(/client away: cancelled by the client, which closed its connection/)
  t.same(await marks(), ['cancelled by the client, which closed its connection', '', ''], 'in the lane of the client')
  await go('#/calls/c3?tab=timeline')
  await shows(/ended: timed out/)
  t.same(await marks(), ['', 'timed out', ''], 'in the lane of the bridge')
  t.same(await problems(browser), [])
  await go('#/calls/c4')
  await shows(/← result.*?… client away \d+\.\d ms ….*?→ tools\/call/s)
  t.same(await problems(browser), [])
  await go('#/calls/c6?tab=timeline')
  await shows(/client away: its connection closed/)
  record({ ...stream, what: 'resumed' })
  await shows(/client back/)
  await until(async () => /✓ ok\s/.test((await rows())[4] ?? ''), 'the row says that the client is back')
  withoutMistakes()
})

t.test('shows the duration of a running call, which grows without events', { skip }, async (t) => {
  const ring = new Ring()
  const call = { kind: 'call', what: 'begun', server: 'orders', principal: 'bob' } as const
  ring.record({ ...call, call: 1, client: { era: 'legacy', transport: 'sse' }, method: 'resources/read' })
  tellCall(ring.record, { id: 2, outcome: 'asks' })
  ring.record({ kind: 'question', what: 'parked', call: 2, server: 'orders' })
  const { rows, shows, go, withoutMistakes } = await look(t, ring)
  const times = async () => (await rows()).map((row) => / ([\d.]+ (?:ms|s|min)) …/.exec(row.replace(/\s+/g, ' '))?.[1])
  await until(async () => (await times()).filter(Boolean).length === 2, 'both have a time')
  const [open, asking] = await times()
  await until(async () => {
    const [later, longer] = await times()
    return later !== open && longer !== asking
  }, 'the times grow')
  const began = Date.now()
  ring.record({ ...call, call: 3, client: { era: 'modern' }, method: 'tools/call', name: 'slow' })
  await go('#/calls?filter=slow+ms>3000')
  await until(async () => (await rows()).length === 0 || Date.now() - began > 3_000, 'it has not taken so long yet')
  await until(async () => (await rows()).length === 1, 'without any event it matches the filter')
  await go('#/calls/c2')
  await shows(/… waiting for the client for \S+ \w+ so far …/)
  await go('#/calls/c2?tab=timeline')
  await shows(/so far.*?question sent: the call waits for the client/s)
  withoutMistakes()
})

t.test('messages of a running call appear as they arrive, and its texts are refreshed', { skip }, async (t) => {
  const ring = new Ring({ payloads: 'all' })
  const call = {
    kind: 'call',
    server: 'orders',
    call: 1,
    principal: 'bob',
    method: 'tools/call',
  } as const
  const client = { era: 'legacy', transport: 'sse' } as const
  const progress = { kind: 'message', server: 'orders', call: 1, form: 'notification', bytes: 20 } as const
  ring.record({ ...call, client, what: 'begun' })
  const { browser, go, withoutMistakes } = await look(t, ring)
  await go('#/calls/c1')
  const began = performance.now()
  for (let i = 1; i <= 40; i++) {
    ring.record({ ...progress, hop: 'server', dir: 'in', method: 'notifications/progress' }, `{"text ${i}":1}`)
    await until(
      async () => (await browser.evaluate(`document.querySelectorAll('.sides tbody tr:not(.away)').length`)) === i,
      'it is there, with its text or without',
    )
  }
  ring.record({ ...call, client, what: 'ended', outcome: 'ok', ms: 1 })
  const looks = `performance.getEntriesByType('resource').filter(({ name }) => name.endsWith('/calls/c1')).length`
  const text = () => browser.evaluate<string>(`document.querySelector('.sides').innerText`)
  t.notMatch(await text(), /"text \d+"/, 'notifications are folded')
  await browser.evaluate(`document.querySelectorAll('.fold').forEach((one) => one.click())`)
  await until(async () => /"text 40"/.test(await text()), 'the last text')
  t.match(await text(), /"text 1"/)
  const seconds = (performance.now() - began) / 1_000
  t.ok((await browser.evaluate<number>(looks)) <= 3 + seconds, `in ${seconds} seconds`)
  withoutMistakes()
})

t.test(
  'a call has its process, its session and the message of its error, and is exported alone',
  { skip },
  async (t) => {
    const ring = new Ring({ payloads: 'all' })
    ring.record({ kind: 'child', server: 'orders', what: 'started', pid: 812 })
    ring.record(OPENED)
    const texts = { request: '{"token":"x"}', result: '{"error":{"code":-32603,"message":"There is no table"}}' }
    tellCall(ring.record, { id: 1, outcome: 'error', texts })
    tellCall(ring.record, { id: 2, name: 'echo' })
    ring.record({
      kind: 'session',
      server: 'orders',
      side: 'server',
      what: 'opened',
      session: 'another-id',
      principal: 'alice',
    })
    ring.record({ kind: 'config', text: 'servers: added billing' })
    ring.record({ kind: 'lost', what: 'calls', text: 'Calls were not recorded', count: 1_200 })
    const { browser, shows, rows, go, withoutMistakes } = await look(t, ring)
    await go('#/calls/c1')
    await shows(/alice · session [0-9a-f]{8}, \d+(?:\.\d)? \w+ old · error -32603/)
    await shows(/stdio, test-server, pid 812/)
    await shows(/1 hidden value/)
    t.same(await problems(browser), [])
    const saved = `(async () => {
    const blobs = []
    URL.createObjectURL = (blob) => { blobs.push(blob); return 'blob:none' }
    HTMLAnchorElement.prototype.click = () => {};
    [...document.querySelectorAll('button')].find(({ innerText }) => innerText === 'Export call').click()
    while (blobs.length === 0) await new Promise((resolve) => setTimeout(resolve, 20))
    return blobs[0].text()
  })()`
    const lines = (await browser.evaluate<string>(saved)).trim().split('\n')
    t.same([...new Set(lines.map((line) => (JSON.parse(line) as { call: string }).call))], ['c1'])
    await go('#/calls/c1?tab=why')
    await shows(/Error message\s+There is no table/)
    await go('#/servers')
    await shows(/events, 0 lost, 1,200 calls not recorded/)
    await shows(
      /Configuration, trust and missing events\s+\d\d:\d\d:\d\d\.\d\s+missing: Calls were not recorded: 1,200\s+\S+\s+configuration: servers: added billing/,
    )
    t.same(await problems(browser), [])
    await go('#/sessions')
    await shows(/bridge – server\s+orders\s+alice\s+–\s+open\s+–\s+\S+ \w+\s+–\s+all of alice\s+–\s+–/)
    await browser.evaluate(
      `location.hash = [...document.links].find(({ innerText }) => innerText === 'all of alice').hash`,
    )
    await until(async () => (await rows()).length === 2)
    await go('#/calls?filter=tol:echo')
    await shows(/tol: is no field/)
    withoutMistakes()
  },
)

t.test('stores texts for five minutes on request', { skip }, async (t) => {
  const ring = new Ring()
  const { browser, shows, go, withoutMistakes } = await look(t, ring)
  const press = () =>
    browser.evaluate(
      `[...document.querySelectorAll('button')].find(({ innerText }) => /texts/i.test(innerText)).click()`,
    )
  const texts = { request: '{"note":"a text"}', result: '{}' }
  tellCall(ring.record, { id: 1, texts })
  await go('#/calls/c1?tab=raw')
  await shows(/No texts of this call are kept/)
  await shows(/Keep texts for 5 min/)
  await press()
  await shows(/Keeping texts until \d\d:\d\d:\d\d/)
  t.same(await problems(browser), [])
  tellCall(ring.record, { id: 2, texts })
  await go('#/calls/c2')
  await shows(/"note": "a text"/)
  await press()
  await shows(/Keep texts for 5 min/)
  tellCall(ring.record, { id: 3, texts })
  await go('#/calls/c3?tab=raw')
  await shows(/No texts of this call are kept/)

  withoutMistakes()
})

t.test('marks the changes of the bridge in a real call on both sides, with links to its rules', { skip }, async (t) => {
  const ring = tickingRing({ payloads: 'all' })
  const legacy = SERVERS.find(({ era }) => era === 'legacy') as ServerKind
  const { entry } = await legacy.start(t)
  const { url } = await startBridge(t, entry, {}, { recorder: new EventRecorder(ring.record) })
  await (await messages.post(url, messages.call('echo', { text: 'hello' }, { meta: { progressToken: 'mine' } }))).text()
  const { browser, shows, rows, go, withoutMistakes } = await look(t, ring)
  await until(async () => (await rows()).length === 1)
  await go('#/calls/c1')
  const marks = () =>
    browser.evaluate<string[]>(
      `[...document.querySelectorAll('.sign')].map((one) => one.parentElement.className + ' ' + one.ariaLabel)`,
    )
  await shows(/Show \d+ more lines/)
  await browser.evaluate(
    `[...document.querySelectorAll('.link')].find(({ innerText }) => /more line/.test(innerText)).click()`,
  )
  await until(async () => (await marks()).length >= 8, 'changes are marked in the texts')
  const signs = await marks()
  const ids = 'Request ids: the bridge sends its own to the server and restores yours.'
  t.equal(signs.filter((one) => one === `line replaced Rewritten: id. ${ids}`).length, 4, 'on both wires, and back')
  t.match(signs.join('\n'), /^line removed Removed: params\._meta\.…\/clientInfo\. Envelope: /m)
  t.match(signs.join('\n'), /^line added Added: result\.resultType\. Result type: /m)
  await browser.evaluate(`document.querySelectorAll('.link[aria-expanded="false"]').forEach((one) => one.click())`)
  await shows(/"mine".*"complete"/s)
  const sides = await browser.evaluate<string[][]>(
    `[...document.querySelectorAll('.sides tbody tr')].map((row) => [...row.cells].map((cell) => cell.innerText))`,
  )
  t.match(
    sides.at(0)?.[0],
    /→ tools\/call.*?−.*?params\._meta\.…\/clientInfo {"name":"test","version":"1"} envelope.*?~.*?params\._meta\.progressToken "mine" progress-tokens/s,
  )
  t.match(sides.at(0)?.[1], /→ tools\/call.*?~.*?params\._meta\.progressToken \d+ progress-tokens/s)
  t.notMatch(sides.at(0)?.[1], /clientInfo/)
  t.match(sides.at(-1)?.[0], /← result.*?\+.*?result\.resultType "complete" result-type/s)
  const links = await browser.evaluate<string[]>(
    `[...document.querySelectorAll('.changes a:not(.rule a)')].map(({ href }) => href)`,
  )
  const rules = links.map((link) => /\/docs\/development\/translation\.md#(.*)$/.exec(link)?.[1] ?? link)
  for (const rule of rules) t.ok(RULES.has(rule), rule)
  // Each rule is told once, as the documentation has it; on all links it is the tip.
  const told = await browser.evaluate<string[]>(
    `[...document.querySelectorAll('.changes .rule')].map((one) => one.innerText)`,
  )
  const tips = await browser.evaluate<string[]>(
    `[...document.querySelectorAll('.changes a:not(.rule a)')].map(({ title }) => title)`,
  )
  const wanted = rules.map((rule) => plainOf(RULE_SENTENCES[rule as keyof typeof RULE_SENTENCES]))
  t.same(told.toSorted(), [...new Set(wanted)].toSorted())
  t.same(tips, wanted)
  t.same(await problems(browser), [])
  await go('#/calls/c1?tab=why')
  await shows(/bridge → server: tools\/call.*?replace params\._meta\.progressToken: progress-tokens/s)
  await shows(/Rules.*?envelope\s+Envelope: legacy servers are told name and capabilities of the client once/s)
  t.same(await problems(browser), [])
  withoutMistakes()
})

t.test('servers, sessions and refusals have their tables', { skip }, async (t) => {
  const ring = tickingRing()
  tellEverything(ring)
  const bridge = bridgeOf([
    { name: 'orders', state: 'ready', era: 'legacy', calls: 1, parked: 0, programs: 2, memory: 150 * 1024 * 1024 },
    {
      ...{ name: 'billing', state: 'down', calls: 0, parked: 0, pause: { failures: 3, ms: 2_100 } },
      lastError: { at: '2026-07-28T12:00:00.000Z', why: 'Exited with code 7' },
    },
    { name: 'empty', state: 'down', calls: 0, parked: 0 },
  ])
  const process = () => ({
    ...{ version: '1.2.3', pid: 4_711, since: '2026-07-28T12:00:00.000Z' },
    ...{ memory: 90 * 1024 * 1024, programs: 2 },
  })
  const listing = { kind: 'message', server: 'orders', hop: 'server', id: 5, bytes: 2 } as const
  ring.record({ ...listing, dir: 'out', form: 'request', method: 'tools/list' }, '{"method":"tools/list"}')
  const tools = '{"id":5,"result":{"tools":[{"name":"book"},{"name":"cancel"}]}}'
  ring.record({ ...listing, dir: 'in', form: 'result' }, tools)
  tellCall(ring.record, { id: 50, server: 'retired' })
  tellCall(ring.record, { id: 51, server: 'team' })
  ring.record({ kind: 'verdict', server: 'empty', era: 'unknown', why: 'connection refused', ms: 1 })
  const targets = () => [{ name: 'team', kind: 'group' } as const]
  const { browser, shows, rows, go, withoutMistakes } = await look(t, ring, { bridge: { ...bridge, targets, process } })
  await go('#/servers')
  await shows(
    /Bridge\s+Version\s+1\.2\.3\s+Process\s+4711\s+Since.*?Memory\s+90 MiB, without its programs\s+Programs\s+2 running/s,
  )
  await shows(/Last error\s+\d\d:\d\d.*?: Exited with code 7/)
  await shows(
    /orders\s+ready\s+Era\s+legacy 2025-11-25\s+Transport\s+stdio\s+Evidence\s+answered initialize.*?in 12 ms\s+Programs\s+2 running, 150 MiB\s+Process\s+812.*?1 calls, and 0 that wait for the client\s+Open sessions\s+client – bridge: 1, bridge – server: 0\s+Circuit breaker\s+closed\s+Tools\s+2: book, cancel.*?listening for orders/s,
  )
  await shows(/Circuit breaker\s+open after 3 failures: calls fail at once for 2\.1 s/)
  // Its era was not detected.
  await shows(/empty\s+down\s+Era\s+unknown\s+Why it is down\s+connection refused\s+Calls/)
  await shows(/team\s+group\s+Calls\s+1 recorded/)
  await shows(/retired\s+removed\s+Era\s+legacy 2025-11-25\s+Calls\s+1 recorded\s+Open sessions/)
  t.same(await problems(browser), [])
  await go('#/sessions')
  await shows(/client – bridge\s+orders\s+alice\s+test-client\s+open\s+1, for \d+/)
  t.same(await problems(browser), [])
  await go('#/servers')
  await shows(/1 failed/)
  await browser.evaluate(`location.hash = [...document.links].find(({ innerText }) => innerText === '1 failed').hash`)
  await until(async () => (await rows()).length === 1)
  t.match((await rows())[0], /nope/, 'the failed calls of a server are a link')
  await go('#/refused')
  await shows(
    /403\s+foreignHost: Host "evil\.example" is not one of this bridge\s.*?What to do: Add the name to allowedHosts\.\s+\/mcp\s+192\.0\.2\.7/s,
  )
  t.same(await problems(browser), [])
  withoutMistakes()
})

t.test('filters, keys and links work as described', { skip }, async (t) => {
  const ring = tickingRing()
  tellEverything(ring)
  const { browser, shows, rows, go, withoutMistakes } = await look(t, ring)
  await until(async () => (await rows()).length === 5)
  const address = () => browser.evaluate<string>('location.hash')
  t.notMatch(await address(), TOKEN, 'the token has left the address')

  await browser.press('/')
  await browser.type('-status:ok server:billing')
  await until(async () => (await rows()).length === 2)
  t.match(decodeURIComponent(await address()).replaceAll('+', ' '), /filter=-status:ok server:billing/)
  await browser.type(' ms>x')
  await shows(/as in ms>500/)
  await go('#/calls?status=tool_error&server=orders')
  await until(async () => (await rows()).length === 1)
  t.match((await rows())[0], /nope/)
  await go('#/calls')
  await until(async () => (await rows()).length === 5)
  await browser.evaluate('document.activeElement.blur()')

  await browser.press('j')
  await until(async () => (await address()) === '#/calls/c6', 'the newest one')
  await browser.press('k')
  await until(async () => (await address()) === '#/calls/c5')
  await browser.press('j')
  await until(async () => (await address()) === '#/calls/c6')
  await browser.press(']')
  await until(async () => (await address()) === '#/calls/c6?tab=timeline')
  await browser.evaluate(`document.getElementById('tab-timeline').focus()`)
  await browser.press('ArrowRight')
  await until(async () => (await address()) === '#/calls/c6?tab=why')
  t.equal(await browser.evaluate('document.activeElement.id'), 'tab-why')
  await browser.press('ArrowLeft')
  await until(async () => (await address()) === '#/calls/c6?tab=timeline')
  await browser.evaluate('document.activeElement.blur()')
  await browser.press('[')
  await browser.press('Enter')
  await until(() => browser.evaluate<boolean>(`document.activeElement.id === 'panel'`))
  await browser.press('Escape')
  await until(async () => (await address()) === '#/calls')

  await browser.press('p')
  await shows(/Resume/)
  tellCall(ring.record, { id: 20, name: 'while-paused' })
  await shows(/56 events/)
  t.equal((await rows()).length, 5, 'the list stands still')
  await browser.press('p')
  await shows(/while-paused/)

  await browser.press('?')
  await until(() => browser.evaluate<boolean>(`document.querySelector('dialog').open`))
  t.same(await problems(browser), [], 'axe-core finds nothing in the help')
  await browser.press('Escape')
  await until(() => browser.evaluate<boolean>(`!document.querySelector('dialog').open`))
  withoutMistakes()
})

t.test('shows an exported file without a bridge', { skip }, async (t) => {
  const ring = tickingRing({ payloads: 'all' })
  tellCall(ring.record, { id: 1, name: 'from-a-file', texts: { request: '{"kept":1}', result: '{}' } })
  const { base, browser, shows, rows, withoutMistakes } = await look(t, ring)
  const authorization = `Bearer ${TOKEN}`
  const file = await (await fetch(`${base}/inspect/export`, { headers: { authorization } })).text()
  const other = await lookWith(await Chromium.start(t), t, tickingRing(), {}, '/calls')
  await other.shows(/no token/)
  await drop(other.browser, '{"no":"event"}\n')
  await other.shows(/Line 1 of bug\.jsonl is not an event/)
  await drop(other.browser, file)
  await other.shows(/file bug\.jsonl.*?from-a-file/s)
  await other.browser.evaluate(`location.hash = '#/calls/c1?tab=raw'`)
  await until(() =>
    other.browser.evaluate<boolean>(`document.getElementById('panel')?.textContent.includes('"kept": 1')`),
  )
  t.same(await problems(other.browser), [])
  await other.go('#/servers')
  await other.shows(/orders.*?Open sessions\s+client – bridge: 1, bridge – server: 0/s)
  t.notMatch(await other.browser.text(), /Back to the bridge/, 'it has none')

  await drop(browser, file.replaceAll('from-a-file', 'from-another-bridge'))
  await shows(/file bug\.jsonl.*?from-another-bridge/s)
  tellCall(ring.record, { id: 2, name: 'meanwhile' })
  await browser.evaluate(
    `[...document.querySelectorAll('button')].find((one) => one.innerText === 'Back to the bridge').click()`,
  )
  await shows(/live/)
  await until(async () => (await rows()).length === 2, 'what came meanwhile is shown, too')
  t.notMatch(await browser.text(), /from-another-bridge|Back to the bridge/)
  other.withoutMistakes()
  withoutMistakes()
})

t.test('shows names as text, whatever their characters', { skip }, async (t) => {
  const ring = tickingRing({ payloads: 'all' })
  const evil = `<img src=x onerror="document.title='hacked'"><script>document.title='hacked'</script>\u202e\u0000`
  const texts = { request: JSON.stringify({ evil }), result: evil }
  tellCall(ring.record, {
    id: 1,
    name: evil,
    server: evil,
    outcome: 'fault',
    why: evil,
    texts,
    more: { method: evil, principal: evil, client: { era: 'modern', name: evil, revision: evil } },
  })
  ring.record({ kind: 'child', server: evil, what: 'stderr', line: evil })
  ring.record({ kind: 'session', server: evil, side: 'client', what: 'opened', session: evil, principal: evil })
  ring.record({ kind: 'refused', status: 400, why: evil, path: evil, from: evil })
  ring.record({
    kind: 'message',
    call: 1,
    hop: 'server',
    dir: 'out',
    form: 'request',
    bytes: 1,
    method: 'n'.repeat(1024 * 1024),
    changed: listed([{ at: evil, op: 'add', rule: 'javascript:alert(1)' }]),
  })
  const { browser, shows, rows, go, withoutMistakes } = await look(t, ring)
  await until(async () => (await rows()).length === 1)
  await browser.press('j')
  await until(() => browser.evaluate<boolean>(`document.getElementById('panel') !== null`))
  for (const tab of ['messages', 'timeline', 'why', 'raw']) {
    await browser.evaluate(`document.getElementById('tab-${tab}').click()`)
    await until(() => browser.evaluate<boolean>(`document.getElementById('tab-${tab}').ariaSelected === 'true'`))
    const links = await browser.evaluate<string[]>(`[...document.links].map(({ protocol }) => protocol)`)
    t.ok(
      links.every((protocol) => protocol === 'http:' || protocol === 'https:'),
      tab,
    )
  }
  for (const place of ['servers', 'sessions', 'refused']) {
    await go(`#/${place}`)
    await shows(/<img src=x/)
  }
  t.equal(await browser.evaluate('document.title'), 'mcp-bridge inspector')
  t.equal(await browser.evaluate('document.images.length'), 0)
  t.notMatch(await browser.text(), /\u202e/)
  withoutMistakes()
})

t.test('explains a wrong token, and works on a small screen', { skip }, async (t) => {
  const ring = tickingRing()
  tellEverything(ring)
  const wrong = await look(t, ring, {}, 'wrong')
  await wrong.shows(/Unknown token/)
  await wrong.shows(/Open the address that it printed/)
  t.notMatch(await wrong.browser.text(), /No call yet/)
  const { browser, rows, withoutMistakes } = await look(t, ring)
  await until(async () => (await rows()).length === 5)
  await browser.emulate({ width: 390, height: 800 })
  await browser.press('j')
  await until(() => browser.evaluate<boolean>(`document.getElementById('panel') !== null`))
  t.ok(
    await browser.evaluate<boolean>('document.documentElement.scrollWidth <= innerWidth'),
    'nothing is cut off at the side',
  )
  t.same(await problems(browser), [])
  t.same(await browser.evaluate(SMALL), [], 'no text is below 13 pixels')
  await browser.screenshot(`${pictures}small.png`)
  withoutMistakes()
})

t.test('redraws where the time of a call went until it ends', { skip }, async (t) => {
  const ring = tickingRing()
  const { browser, shows, go, withoutMistakes } = await look(t, ring)
  const barOf = () => browser.evaluate<string | undefined>(`document.querySelector('.calls .time')?.ariaLabel`)
  tellCall(ring.record, { id: 1, outcome: 'asks' })
  ring.record({ kind: 'question', what: 'parked', call: 1, server: 'orders' })
  await until(async () => /client [^,]+$/.test((await barOf()) ?? ''), 'the client is waited for')
  await go('#/calls/c1?tab=timeline')
  await shows(/question sent|waiting for the client/)
  await browser.press('p')
  const before = await barOf()
  ring.record({ kind: 'question', what: 'answered', call: 1, server: 'orders' })
  tellCall(ring.record, { id: 2, more: { continues: 1 } })
  await shows(/answered/)
  t.equal(await barOf(), before, 'a list that is paused stands still')
  await browser.press('p')
  const views = new Views()
  for (const seen of eventsIn(ring)) views.add(seen)
  const call = views.call('c1') as CallView
  const phases = phasesOf(call, call.at).map(({ who, from, to }) => `${who} ${duration(to - from)}`)
  await until(async () => (await barOf()) === phases.join(', '), 'the bar goes to the end')
  await shows(/answered/)
  const lane = await browser.evaluate<string>(`document.querySelector('.lane')?.ariaLabel`)
  t.match(lane, /^client or person: from [\d.]+ ms to [\d.]+ ms$/)
  withoutMistakes()
})

t.test('of several replicas, a call names the one that recorded it', { skip }, async (t) => {
  const ring = tickingRing({ replica: '0123456789abcdef' })
  tellCall(ring.record, { id: 1 })
  const { shows, go, withoutMistakes } = await look(t, ring)
  await shows(/live/)
  await go('#/calls/c1')
  await shows(/replica 0123456789abcdef/)
  withoutMistakes()
})

t.test('on a phone, nothing scrolls sideways, and tables stay tables', { skip }, async (t) => {
  const ring = tickingRing({ payloads: 'all' })
  tellEverything(ring)
  const { record } = ring
  const long = 'a-name-without-spaces-that-is-wider-than-a-phone'
  const server = 'a-server-whose-name-is-wider-than-a-phone'
  record({ ...OPENED, server, session: 's1', principal: `${long}@example.com` })
  tellCall(record, {
    id: 8,
    server,
    more: { session: 's1', client: { era: 'legacy', transport: 'sse', name: long } },
  })
  record({ ...OPENED, side: 'server', session: 's2' })
  record({
    kind: 'refused',
    status: 404,
    why: 'noSuchPath',
    said: long,
    path: `/${long}`,
    from: '2001:db8::1',
    server,
  })
  record({ kind: 'child', server, what: 'stderr', line: `listening on /${long}.sock, and ready for requests` })
  record(
    { kind: 'message', server, hop: 'server', dir: 'out', form: 'request', bytes: 99, method: long },
    `["${long}"]`,
  )
  const { browser, shows, go, withoutMistakes } = await look(t, ring)
  await browser.emulate({ width: 360, height: 800 })
  const places = {
    sessions: { heading: 'Time in calls', rows: 4, columns: 12 },
    refused: { heading: 'Meaning', rows: 2, columns: 7 },
    servers: undefined,
  }
  for (const [place, table] of Object.entries(places)) {
    await go(`#/${place}`)
    await shows(/a-server-whose-name-is-wider-than-a-phone/)
    await browser.evaluate(`for (const one of document.querySelectorAll('details')) one.open = true`)
    t.same(await browser.evaluate(WIDE), [], `${place}: nothing is wider than its place`)
    t.same(await browser.evaluate(SMALL), [], `${place}: no text is below 13 pixels`)
    t.same(await problems(browser), [], `${place}: axe-core finds nothing`)
    await browser.screenshot(`${pictures}small-${place}.png`)
    if (!table) continue
    const { heading, rows, columns } = table
    const { nodes } = await browser.send<{ nodes: { role?: { value: string }; name?: { value: string } }[] }>(
      'Accessibility.getFullAXTree',
    )
    const named = (role: string) => nodes.filter((node) => node.role?.value === role).map(({ name }) => name?.value)
    t.equal(named('table').length, 1, `${place}: a table`)
    t.equal(named('row').length, rows + 1)
    t.equal(named('columnheader').length, columns)
    t.ok(named('columnheader').includes(heading))
    t.equal(named('cell').length, rows * columns)
    const label = `getComputedStyle(document.querySelector('td[data-label="${heading}"]'), '::before').content`
    t.equal(await browser.evaluate(label), `"${heading}"`, `${place}: each value has its heading`)
  }
  withoutMistakes()
})

t.test('thousands of calls have a few dozen rows, and none is lost', { skip }, async (t) => {
  const ring = tickingRing()
  const { browser, shows, rows, withoutMistakes } = await look(t, ring)
  await shows(/live/)
  for (let i = 1; i <= 3_000; i++) {
    tellCall(ring.record, { id: i, name: `tool-${i}` })
    if (i % 20 === 0) await new Promise((resolve) => setTimeout(resolve, 5))
  }
  await shows(/24,000 events, 0 lost/)
  await shows(/tool-3000/)
  t.ok((await rows()).length < 100)
  t.equal(await browser.evaluate(`document.querySelector('.calls').ariaRowCount`), '3001', 'all of them')
  withoutMistakes()
})
