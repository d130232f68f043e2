/**
 * Whoever wants to fill the memory of the bridge: a real bridge with a heap of 512 MB goes on answering others. Names begin
 * with the number of the hole.
 */
import { connect } from 'node:net'
import t, { type Test } from 'tap'
import { askDeaf } from '../support/deaf.js'
import { type EventStream, openStream } from '../support/events.js'
import { until } from '../support/eventually.js'
import { LegacyClient } from '../support/legacy-client.js'
import { type Answer, call, envelope, headersFor, post } from '../support/modern.js'
import { startFixture } from '../support/process.js'
import { type Attacked, besideHealthy, bulkyStdio, startSmall } from '../support/small-heap.js'
import { SseClient } from '../support/sse-client.js'

type Json = Record<string, unknown>

const MEGA = 1024 * 1024
/** Somewhat less than a request may have. */
const LARGE = 3_900_000
/** Of this length V8 keeps a text in its heap; those over a megabyte it does not. */
const MIDDLE = 900_000
/** Time that a client which does not read is given; the default would be long for a test. */
const WRITE = { timeouts: { write: 2_000 } }

/** Does something so often, some of it at a time. */
async function inParallel<T>(times: number, atOnce: number, act: (at: number) => Promise<T>): Promise<T[]> {
  const results: T[] = []
  let next = 0
  const worker = async () => {
    while (next < times) {
      const at = next++
      results[at] = await act(at)
    }
  }
  await Promise.all(Array.from({ length: atOnce }, worker))
  return results
}

/** Modern requests as a text, for those who do not wait for an answer. */
function modernRequest(method: string, params: Json, meta: Json = {}) {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { ...params, _meta: envelope(meta) } })
  return { headers: headersFor(method, params), body }
}

function bulk(args: Json, progressToken?: string) {
  return modernRequest('tools/call', { name: 'bulk', arguments: args }, progressToken ? { progressToken } : {})
}

const overHttp = async (t: Test, era: 'legacy' | 'modern') => ({
  url: (await startFixture(t, 'bulky.mjs', era, 'http')).url,
})

async function ledgerEmpty(attacked: Attacked): Promise<void> {
  await until(async () => (await attacked.gauge()).used === 0, 'the ledger being empty')
}

const statusesOf = (answers: readonly Answer[]) =>
  Object.fromEntries(
    [...new Set(answers.map(({ status }) => status))].map((s) => [
      s,
      answers.filter(({ status }) => status === s).length,
    ]),
  )

t.test('H2 capabilities of 3.9 MB are refused, and none of 133 different ones is kept', async (t) => {
  const attacked = await startSmall(t, await overHttp(t, 'legacy'))
  const answers: Answer[] = []
  await besideHealthy(t, attacked, async () => {
    const capabilities = (at: number) => ({ experimental: { [`x${at}`]: { text: 'x'.repeat(LARGE) } } })
    const meta = (at: number) => ({ 'io.modelcontextprotocol/clientCapabilities': capabilities(at) })
    const sent = await inParallel(133, 4, (at) => call(attacked.url, 'tools/list', {}, { meta: meta(at) }))
    answers.push(...sent)
  })
  t.same(statusesOf(answers), { 400: 133 })
  t.match(answers[0]?.message.error, { code: -32602, message: /clientCapabilities.*64 KiB/ })
  await ledgerEmpty(attacked)
})

t.test('H2 small capabilities in large requests do not keep the requests', async (t) => {
  const attacked = await startSmall(t, await overHttp(t, 'legacy'))
  await besideHealthy(t, attacked, async () => {
    const meta = (at: number) => ({
      'io.modelcontextprotocol/clientInfo': { name: `client ${at}`, version: '1.0.0' },
      'io.modelcontextprotocol/clientCapabilities': { experimental: { [`a capability ${at}`]: {} } },
    })
    const params = { name: 'echo', arguments: { text: 'x'.repeat(MIDDLE) } }
    const answers = await inParallel(800, 4, (at) => call(attacked.url, 'tools/call', params, { meta: meta(at) }))
    t.ok(
      answers.every(({ status }) => status === 200 || status === 503),
      JSON.stringify(statusesOf(answers)),
    )
  })
  await ledgerEmpty(attacked)
})

t.test('H2 a legacy client with capabilities of 3.9 MB is refused by a translated session', async (t) => {
  const attacked = await startSmall(t, await overHttp(t, 'modern'))
  const capabilities = { experimental: { text: { x: 'x'.repeat(LARGE) } } }
  const answers: Answer[] = []
  await besideHealthy(t, attacked, async () => {
    answers.push(
      ...(await inParallel(133, 4, async () => (await LegacyClient.open(attacked.url, { capabilities })).opened)),
    )
  })
  t.ok(answers.every(({ message }) => message.error?.code === -32602))
  t.match(answers[0]?.message.error?.message, /capabilities.*64 KiB/)
  await ledgerEmpty(attacked)
})

t.test('H3 names of 3.9 MB are refused where they would become headers, and none is kept', async (t) => {
  const attacked = await startSmall(t, await overHttp(t, 'modern'))
  const client = await LegacyClient.open(attacked.url)
  const answers: Answer[] = []
  await besideHealthy(t, attacked, async () => {
    const text = (at: number) => `${at}${'x'.repeat(LARGE)}`
    answers.push(...(await inParallel(100, 4, (at) => client.request('tools/call', { name: text(at), arguments: {} }))))
    answers.push(...(await inParallel(100, 4, (at) => client.request('resources/read', { uri: `x:${text(at)}` }))))
  })
  t.ok(answers.every(({ message }) => message.error?.code === -32602))
  t.match(answers[0]?.message.error?.message, /params\.name .*too long/)
  await ledgerEmpty(attacked)
})

t.test('H3 short names in large requests do not keep the requests', async (t) => {
  const attacked = await startSmall(t, await overHttp(t, 'modern'))
  const client = await LegacyClient.open(attacked.url)
  await besideHealthy(t, attacked, async () => {
    const args = { text: 'x'.repeat(MIDDLE) }
    await inParallel(800, 4, (at) =>
      client.request('prompts/get', { name: `a prompt of some name ${at}`, arguments: args }),
    )
  })
  await ledgerEmpty(attacked)
})

t.test('H4 answers of 4 MB that are kept for Last-Event-ID make room for each other', async (t) => {
  const attacked = await startSmall(t, await overHttp(t, 'modern'))
  await besideHealthy(t, attacked, async () => {
    await inParallel(160, 4, async () => {
      const client = await LegacyClient.open(attacked.url, { revision: '2025-06-18' })
      const args = { bytes: 4_000_000, notes: 1 }
      const answer = await client.call('bulk', args, { meta: { progressToken: 'p' } })
      t.equal(answer.messages.length, 2)
    })
  })
  const { used, limit } = await attacked.gauge()
  t.ok(used > limit / 2 && used <= limit, `${used} of ${limit} is kept`)
})

t.test('H5 subscriptions to 3.9 MB of addresses are refused, and open ones keep no request', async (t) => {
  for (const era of ['legacy', 'modern'] as const) {
    const attacked = await startSmall(t, bulkyStdio(era))
    const refused: Answer[] = []
    const streams: EventStream[] = []
    await besideHealthy(t, attacked, async () => {
      const uris = Array.from({ length: 256 }, (_, at) => `test://${at}/${'x'.repeat(15_000)}`)
      const filter = { notifications: { resourceSubscriptions: uris } }
      refused.push(...(await inParallel(64, 4, () => call(attacked.url, 'subscriptions/listen', filter))))
      const large = { notifications: { toolsListChanged: true }, ignored: 'x'.repeat(LARGE) }
      refused.push(...(await inParallel(64, 4, () => call(attacked.url, 'subscriptions/listen', large))))
      // Those that are as large as they may be are taken as long as there is memory for them.
      const allowed = Array.from({ length: 30 }, (_, at) => `test://${at}/${'x'.repeat(2_000)}`)
      const open = modernRequest('subscriptions/listen', { notifications: { resourceSubscriptions: allowed } })
      const statuses = await inParallel(2_000, 8, () =>
        openStream('POST', attacked.url, open.headers, open.body).then((stream) => {
          t.teardown(() => stream.leave())
          streams.push(stream)
          return stream.status
        }),
      )
      t.same([...new Set(statuses)].sort(), [200, 503])
    })
    t.ok(
      refused.every(({ message }) => message.error?.code === -32602),
      JSON.stringify(refused[0]),
    )
    for (const stream of streams) stream.leave()
    await ledgerEmpty(attacked)
  }
})

t.test('H5 subscriptions that are relayed keep no large request', async (t) => {
  const attacked = await startSmall(t, await overHttp(t, 'modern'))
  await besideHealthy(t, attacked, async () => {
    const uris = Array.from({ length: 256 }, (_, at) => `test://${at}/${'x'.repeat(15_000)}`)
    const { headers, body } = modernRequest('subscriptions/listen', { notifications: { resourceSubscriptions: uris } })
    const answers = await inParallel(150, 4, () => post(attacked.url, body, headers))
    t.ok(answers.every(({ message }) => message.error?.code === -32602))
  })
  await ledgerEmpty(attacked)
})

const answered = { bytes: 15 * MEGA }

/** Ways in which a client can ask and not read, by the server that it takes. */
const DEAF: readonly [
  name: string,
  server: (t: Test) => Promise<object> | object,
  ask: (t: Test, attacked: Attacked) => Promise<unknown>,
][] = [
  ['a JSON answer', (t) => overHttp(t, 'legacy'), (t, { url }) => askDeaf(t, { url, ...bulk(answered) })],
  [
    'events',
    (t) => overHttp(t, 'legacy'),
    (t, { url }) => askDeaf(t, { url, ...bulk({ ...answered, notes: 1 }, 'p') }),
  ],
  ['a relayed answer', (t) => overHttp(t, 'modern'), (t, { url }) => askDeaf(t, { url, ...bulk(answered) })],
  [
    'an answer in a session',
    (t) => overHttp(t, 'modern'),
    async (t, { url }) => {
      const { headers } = await LegacyClient.open(url)
      const params = { name: 'bulk', arguments: answered }
      await askDeaf(t, { url, headers, body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }) })
    },
  ],
  [
    'events in a session',
    (t) => overHttp(t, 'modern'),
    async (t, { url }) => {
      const { headers } = await LegacyClient.open(url)
      const params = { name: 'bulk', arguments: { ...answered, notes: 1 }, _meta: { progressToken: 'p' } }
      await askDeaf(t, { url, headers, body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }) })
    },
  ],
  [
    'a stream of HTTP+SSE',
    (t) => overHttp(t, 'modern'),
    async (_t, { url }) => {
      const client = await SseClient.open(url, '2024-11-05')
      client.stream.pause()
      await client.post({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'bulk', arguments: answered } })
    },
  ],
]

for (const [name, server, ask] of DEAF) {
  t.test(`H6 ${name} of 15 MB that nobody reads is given up`, async (t) => {
    const attacked = await startSmall(t, await server(t), WRITE)
    await besideHealthy(t, attacked, async () => {
      for (let at = 0; at < 40; at++) await ask(t, attacked)
      const { used: open } = await attacked.gauge('connections')
      const cut = async () => (await attacked.gauge('connections')).used <= open - 4
      await until(cut, 'connections being cut off')
      // Who is left has been told that there was no memory, and that was not too much for the connection.
      await ledgerEmpty(attacked)
    })
    await ledgerEmpty(attacked)
  })
}

t.test(
  'H27 notifications of 4 MB that wait for a slow reader are weighed, and those that are dropped are told',
  async (t) => {
    const attacked = await startSmall(t, await overHttp(t, 'legacy'), WRITE)
    await besideHealthy(t, attacked, async () => {
      const { headers, body } = bulk({ notes: 60, noteBytes: 4_000_000 }, 'p')
      await Promise.all(Array.from({ length: 4 }, () => askDeaf(t, { url: attacked.url, headers, body })))
      await until(() => /"dropped":[1-9]/.test(attacked.program.stderr()), 'the log telling of it')
    })
    await ledgerEmpty(attacked)
  },
)

t.test('H29 a body of 4 MB in chunks of one byte costs neither memory nor time', async (t) => {
  const attacked = await startSmall(t, await overHttp(t, 'legacy'))
  const before = await attacked.resident()
  await besideHealthy(t, attacked, async () => {
    const { hostname, port } = new URL(attacked.url)
    const { headers } = bulk({})
    const head = Object.entries(headers).map(([header, value]) => `${header}: ${value}\r\n`)
    const chunks = Buffer.from('1\r\nx\r\n'.repeat(4 * MEGA))
    await Promise.all(
      Array.from({ length: 4 }, async () => {
        const socket = connect(Number(port), hostname)
        let said = ''
        socket.setEncoding('latin1').on('data', (text: string) => {
          said += text
        })
        socket.on('error', () => {})
        const closed = new Promise((resolve) => socket.once('close', resolve))
        socket.write(`POST /mcp HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n${head.join('')}\r\n`)
        socket.write(chunks)
        socket.write('0\r\n\r\n')
        await Promise.race([closed, until(() => said.includes('\r\n\r\n'), 'an answer')])
        t.match(said, /^HTTP\/1\.1 4\d\d/)
        socket.destroy()
      }),
    )
  })
  const grown = (await attacked.resident()) - before
  t.comment(`resident memory has grown by ${Math.round(grown)} MiB`)
  await ledgerEmpty(attacked)
})
