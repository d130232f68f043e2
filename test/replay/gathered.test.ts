/** What is recorded of the calls of a bridge: in all pairs of eras over HTTP, with questions, and within bounds. */
import { createRequire } from 'node:module'
import { execPath } from 'node:process'
import { Client as ModernClient, StreamableHTTPClientTransport as ModernHttp } from '@modelcontextprotocol/client'
import t, { type Test } from 'tap'
import type { RecordEvent, TraceEvent } from '../../src/inspector/recorder/events.js'
import { EventRecorder } from '../../src/inspector/recorder/recorder.js'
import { GatheredCalls } from '../../src/inspector/replay/gathered.js'
import type { RecordingCall } from '../../src/inspector/replay/recording.js'
import { startBridge } from '../support/bridge.js'
import { until } from '../support/eventually.js'
import { LegacyHttp } from '../support/legacy-http.js'
import { ModernHttp as ModernServer } from '../support/modern-http.js'

const EVERYTHING = createRequire(import.meta.url).resolve('@modelcontextprotocol/server-everything/dist/index.js')

function gather(hide: readonly string[] = []) {
  const calls: RecordingCall[] = []
  const left: string[] = []
  const gathered = new GatheredCalls({ hide, found: (call) => calls.push(call), left: (why) => left.push(why) })
  return { calls, left, record: gathered.record, recorder: new EventRecorder(gathered.record) }
}

const SERVERS: Record<string, (t: Test) => Promise<object>> = {
  'a program': async () => ({ command: execPath, args: [EVERYTHING, 'stdio'] }),
  'a legacy server on HTTP': async (t) => ({ url: (await LegacyHttp.start(t, { sessions: true })).url }),
  'a modern server on HTTP': async (t) => ({ url: (await ModernServer.start(t)).url }),
}

for (const [server, start] of Object.entries(SERVERS))
  for (const [revision, mode] of [
    ['2026-07-28', { pin: '2026-07-28' }],
    ['2025-11-25', 'legacy'],
  ] as const)
    t.test(`calls of a client of ${revision} of ${server}`, async (t) => {
      const { calls, recorder } = gather()
      const { url } = await startBridge(t, await start(t), {}, { recorder })
      const capabilities = { elicitation: { form: {} }, sampling: {} }
      const client = new ModernClient({ name: 'x', version: '1' }, { capabilities, versionNegotiation: { mode } })
      await client.connect(new ModernHttp(new URL(url)))
      t.teardown(() => client.close())
      // Scripted servers list tools that the SDK refuses.
      await client.listTools().catch(() => {})
      const text = 'Grüezi 日本 \u{1f600}'.repeat(500)
      await client.callTool({ name: 'echo', arguments: { message: text, text } })
      await until(() => calls.length === 2, 'both calls are recorded')
      t.match(calls, [
        { method: 'tools/list', revision, capabilities, params: {}, expect: { result: { tools: Array } } },
        {
          name: 'tools/call echo',
          revision,
          capabilities,
          params: { name: 'echo', arguments: { message: text, text } },
          expect: { result: { content: [{ type: 'text' }] } },
        },
      ])
      t.match(JSON.stringify(calls[1]?.expect), text, 'no character is lost')
    })

const call = {
  kind: 'call',
  server: 's',
  principal: 'p',
  client: { era: 'legacy', revision: '2025-11-25' },
  method: 'tools/call',
} as const
const message = { kind: 'message', hop: 'client', server: 's' } as const
const REQUEST = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'x', arguments: {} } }
const ANSWER = { jsonrpc: '2.0', id: 1, result: { content: [] } }

/** Reports a call with these messages. */
function tell(
  record: RecordEvent,
  number: number,
  {
    outcome = 'ok',
    request = REQUEST,
    answer = ANSWER,
    bytes = 0,
  }: { outcome?: string; request?: object; answer?: object | null; bytes?: number },
): void {
  record({ ...call, what: 'begun', call: number } as TraceEvent)
  const text = JSON.stringify(request)
  record({ ...message, dir: 'in', form: 'request', call: number, bytes: text.length } as TraceEvent, text)
  if (answer) {
    const answered = JSON.stringify(answer)
    record(
      { ...message, dir: 'out', form: 'result', call: number, bytes: bytes || answered.length } as TraceEvent,
      answered,
    )
  }
  record({ ...call, what: 'ended', call: number, outcome } as TraceEvent)
}

t.test('skips calls that cannot be repeated, with the reason', async (t) => {
  const { calls, left, record } = gather()
  tell(record, 1, { outcome: 'cancelled' })
  tell(record, 2, { outcome: 'fault' })
  tell(record, 3, { request: { ...REQUEST, method: 'tasks/get' } })
  tell(record, 4, { request: { ...REQUEST, params: { name: 'x', task: {} } } })
  tell(record, 5, { request: { ...REQUEST, method: 'tools/call', params: { cursor: 'x' } } })
  tell(record, 6, { answer: { jsonrpc: '2.0', id: 1, result: { task: {} } } })
  tell(record, 7, { bytes: 5 * 1024 * 1024 })
  tell(record, 8, { answer: null })
  t.same(calls, [])
  t.same(left, [
    'Calls of this method cannot be repeated',
    'It requests a task',
    'It requests a further page of a list, and cursors expire',
    'It became a task',
    'Its messages are too large',
    'It has no answer',
  ])
  tell(record, 9, {})
  t.equal(calls.length, 1)
})

t.test('secrets are hidden: by their names, by a schema, and by inspect.hide', async (t) => {
  const { calls, record } = gather(['/params/arguments/ssn', '/result/structuredContent/*/iban'])
  const list = {
    tools: [
      { name: 'x', inputSchema: { type: 'object', properties: { pin: { type: 'string', format: 'password' } } } },
    ],
  }
  record({ ...call, method: 'tools/list', what: 'begun', call: 1 } as TraceEvent)
  const asked = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' })
  record(
    { ...message, dir: 'in', form: 'request', method: 'tools/list', id: 1, call: 1, bytes: asked.length } as TraceEvent,
    asked,
  )
  const listed = JSON.stringify({ jsonrpc: '2.0', id: 1, result: list })
  record({ ...message, dir: 'out', form: 'result', id: 1, call: 1, bytes: listed.length } as TraceEvent, listed)
  record({ ...call, method: 'tools/list', what: 'ended', call: 1, outcome: 'ok' } as TraceEvent)
  const given = { ssn: 'CANARY-1', pin: 'CANARY-2', password: 'CANARY-3', fine: 'shown' }
  tell(record, 2, {
    request: { ...REQUEST, params: { name: 'x', arguments: given } },
    answer: { ...ANSWER, result: { structuredContent: [{ iban: 'CANARY-4', token: 'CANARY-5' }] } },
  })
  t.equal(calls.length, 2)
  t.notMatch(JSON.stringify(calls), 'CANARY')
  t.match(calls[1]?.params, { arguments: { fine: 'shown' } })
})

t.test('calls that never end take no more than a bound', async (t) => {
  const { calls, record } = gather()
  for (let number = 1; number <= 10_000; number++) {
    record({ ...call, what: 'begun', call: number } as TraceEvent)
    const text = JSON.stringify({ ...REQUEST, params: { name: 'x', arguments: { text: 'x'.repeat(10_000) } } })
    record({ ...message, dir: 'in', form: 'request', call: number, bytes: text.length } as TraceEvent, text)
  }
  const end = (number: number) => {
    const answered = JSON.stringify(ANSWER)
    record({ ...message, dir: 'out', form: 'result', call: number, bytes: answered.length } as TraceEvent, answered)
    record({ ...call, what: 'ended', call: number, outcome: 'ok' } as TraceEvent)
  }
  end(1)
  t.equal(calls.length, 0, 'the oldest were dropped')
  end(10_000)
  t.equal(calls.length, 1, 'the newest were not')
})

t.test('nothing is gathered after the end', async (t) => {
  const calls: RecordingCall[] = []
  const gathered = new GatheredCalls({ hide: [], found: (call) => calls.push(call), left: () => {} })
  tell(gathered.record, 1, {})
  gathered.stop()
  tell(gathered.record, 2, {})
  t.equal(calls.length, 1)
})
