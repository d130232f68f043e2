/** Servers that send faster than clients read, and bodies in tiny pieces. The bridge has a heap of 512 MB. */
import { connect } from 'node:net'
import t, { type Test } from 'tap'
import { bulk, ledgerEmpty, MEGA, overHttp } from '../support/attack.js'
import { askDeaf } from '../support/deaf.js'
import { until } from '../support/eventually.js'
import { LegacyClient } from '../support/legacy-client.js'
import { type Attacked, besideHealthy, bulkyStdio, startSmall } from '../support/small-heap.js'

type Json = Record<string, unknown>

/** What 240 MB are too much for. A client that does not read is cut off when that is sure to have come. */
const SETTINGS = { timeouts: { write: 5_000 }, limits: { memory: 32 * MEGA, streamBytes: 512 * MEGA } }

const CALLS = 2
const DROPPED = /"dropped":[1-9]/
/** A pipe is not read while there is no memory. Then it may be that nothing has to be dropped until all calls are over. */
const DROPPED_OR_OVER = new RegExp(`${DROPPED.source}|(?:"name":"bulk"[^]*){${CALLS}}`)

/** Servers that send notifications to clients that do not read them. */
const FLOODS: readonly [
  name: string,
  server: (t: Test) => Promise<object> | object,
  /** Gives what ends the session, if there is one. */
  ask: (t: Test, attacked: Attacked, args: Json) => Promise<() => Promise<unknown>>,
  /** What the log tells. */
  told: RegExp,
][] = [
  ['a server over HTTP to a modern client', (t) => overHttp(t, 'legacy'), askModern, DROPPED],
  ['a program to a modern client', () => bulkyStdio('legacy'), askModern, DROPPED_OR_OVER],
  ['a modern server over HTTP to a legacy client', (t) => overHttp(t, 'modern'), askLegacy, DROPPED],
  ['a program to a legacy client', () => bulkyStdio('legacy'), askLegacy, DROPPED_OR_OVER],
]

async function askModern(t: Test, { url }: Attacked, args: Json) {
  await askDeaf(t, { url, ...bulk(args, 'p') })
  return async () => {}
}

async function askLegacy(t: Test, { url }: Attacked, args: Json) {
  const client = await LegacyClient.open(url)
  const params = { name: 'bulk', arguments: args, _meta: { progressToken: 'p' } }
  const { headers } = client
  await askDeaf(t, { url, headers, body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }) })
  return () => client.end()
}

for (const [name, server, ask, told] of FLOODS) {
  t.test(`counts the memory of unread notifications of 4 MB from ${name}, and logs dropped ones`, async (t) => {
    const attacked = await startSmall(t, await server(t), SETTINGS)
    await besideHealthy(t, attacked, async () => {
      const ends = await Promise.all(
        Array.from({ length: CALLS }, () => ask(t, attacked, { notes: 60, noteBytes: 4_000_000 })),
      )
      await until(() => told.test(attacked.program.stderr()), 'the log telling of it')
      // What is kept for a client that comes back is kept for as long as its session.
      for (const end of ends) await end()
    })
    await ledgerEmpty(attacked)
  })
}

t.test('a body of 4 MB in chunks of one byte takes neither memory nor time', async (t) => {
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
