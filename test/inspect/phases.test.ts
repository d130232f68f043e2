/** Where the time of a call goes: who is waited for, also if questions overlap and if the server has to be started. */
import t, { type Test } from 'tap'
import { phasesOf, serverMs } from '../../src/inspector/phases.js'
import type { TraceEvent } from '../../src/inspector/recorder/events.js'
import type { MessageTrace } from '../../src/inspector/recorder/message.js'
import { Ring } from '../../src/inspector/ring.js'
import type { CallView } from '../../src/inspector/views.js'
import { asked, httpClient } from '../support/asked-clients.js'
import { ADA, FOLDERS, NAME, ROOTS } from '../support/asking.js'
import { until, untilFound } from '../support/eventually.js'
import { LegacyHttp } from '../support/legacy-http.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { eventsIn } from '../support/sights.js'
import { startWatched, viewsOf } from '../support/watched.js'

type Told = readonly [at: number, trace: TraceEvent]

const message = (hop: 'client' | 'server', dir: 'in' | 'out', form: MessageTrace['form'], id?: number): TraceEvent => ({
  ...{ kind: 'message', call: 1, bytes: 1, hop, dir, form, id },
  method:
    form === 'request' ? ((dir === 'in') === (hop === 'client') ? 'tools/call' : 'elicitation/create') : undefined,
})
const question = (what: 'parked' | 'answered' | 'expired'): TraceEvent => ({ kind: 'question', what, call: 1 })
const call = (what: 'begun' | 'ended', more: Partial<Extract<TraceEvent, { kind: 'call' }>> = {}): TraceEvent => ({
  ...{ kind: 'call', what, call: 1, principal: 'p', client: { era: 'modern' }, method: 'tools/call' },
  ...(what === 'ended' && { outcome: 'ok' }),
  ...more,
})
const back = (id: number) => call('begun', { call: id, continues: 1 })

/** The call that this adds up to. */
function callOf(told: readonly Told[]): CallView {
  let now = 0
  const ring = new Ring({ now: () => now, origin: 0 })
  for (const [at, trace] of told) {
    now = at
    ring.record(trace)
  }
  return viewsOf(eventsIn(ring)).call('c1') as CallView
}

const cases: [name: string, told: Told[], phases: string][] = [
  [
    'a legacy server asks for roots while its question to a person is open',
    [
      [0, call('begun')],
      [0, message('client', 'in', 'request', 1)],
      [1, message('server', 'out', 'request', 3)],
      [30, message('server', 'in', 'request', 0)],
      [30, message('client', 'out', 'request', 0)],
      [30, question('parked')],
      [350, message('client', 'out', 'request', 1)],
      [350, question('parked')],
      [360, question('answered')],
      [360, message('client', 'in', 'result', 1)],
      [365, message('server', 'in', 'notification')],
      [1_200, question('answered')],
      [1_200, message('client', 'in', 'result', 0)],
      [1_200, message('server', 'out', 'result', 0)],
      [1_300, message('server', 'in', 'result', 3)],
      [1_310, message('client', 'out', 'result', 1)],
      [1_310, call('ended', { ms: 1_310, upstreamMs: 1_300 })],
    ],
    'bridge 0-1, server 1-30, client 30-1200, server 1200-1300, bridge 1300-1310',
  ],
  [
    'the server of a modern client asks for roots while the client is away with a question',
    [
      [0, call('begun')],
      [5, message('server', 'out', 'request', 3)],
      [10, message('server', 'in', 'request', 0)],
      [40, question('parked')],
      [41, call('ended', { outcome: 'asks', ms: 41, upstreamMs: 36 })],
      [350, message('server', 'in', 'request', 1)],
      [900, back(2)],
      [901, question('answered')],
      [901, message('server', 'out', 'result', 0)],
      [950, message('server', 'in', 'result', 3)],
      [960, call('ended', { call: 2, ms: 60, upstreamMs: 50 })],
    ],
    'bridge 0-5, server 5-40, client 40-900, server 900-950, bridge 950-960',
  ],
  [
    'a modern server asks a legacy client two things at once',
    [
      [0, call('begun')],
      [0, message('server', 'out', 'request', 3)],
      [20, message('server', 'in', 'result', 3)],
      [20, question('parked')],
      [21, message('client', 'out', 'request', 1)],
      [21, message('client', 'out', 'request', 2)],
      [50, message('client', 'in', 'result', 2)],
      [90, message('client', 'in', 'result', 1)],
      [90, question('answered')],
      [92, message('server', 'out', 'request', 4)],
      [99, message('server', 'in', 'result', 4)],
      [100, call('ended', { ms: 100, upstreamMs: 27 })],
    ],
    'server 0-20, client 20-90, bridge 90-92, server 92-99, bridge 99-100',
  ],
  [
    'a question that passes unchanged as the result of the call',
    [
      [0, call('begun')],
      [0, message('server', 'out', 'request', 3)],
      [20, message('server', 'in', 'result', 3)],
      [20, call('ended', { outcome: 'asks', ms: 20 })],
      [80, back(2)],
      [80, message('server', 'out', 'request', 4)],
      [99, message('server', 'in', 'result', 4)],
      [99, call('ended', { call: 2, ms: 19 })],
    ],
    'server 0-20, client 20-80, server 80-99',
  ],
  [
    'a server asks before it gets the call, for which it was started',
    [
      [0, call('begun')],
      [40, question('parked')],
      [41, call('ended', { outcome: 'asks', ms: 41, upstreamMs: 36 })],
      [900, back(2)],
      [901, question('answered')],
      [901, message('server', 'out', 'request', 3)],
      [950, message('server', 'in', 'result', 3)],
      [960, call('ended', { call: 2, ms: 60, upstreamMs: 50 })],
    ],
    'bridge 0-40, client 40-900, bridge 900-901, server 901-950, bridge 950-960',
  ],
  [
    'a request is sent again, because the server has lost the session',
    [
      [0, call('begun')],
      [0, message('server', 'out', 'request', 3)],
      [20, message('server', 'out', 'request', 1)],
      [50, message('server', 'in', 'result', 1)],
      [90, call('ended', { ms: 90 })],
    ],
    'server 0-50, bridge 50-90',
  ],
  [
    'a program is started before it gets the call',
    [
      [0, call('begun')],
      [700, message('server', 'out', 'request', 1)],
      [750, message('server', 'in', 'result', 1)],
      [760, call('ended', { ms: 760, upstreamMs: 740 })],
    ],
    'bridge 0-10, server 10-750, bridge 750-760',
  ],
  [
    'a program that cannot be started',
    [
      [0, call('begun')],
      [0, message('client', 'in', 'request', 1)],
      [100, message('client', 'out', 'error', 1)],
      [100, call('ended', { outcome: 'fault', ms: 100, upstreamMs: 80 })],
    ],
    'bridge 0-10, server 10-90, bridge 90-100',
  ],
]

for (const [name, told, phases] of cases)
  t.test(`the side that a call waits for: ${name}`, async (t) => {
    const call = callOf(told)
    const found = phasesOf(call, 0)
    t.equal(found.map(({ who, from, to }) => `${who} ${from}-${to}`).join(', '), phases)
    const sum = found.reduce((sum, { who, from, to }) => sum + (who === 'server' ? to - from : 0), 0)
    t.equal(serverMs(call, 0), sum, 'the time at the server is that of the timeline')
  })

t.test('counts all questions to the client, even without an event for them', async (t) => {
  const asks = call('ended', { outcome: 'asks', ms: 1 })
  const once: Told[] = [
    [0, call('begun')],
    [1, asks],
  ]
  t.match(callOf(once), { status: 'asks', rounds: 1, parked: true })
  const twice: Told[] = [...once, [2, back(2)], [3, call('ended', { call: 2, outcome: 'asks', ms: 1 })]]
  t.match(callOf(twice), { status: 'asks', rounds: 2, parked: true })
  t.match(callOf([...twice, [4, back(3)]]), { status: 'open', rounds: 2, parked: false })
  t.match(
    callOf([
      [0, call('begun')],
      [1, question('parked')],
      [2, asks],
    ]),
    { rounds: 1 },
    'a round is counted once',
  )
})

for (const [way, start] of Object.entries({
  'over stdio': async (t: Test) => legacyStdio(t, { asks: true }).server,
  'over HTTP': async (t: Test) => ({ url: (await LegacyHttp.start(t, { asks: true })).url }),
}))
  t.test(`does not wait for the client after a server ${way} has withdrawn its question`, async (t) => {
    const { url, calls } = await startWatched(t, await start(t))
    const client = await httpClient(url)
    const steps = [{ ask: [NAME], withdraw: 'back' }, { wait: 'go' }]
    await client.begin('a', 'tools/call', { name: 'steps', arguments: { steps } })
    const call = () => calls().find(({ name }) => name === 'steps') as CallView
    const signal = (name: string) => client.begin(name, 'tools/call', { name: 'signal', arguments: { name } })
    await until(() => call()?.parked === true, 'the client is asked')
    await signal('back')
    await until(() => !call().parked, 'the question was withdrawn')
    t.match(call(), { status: 'open', rounds: 1 })
    t.equal(phasesOf(call(), Date.now()).at(-1)?.who, 'server')
    await signal('go')
    await until(() => call().status === 'ok', 'the call has ended')
  })

t.test('waits for a client that has answered one of two questions', async (t) => {
  const { server } = legacyStdio(t, { asks: true })
  const { url, calls } = await startWatched(t, server)
  const client = await httpClient(url)
  await client.begin('a', 'tools/call', { name: 'steps', arguments: { steps: [{ ask: [NAME, ROOTS] }] } })
  const [name, roots] = await asked(client, 'a', 2)
  await client.say({ id: roots?.id, result: FOLDERS })
  const isAnswered = (call: CallView) =>
    call.events.some((seen) => seen.kind === 'message' && seen.hop === 'server' && seen.form === 'result')
  const open = await untilFound(() => calls().find((call) => call.name === 'steps' && isAnswered(call)))
  t.match(open, { rounds: 2, parked: true })
  t.equal(phasesOf(open, Date.now()).at(-1)?.who, 'client')
  await client.say({ id: name?.id, result: ADA })
  const ended = await untilFound(() => calls().find((call) => call.name === 'steps' && call.status === 'ok'))
  t.match(ended, { rounds: 2, parked: false })
  t.equal(phasesOf(ended, 0).filter(({ who }) => who === 'client').length, 1, 'without a gap')
})
