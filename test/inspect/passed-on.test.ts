/** What the inspector shows of calls that pass unchanged between a legacy client and a legacy server. */
import t, { type Test } from 'tap'
import { rowsOf } from '../../src/inspector/rows.js'
import type { CallView } from '../../src/inspector/views.js'
import { LEGACY } from '../../src/mcp/protocol/eras.js'
import { ADA, NAME } from '../support/asking.js'
import { until, untilFound } from '../support/eventually.js'
import { LegacyClient } from '../support/legacy-client.js'
import { LegacyHttp, type Plan } from '../support/legacy-http.js'
import { LegacySse } from '../support/legacy-sse.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { eventsIn } from '../support/sights.js'
import { SseClient } from '../support/sse-client.js'
import { rowsIn, startWatched } from '../support/watched.js'

const QUESTION = { name: 'steps', arguments: { steps: [{ ask: [NAME] }] } }
const SERVERS: Readonly<Record<string, (t: Test, plan: Plan) => Promise<{ transport: string; server: object }>>> = {
  'Streamable HTTP': async (t, plan) => ({ transport: 'http', server: { url: (await LegacyHttp.start(t, plan)).url } }),
  'Streamable HTTP behind a choice': async (t, plan) => {
    const { url } = await LegacyHttp.start(t, plan)
    return { transport: 'http', server: { url, tools: { deny: ['wait'] } } }
  },
  'HTTP+SSE': async (t, plan) => ({ transport: 'sse', server: { url: (await LegacySse.start(t, plan)).url } }),
  stdio: async (t, plan) => ({ transport: 'stdio', server: legacyStdio(t, plan).server }),
}

for (const [name, start] of Object.entries(SERVERS))
  t.test(`a server on ${name} asks: the question, its answer and the call are one`, async (t) => {
    const { transport, server } = await start(t, { asks: true })
    const { url, calls } = await startWatched(t, server)
    const client = await LegacyClient.open(url, { capabilities: { elicitation: {} } })
    const stream = await client.stream('tools/call', QUESTION)
    const [question] = await stream.has(1)
    const asked = () => calls().find(({ method }) => method === 'tools/call') as CallView
    await until(() => asked().parked, 'its client is asked')
    t.match(asked(), { status: 'open', rounds: 1 })
    await client.post({ jsonrpc: '2.0', id: question?.['id'], result: ADA })
    await until(() => asked().status === 'ok', 'the call has ended')
    t.match(asked(), {
      rounds: 1,
      parked: false,
      client: { era: 'legacy', revision: '2025-11-25', transport: 'http', name: 'old' },
      upstream: { era: 'legacy', revision: '2025-11-25', transport },
    })
    t.same(
      rowsOf(asked()).map(({ client, server }) => [client, server].map((seen) => seen && [seen.dir, seen.form])),
      [
        [
          ['in', 'request'],
          ['out', 'request'],
        ],
        [
          ['out', 'request'],
          ['in', 'request'],
        ],
        [
          ['in', 'result'],
          ['out', 'result'],
        ],
        [
          ['out', 'result'],
          ['in', 'result'],
        ],
      ],
    )
    t.same(
      calls().filter(({ method }) => method === 'response'),
      [],
      'the answer is no call',
    )
  })

const CLIENTS = {
  'Streamable HTTP': (url: string) => LegacyClient.open(url),
  'HTTP+SSE': (url: string) => SseClient.open(url, '2025-11-25'),
}

for (const [name, start] of Object.entries(SERVERS))
  for (const [front, open] of Object.entries(CLIENTS)) {
    // Messages of the same era over HTTP pass unchanged.
    if (name.startsWith(front) && front === 'Streamable HTTP') continue
    t.test(`passes initialize of a client on ${front} on to a server on ${name}`, async (t) => {
      const { server } = await start(t, {})
      const { url, calls } = await startWatched(t, server)
      await open(url)
      const call = await untilFound(() => calls().find((one) => one.method === 'initialize' && one.status === 'ok'))
      t.same(rowsIn(call), [
        ['in initialize', 'out initialize'],
        ['out result', 'in result'],
      ])
      t.same(
        call.events.flatMap((seen) => (seen.kind === 'message' && seen.dir === 'out' ? [seen.changes] : [])),
        Array.from({ length: 2 }, () => [{ at: '/id', op: 'replace', rule: 'ids' }]),
        'only the id was changed',
      )
    })
  }

const REFUSING: Plan = {
  asks: true,
  override: ({ message }, response) => {
    if (!('result' in message) && message['method'] !== 'vendor/note') return false
    response.writeHead(400).end()
    return true
  },
}

for (const [name, serve] of Object.entries({
  'Streamable HTTP': async (t: Test) => ({ url: (await LegacyHttp.start(t, REFUSING)).url }),
  'HTTP+SSE': async (t: Test) => ({ url: (await LegacySse.start(t, REFUSING)).url }),
}))
  t.test(`an answer that a server on ${name} refuses belongs to the call that has asked`, async (t) => {
    const { url, calls } = await startWatched(t, await serve(t))
    const client = await LegacyClient.open(url, { capabilities: { elicitation: {} } })
    const stream = await client.stream('tools/call', QUESTION)
    const [question] = await stream.has(1)
    const { status } = await client.post({ jsonrpc: '2.0', id: question?.['id'], result: ADA })
    t.equal(status, name === 'HTTP+SSE' ? 202 : 400)
    const asking = () => calls().find(({ method }) => method === 'tools/call') as CallView
    await until(() => rowsOf(asking()).length === 4, 'the answer and its refusal are rows of the call')
    const [answer, refusal] = rowsOf(asking()).slice(2)
    t.match(answer, { client: { dir: 'in', form: 'result' }, server: { dir: 'out', form: 'result' } })
    t.match(refusal, { client: undefined, server: { dir: 'in', form: 'error', http: { status: 400 } } })
    t.equal(asking().status, 'open', 'the call goes on')
    stream.leave()
  })

t.test('a notification that the server refuses is shown with its refusal', async (t) => {
  const { url, ring } = await startWatched(t, { url: (await LegacyHttp.start(t, REFUSING)).url })
  const client = await LegacyClient.open(url)
  t.equal((await client.notify('vendor/note')).status, 400)
  const shown = () => eventsIn(ring).flatMap((seen) => (seen.kind === 'message' && seen.hop === 'server' ? [seen] : []))
  await until(() => shown().at(-1)?.form === 'error', 'the refusal')
  t.match(shown().slice(-2), [
    { dir: 'out', form: 'notification', method: 'vendor/note' },
    { dir: 'in', form: 'error', http: { status: 400 } },
  ])
})

t.test('answers to requests that are no questions, and to unknown ones', async (t) => {
  const legacy = await LegacyHttp.start(t, { asks: true })
  const { url, calls } = await startWatched(t, { url: legacy.url })
  const client = await LegacyClient.open(url)
  const ping = { name: 'steps', arguments: { steps: [{ ask: [{ method: 'ping' }] }] } }
  const stream = await client.stream('tools/call', ping)
  const [asked] = await stream.has(1)
  await client.post({ jsonrpc: '2.0', id: asked?.['id'], result: {} })
  const call = () => calls().find(({ method }) => method === 'tools/call') as CallView
  await until(() => call().status === 'ok', 'the call has ended')
  t.match(call(), { rounds: 0, parked: false })
  t.equal(rowsOf(call()).length, 4, 'the answer to a ping belongs to the call, too')
  await client.post({ jsonrpc: '2.0', id: 'unknown', result: {} })
  t.notOk(
    calls().some(({ method }) => method === 'response'),
    'an answer to nothing is no call',
  )
})

for (const revision of LEGACY)
  t.test(`shows the revision of a direct session: ${revision}`, async (t) => {
    const legacy = await LegacyHttp.start(t, { revision })
    const { url, calls } = await startWatched(t, { url: legacy.url })
    const client = await LegacyClient.open(url, { revision })
    await client.call('echo', {})
    const echo = () => calls().find(({ name }) => name === 'echo')
    await until(() => echo()?.status === 'ok', 'the call has ended')
    for (const call of calls()) {
      t.match(call, { client: { revision }, upstream: { revision } }, call.method)
    }
  })
