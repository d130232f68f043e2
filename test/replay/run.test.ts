/** Recordings that are run through a bridge in this process. */
import t from 'tap'
import type { RecordingCall } from '../../src/inspector/replay/recording.js'
import { type Replayed, type ReplayOptions, replayed } from '../../src/inspector/replay/run.js'
import { startBridge } from '../support/bridge.js'
import { ModernHttp } from '../support/modern-http.js'

type Bridge = Awaited<ReturnType<typeof startBridge>>['bridge']

async function run(
  bridge: Bridge,
  calls: readonly RecordingCall[],
  more: Partial<ReplayOptions> = {},
): Promise<Replayed[]> {
  const { inspected } = bridge
  const found: Replayed[] = []
  const options: ReplayOptions = {
    targetOf: () => 'test',
    redact: (text) => text,
    signal: new AbortController().signal,
    async send(target, { method, headers, body, signal }) {
      const bytes = body === undefined ? undefined : new Uint8Array(Buffer.from(body))
      const answer = await inspected.call(target, { method, headers, body: bytes, signal })
      if (!answer) throw new Error('no such target')
      return answer
    },
    ...more,
  }
  for await (const one of replayed({ recording: 1, calls }, options)) found.push(one)
  return found
}

const call = (name: string, args: object, more: Partial<RecordingCall> = {}): RecordingCall => ({
  revision: '2026-07-28',
  method: 'tools/call',
  params: { name, arguments: args },
  expect: { result: {} },
  ignore: ['/result'],
  ...more,
})

t.test('arguments that headers repeat are sent in these, too', async (t) => {
  const { url } = await ModernHttp.start(t)
  const { bridge } = await startBridge(t, { url })
  const mirrored = { region: 'Zürich', count: 3, urgent: true, place: { zone: 'a b' } }
  const [one] = await run(bridge, [call('mirrored', mirrored)])
  t.match(one, { outcome: 'same', problems: [], differences: [] })
})

t.test('each call is made by a client of its revision and its capabilities', async (t) => {
  const { url } = await ModernHttp.start(t)
  const { bridge } = await startBridge(t, { url })
  const revisions = ['2026-07-28', '2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05']
  const calls = revisions.map((revision) => call('echo', { text: 'x' }, { revision }))
  const found = await run(bridge, calls)
  t.same(
    found.map(({ outcome }) => outcome),
    revisions.map(() => 'same'),
  )
  // More clients than are connected at the same time.
  const many = Array.from({ length: 20 }, (_, i) =>
    call('echo', { text: 'x' }, { capabilities: { experimental: { [`x${i}`]: {} } } }),
  )
  t.ok((await run(bridge, [...many, ...many])).every(({ outcome }) => outcome === 'same'))
})

t.test('an error is compared, and a call without a target fails', async (t) => {
  const { url } = await ModernHttp.start(t)
  const { bridge } = await startBridge(t, { url })
  const missing = { method: 'resources/read', params: { uri: 'memo://no/such' }, ignore: [] }
  const [first] = await run(bridge, [call('', {}, { ...missing, expect: { result: {} } })])
  t.equal(first?.outcome, 'different')
  const error = first?.differences.find(({ at }) => at === '/error')?.actual as Record<string, unknown>
  t.type(error['code'], 'number')
  t.match(await run(bridge, [call('', {}, { ...missing, expect: { error } })]), [{ outcome: 'same' }])
  const targetOf = () => {
    throw new Error('There is no such server')
  }
  t.match(await run(bridge, [call('echo', {})], { targetOf }), [
    { outcome: 'failed', problems: ['There is no such server'] },
  ])
  t.match(await run(bridge, [call('echo', {})], { targetOf: () => 'other' }), [
    { outcome: 'failed', problems: ['Cannot connect as a client of 2026-07-28: no such target'] },
  ])
})
