/** Calls that the inspector does not record, because too many come: they are served as others, and leave no half of them. */
import t from 'tap'
import type { RecordedEvent } from '../../src/inspector/recorder/events.js'
import { EventRecorder } from '../../src/inspector/recorder/recorder.js'
import { Ring } from '../../src/inspector/ring.js'
import { Views } from '../../src/inspector/views.js'
import { CLIENTS } from '../matrix/clients.js'
import { nameOf, runPair } from '../matrix/run.js'
import { SERVERS } from '../matrix/servers.js'
import { ADA, NAME } from '../support/asking.js'
import { startBridge } from '../support/bridge.js'
import { until } from '../support/eventually.js'
import { messages } from '../support/inspected.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { ModernHttp } from '../support/modern-http.js'
import { eventsIn } from '../support/sights.js'

const PAIRS = [
  ['modern HTTP', 'legacy stdio'],
  ['legacy HTTP', 'modern HTTP'],
  ['legacy stdio', 'legacy stdio'],
  ['modern HTTP', 'modern HTTP'],
] as const

/** What is recorded in any case. */
const ALWAYS = ['initialize', 'tools/list']
/** Messages that belong to a call, whichever they are. */
const OF_CALLS = ['tools/call', 'notifications/progress', 'elicitation/create']

for (const [from, to] of PAIRS)
  t.test(`${from} client, ${to} server: calls that are not recorded`, async (t) => {
    const client = CLIENTS.find((one) => nameOf(one) === from)
    const server = SERVERS.find((one) => nameOf(one) === to)
    if (!client || !server) throw new TypeError('There is no such pair')
    const ring = new Ring({ payloads: 'all' })
    await runPair(t, { client, server }, { context: { recorder: new EventRecorder(ring.record, 0) } })

    const events = eventsIn(ring)
    const messages = events.filter((seen) => seen.kind === 'message')
    const ended = events.filter(
      (seen): seen is RecordedEvent & { kind: 'call' } => seen.kind === 'call' && seen.what === 'ended',
    )
    const { calls } = viewsOf(events)
    t.same(
      [...calls.values()].filter(({ incomplete, status }) => incomplete || status === 'open'),
      [],
      'each call has its beginning and its end',
    )
    const always = ended.filter(({ method }) => ALWAYS.includes(method))
    t.same([...new Set(always.map(({ method }) => method))], ALWAYS.slice(client.era === 'legacy' ? 0 : 1))
    const failed = ended.filter(({ method }) => !ALWAYS.includes(method))
    t.ok(failed.length > 0, 'calls that failed are shown')
    t.same(
      failed.filter(({ outcome }) => outcome === 'ok' || outcome === 'asks' || outcome === 'cancelled'),
      [],
      'and no others',
    )
    t.same(
      failed.filter(({ call }) => messages.some((message) => message.call === call)),
      [],
      'without their messages',
    )
    t.same(
      messages.filter(({ call, method = '' }) => call === undefined && OF_CALLS.includes(method)),
      [],
      'no message of a call is taken for one that belongs to none',
    )
    await until(() => eventsIn(ring).some(({ kind }) => kind === 'lost'), 'they are counted')
    const { unrecorded, notes } = viewsOf(eventsIn(ring))
    t.ok(unrecorded > 10, `${unrecorded} calls`)
    t.match(notes.at(-1), { kind: 'lost', text: /not recorded/ })
  })

t.test('counts unrecorded calls, and shows failed ones', async (t) => {
  const ring = new Ring()
  const { url } = await startBridge(t, legacyStdio(t).server, {}, { recorder: new EventRecorder(ring.record, 0) })
  for (const name of ['echo', 'nope', 'echo', 'nope', 'nope'])
    await (await messages.post(url, messages.call(name, {}))).text()
  await until(() => eventsIn(ring).some(({ kind }) => kind === 'lost'), 'they are counted')
  const views = viewsOf(eventsIn(ring))
  t.same([views.calls.size, views.unrecorded], [3, 2])
})

for (const era of ['legacy', 'modern'])
  t.test(`a call that continues a recorded one is recorded, too: a ${era} server`, async (t) => {
    const ring = new Ring()
    const server = era === 'modern' ? { url: (await ModernHttp.start(t)).url } : legacyStdio(t).server
    const { url } = await startBridge(t, server, {}, { recorder: new EventRecorder(ring.record, 2) })
    // The era of the server is known then.
    await ask(url, { id: 1, method: 'tools/list' })
    const call = { id: 2, method: 'tools/call', params: { name: 'ask', arguments: { rounds: [{ name: NAME }] } } }
    const { inputRequests, requestState } = await ask(url, call)
    const inputResponses = Object.fromEntries(Object.keys(inputRequests as object).map((key) => [key, ADA]))
    const answered = await ask(url, { ...call, id: 3, params: { ...call.params, inputResponses, requestState } })
    t.match(JSON.stringify(answered), /Ada/)
    await until(() => eventsIn(ring).filter((seen) => seen.kind === 'call' && seen.what === 'ended').length === 3)
    const calls = [...viewsOf(eventsIn(ring)).calls.values()]
    t.match(calls.at(-1), { name: 'ask', status: 'ok', parked: false })
    t.equal(calls.length, 2, 'both are one call')
  })

async function ask(url: string, { params, ...rest }: { id: number; method: string; params?: object }) {
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': { elicitation: { form: {} } },
  }
  const body = JSON.stringify({ jsonrpc: '2.0', ...rest, params: { ...params, _meta } })
  return ((await (await messages.post(url, body)).json()) as { result: Record<string, unknown> }).result
}

function viewsOf(events: readonly RecordedEvent[]): Views {
  const views = new Views()
  for (const seen of events) views.add(seen)
  return views
}
