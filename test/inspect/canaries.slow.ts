/**
 * Secrets that pass through a watched bridge: none of them is in what the inspector keeps, shows or exports.
 *
 * Runs in its own process: its browser ends with it.
 */
import t, { type Test } from 'tap'
import { EventRecorder } from '../../src/inspector/recorder/recorder.js'
import { Ring } from '../../src/inspector/ring.js'
import { startBridge } from '../support/bridge.js'
import { noBrowser } from '../support/chromium.js'
import { until } from '../support/eventually.js'
import { messages } from '../support/inspected.js'
import { startInspector, TOKEN } from '../support/inspector.js'
import { look } from '../support/inspector-page.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { lastIn } from '../support/modern.js'
import { eventsIn } from '../support/sights.js'
import { run } from '../support/tail.js'

const QUESTION = {
  method: 'elicitation/create',
  params: { mode: 'form', message: 'Who?', requestedSchema: { type: 'object', properties: {} } },
}

/** The parts of a call on the page. */
const TABS = ['messages', 'timeline', 'why', 'raw']

const secret = (name: string) => `CANARY-${name}-0123456789`

/** Sends all kinds of secrets through a watched bridge. Gives what was seen of them, and further secrets that were made. */
async function passSecrets(t: Test): Promise<{ ring: Ring; made: readonly string[] }> {
  const ring = new Ring({ payloads: 'all' })
  const { server } = legacyStdio(t)
  const { url } = await startBridge(
    t,
    server,
    { auth: { tokens: { alice: secret('token') } } },
    { recorder: new EventRecorder(ring.record) },
  )
  const authorization = `Bearer ${secret('token')}`
  const refused = await fetch(`${url}?key=${secret('query')}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${secret('wrong')}`, 'content-type': 'application/json' },
    body: '{}',
  })
  t.equal(refused.status, 401)
  const args = {
    message: 'seen',
    password: secret('password'),
    nested: { api_key: secret('key'), note: `Bearer ${secret('inText')}` },
    text: JSON.stringify({ clientSecret: secret('inJson') }),
  }
  const answer = await messages.post(url, messages.call('echo', args), { authorization, cookie: secret('cookie') })
  await answer.text()
  const capabilities = { 'io.modelcontextprotocol/clientCapabilities': { elicitation: { form: {} } } }
  const asked = await messages.post(
    url,
    messages.call('ask', { rounds: [{ name: QUESTION }] }, { id: 2, meta: capabilities }),
    { authorization },
  )
  const { result } = lastIn(await asked.text()) as { result: { requestState?: string } }
  const state = result.requestState ?? ''
  t.not(state, '', 'the server asks')
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'old', version: '1' } }
  const opened = await fetch(url, {
    method: 'POST',
    headers: { authorization, 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 3, method: 'initialize', params }),
  })
  const session = opened.headers.get('mcp-session-id') ?? ''
  t.not(session, '', 'a session')
  await opened.text()
  return { ring, made: [state, session] }
}

/** Fails if a text has a secret. */
function hasNoSecret(t: Test, text: string, made: readonly string[], where = 'it'): void {
  t.notMatch(text, /CANARY/, where)
  for (const one of made) t.notOk(text.includes(one), 'no requestState, and no session id')
}

t.test('credentials, session ids, requestState and secret arguments stay out of the inspector', async (t) => {
  const { ring, made } = await passSecrets(t)
  const base = await startInspector(t, ring)
  const read = async (path: string) =>
    (await fetch(base + path, { headers: { authorization: `Bearer ${TOKEN}` } })).text()
  const first = eventsIn(ring).find((seen) => seen.kind === 'call' && seen.name === 'echo')
  const shown = [
    await read('/inspect/export?format=jsonl'),
    await read('/inspect/export?format=har'),
    await read('/inspect/calls'),
    await read(`/inspect/calls/${first?.call}`),
    await read('/inspect/sessions'),
    await read('/inspect/servers'),
  ]
  const events = new AbortController()
  const stream = await fetch(`${base}/inspect/events?payloads`, {
    headers: { authorization: `Bearer ${TOKEN}` },
    signal: events.signal,
  })
  let streamed = ''
  const reading = (async () => {
    for await (const chunk of stream.body ?? []) streamed += Buffer.from(chunk).toString()
  })().catch(() => {})
  await until(() => streamed.includes(`"seq":${ring.last}`), 'all events')
  events.abort()
  await reading
  for (const text of [...shown, streamed]) hasNoSecret(t, text, made)
  t.match(shown[0], /"seen|\\"seen/, 'arguments that are not secret are shown')
  t.match(shown[0], /sealed, \d+ B/, 'a requestState is shown by its size')
})

t.test('secrets stay out of the terminal', async (t) => {
  const { ring, made } = await passSecrets(t)
  const target = `${await startInspector(t, ring)}/inspect#${TOKEN}`
  for (const options of [{}, { both: true }, { json: true }, { json: true, filter: 'tool:ask' }]) {
    const { said } = run({ target, ...options })
    await until(() => /\bask\b.*\n$/s.test(said.out), 'the last call')
    hasNoSecret(t, said.out + said.err, made, JSON.stringify(options))
  }
})

t.test('secrets stay out of the texts and attributes of the page', { skip: noBrowser }, async (t) => {
  const { ring, made } = await passSecrets(t)
  const { browser, shows, rows, go } = await look(t, ring)
  await until(async () => (await rows()).length > 2)
  const ids = await browser.evaluate<string[]>(
    `[...document.querySelectorAll('.calls tbody a')].map(({ hash }) => hash.split('/').at(-1))`,
  )
  const places = ['servers', 'sessions', 'refused', ...ids.flatMap((id) => TABS.map((tab) => `calls/${id}?tab=${tab}`))]
  let all = ''
  for (const place of places) {
    await go(`#/${place}`)
    if (place.startsWith('calls/')) await shows(new RegExp(`#${place.split(/[/?]/)[1]}\\b`))
    await browser.evaluate(`for (const one of document.querySelectorAll('details')) one.open = true`)
    // Texts come after their messages.
    if (place.endsWith('messages') || place.endsWith('raw')) await shows(/"method"/)
    const page = await browser.evaluate<string>('document.documentElement.outerHTML')
    hasNoSecret(t, page, made, place)
    all += page
  }
  t.match(all, /‹hidden›/, 'it shows what is hidden')
  t.match(all, /sealed, \d+ B/)
})
