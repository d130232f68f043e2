/**
 * Calls that have ended are free at the next minor garbage collection. A deleted entry of a Set or Map that lives long can keep them
 * (`base/limits/open-set`): then each call is copied twice, which took a fifth of the CPU, and major collections come more often.
 */
import { Agent, request } from 'node:http'
import { createInterface } from 'node:readline'
import t, { type Test } from 'tap'
import { startServer } from '../bench/candidates.js'
import { beside, end } from '../bench/processes.js'
import { bodyFor } from '../bench/questions.js'
import { BuiltBridge } from '../support/built-bridge.js'
import { BOTH, LegacyClient } from '../support/legacy-client.js'
import { headersFor } from '../support/modern.js'

const AT_ONCE = 32
/** Minor collections that count: the last of so many, because compiled code stays. */
const COLLECTIONS = { all: 30, last: 8 }
/** Share of the young objects that may stay: what is left of a call in deleted entries is about 2 to 6 %, and whole calls were 8 to 22 %. */
const MOST = 0.075
const METHOD = 'tools/list'
const right = () => true
const FLAGS = [
  '--expose-gc',
  '--trace-gc',
  '--min-semi-space-size=16',
  '--import',
  // A table in the old generation is what makes all its successors old.
  'data:text/javascript,setInterval(gc, 3000).unref()',
]
const COLLECTION = /ms: (Scavenge|Mark-Compact).*? ([\d.]+) \([\d.]+\) -> ([\d.]+) \(/

/** The median share of young objects that minor collections kept, while many calls are in flight. */
async function shareKept(t: Test, server: object, ask: (url: string) => Promise<() => Promise<unknown>>) {
  const settings = { listen: 'http://127.0.0.1:0', admin: 'http://127.0.0.1:0', mcpServers: { it: server } }
  const bridge = await BuiltBridge.start(t, settings, { node: FLAGS })
  const shares: number[] = []
  let after: number | undefined
  createInterface(bridge.child.stdout).on('line', (line) => {
    const [, kind, before, left] = COLLECTION.exec(line) ?? []
    if (kind === 'Scavenge' && after !== undefined) shares.push((Number(left) - after) / (Number(before) - after))
    if (kind) after = kind === 'Scavenge' ? Number(left) : undefined
  })
  const once = await ask(bridge.url('it'))
  const callers = Array.from({ length: AT_ONCE }, async () => {
    while (shares.length < COLLECTIONS.all) await once()
  })
  await Promise.all(callers)
  return shares.slice(-COLLECTIONS.last).sort((a, b) => a - b)[COLLECTIONS.last / 2] as number
}

type Headers = Record<string, string>

/** Sends one request again and again, on connections that stay open. */
function asking(url: string, headers: Headers, body: string): () => Promise<unknown> {
  const agent = new Agent({ keepAlive: true, maxSockets: AT_ONCE })
  return () =>
    new Promise<void>((resolve, reject) => {
      const sent = request(url, { method: 'POST', agent, headers }, (answer) => answer.resume().on('end', resolve))
      sent.on('error', reject).end(body)
    })
}

async function inSession(url: string) {
  const { headers } = await LegacyClient.open(url)
  return asking(url, { ...BOTH, ...headers } as Headers, bodyFor('legacy', { method: METHOD, params: {}, right }))
}

const withoutSession = async (url: string) =>
  asking(url, headersFor(METHOD, {}), bodyFor('modern', { method: METHOD, params: {}, right }))

t.test('calls of legacy clients to a program are free at once', async (t) => {
  const kept = await shareKept(
    t,
    { command: process.execPath, args: [beside('stdio-server.mjs'), 'legacy'] },
    inSession,
  )
  t.ok(kept < MOST, `${(kept * 100).toFixed(1)} % were kept`)
})

t.test('calls of legacy clients to a legacy server over HTTP are free at once', async (t) => {
  const { process, port } = await startServer('legacy')
  t.teardown(() => end(process))
  const kept = await shareKept(t, { url: `http://127.0.0.1:${port}/mcp` }, inSession)
  t.ok(kept < MOST, `${(kept * 100).toFixed(1)} % were kept`)
})

t.test('calls of modern clients to a program are free at once', async (t) => {
  const server = { command: process.execPath, args: [beside('stdio-server.mjs'), 'legacy'] }
  const kept = await shareKept(t, server, withoutSession)
  t.ok(kept < MOST, `${(kept * 100).toFixed(1)} % were kept`)
})
