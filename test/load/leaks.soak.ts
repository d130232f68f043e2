/**
 * Everything that can be opened is opened and dropped, in random order, at random moments: afterwards the bridge holds what it held
 * before. The bridge is a process of its own, which counts what is left in it after a garbage collection.
 */
import { connect } from 'node:net'
import t, { type Test } from 'tap'
import { below, oneOf, type Random, randomOf } from '../hostile/corpus/random.js'
import { NAME, talk } from '../support/asking.js'
import { type BridgeProcess, startBridgeProcess } from '../support/bridge-process.js'
import { childrenOf } from '../support/built-bridge.js'
import { until } from '../support/eventually.js'
import { LegacyClient } from '../support/legacy-client.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { listenText } from '../support/listening.js'
import { call, headersFor, post } from '../support/modern.js'
import { startFixture } from '../support/process.js'
import { readSeries } from '../support/prometheus.js'
import { SseClient } from '../support/sse-client.js'

const OPENS = Number(process.env['LEAK_OPENS'] ?? 10_000)
/** Milliseconds after which nothing more is opened, on a machine that has other things to do. */
const AT_MOST = 100_000
/** Opened before the first look, so that what is only made once is there. */
const WARM_UP = 300
const AT_ONCE = 24
/** Milliseconds within which what was opened is dropped. */
const SOON = 10
/** Milliseconds after which a connection to a server that was kept for the next call is closed, and some. */
const KEPT_OPEN = 7_000
/** Objects that may be there one time and not the other: timers of pools, sockets that are about to be closed. */
const SLACK = 5

/** A bridge in front of servers of all kinds, and what is needed to use it. */
interface World {
  bridge: BridgeProcess
  random: Random
  /** Addresses of servers that are reached over HTTP, and of a program. */
  legacy: string
  modern: string
  program: string
}
type Kind = (world: World) => Promise<unknown>

const within = ({ random }: World) => below(random, SOON)
const pause = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds))
const server = ({ random, legacy, modern, program }: World) => oneOf(random, [legacy, modern, program])

/** Sends a request whose client goes after a while, whether it has been answered or not. */
async function dropped(world: World, make: (signal: AbortSignal) => Promise<unknown>): Promise<void> {
  const leaving = new AbortController()
  const timer = setTimeout(() => leaving.abort(), within(world))
  await make(leaving.signal).catch(() => undefined)
  clearTimeout(timer)
}

/** What is opened and dropped. A program of its own takes long to start, so that there are fewer of those. */
const KINDS: [share: number, name: string, open: Kind][] = [
  [20, 'a call', (world) => call(server(world), 'tools/call', { name: 'echo', arguments: {} })],
  [
    20,
    'a call that is dropped',
    (world) =>
      dropped(world, (signal) =>
        call(server(world), 'tools/call', { name: 'canary', arguments: { canary: 'x', ms: 5, late: 1 } }, { signal }),
      ),
  ],
  [
    15,
    'a subscription that is dropped',
    (world) => {
      const filter = { toolsListChanged: true, resourceSubscriptions: [`test://x/${below(world.random, 20)}`] }
      const headers = headersFor('subscriptions/listen')
      return dropped(world, (signal) => post(server(world), listenText(filter), headers, signal))
    },
  ],
  [10, 'a session', (world) => session(world, oneOf(world.random, [world.legacy, world.modern]))],
  [5, 'an HTTP+SSE stream', sse],
  [5, 'a question', (world) => question(oneOf(world.random, [world.legacy, world.program]))],
  [10, 'half a request', halfRequest],
  [
    10,
    'a session that is not opened in full',
    (world) =>
      LegacyClient.open(oneOf(world.random, [world.legacy, world.modern]), { ready: false }).then(({ end }) => end),
  ],
  [1, 'a session with a program of its own', (world) => session(world, world.program)],
]

/** A session with a stream, and a call that may be cancelled or dropped; it is ended, or left. */
async function session(world: World, url: string): Promise<void> {
  const client = await LegacyClient.open(url)
  const stream = await client.listen()
  const id = 'a call'
  const text = client.text('tools/call', { name: 'canary', arguments: { canary: 'x', ms: 5 } }, { id })
  await dropped(world, (signal) => post(url, text, client.headers, signal))
  if (world.random() < 0.3) await client.notify('notifications/cancelled', { requestId: id })
  stream.leave()
  if (world.random() < 0.7) await client.end()
}

async function sse(world: World): Promise<void> {
  const client = await SseClient.connect(oneOf(world.random, [world.legacy, world.modern]))
  if (world.random() < 0.5) await client.post({ jsonrpc: '2.0', id: 1, method: 'ping' })
  client.stream.leave()
}

/** A call whose client is asked something and never answers. What is answered is remembered for a minute, in case it was lost. */
async function question(url: string): Promise<void> {
  const { keys, text } = await talk(url, { by: 'session' }).steps([{ ask: [NAME] }])
  if (keys.length === 0) throw new Error(`Nothing was asked: ${text}`)
}

async function halfRequest(world: World): Promise<void> {
  const { hostname, port } = new URL(world.legacy)
  const text = `POST /legacy/mcp HTTP/1.1\r\nhost: ${hostname}\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{"`
  const socket = connect(Number(port), hostname)
  socket.on('error', () => {})
  socket.write(text.slice(0, 1 + below(world.random, text.length)))
  await pause(within(world))
  socket.destroy()
}

function kindOf({ random }: World): Kind {
  let at = below(
    random,
    KINDS.reduce((sum, [share]) => sum + share, 0),
  )
  for (const [share, , open] of KINDS) {
    if (at < share) return open
    at -= share
  }
  throw new RangeError('beyond all shares')
}

/** Opens and drops so many things. Gives how many there was time for, and what could not be opened. */
async function storm(world: World, count: number): Promise<{ opened: number; failed: string[] }> {
  const deadline = performance.now() + AT_MOST
  const failed: string[] = []
  let opened = 0
  const opener = async () => {
    while (opened < count && performance.now() < deadline) {
      opened++
      await kindOf(world)(world).catch((error: unknown) => failed.push(String(error)))
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, opener))
  return { opened, failed }
}

/** Bounds that are in use, by their names, but for what is remembered when it is over. */
async function inUse(world: World): Promise<Record<string, number>> {
  const text = await (await fetch(new URL('/metrics', world.legacy))).text()
  const used = Object.entries(readSeries(text)).filter(([series]) => /bound_used\{bound="(?!cached|tasks)/.test(series))
  return Object.fromEntries(used.filter(([, value]) => value > 0))
}

/** What is left when everything has had its time to end. Nothing but the connection that asks is in use then. */
async function settled(t: Test, world: World): Promise<Record<string, number>> {
  const idle = async () => {
    const used = await inUse(world)
    return Object.keys(used).every((series) => series.includes('"connections"') || series.includes('processes'))
  }
  await until(
    async () => (await idle()) && childrenOf(world.bridge.pid).length <= 2,
    'the end of all that was open',
  ).catch(async () =>
    t.fail('what was open has ended', { used: await inUse(world), children: childrenOf(world.bridge.pid) }),
  )
  await pause(KEPT_OPEN)
  return world.bridge.holds()
}

async function start(t: Test, seed: number): Promise<World> {
  const plan = JSON.stringify({ asks: true, by: 'session' })
  const legacy = await startFixture(t, 'legacy-http.mjs', plan)
  const modern = await startFixture(t, 'modern-http.mjs', '{}')
  const program = legacyStdio(t, { asks: true, by: 'session' })
  const bridge = await startBridgeProcess(t, {
    listen: 'http://127.0.0.1:0/mcp',
    mcpServers: { legacy: { url: legacy.url }, modern: { url: modern.url }, program: program.server },
    limits: { startsPerMinute: 100_000, parkedPerPrincipal: 2_000 },
    // What nobody uses any more ends soon, so that it can be waited for.
    timeouts: { idle: 1_000, answer: 2_000, clientIdle: 2_000, clientGone: 1_000, drainTimeout: 100 },
  })
  const url = (name: string) => String(bridge.urls[name])
  return { bridge, random: randomOf(seed), legacy: url('legacy'), modern: url('modern'), program: url('program') }
}

t.test(`${OPENS} things are opened and dropped in random order, and none of them leaks`, async (t) => {
  const seed = Number(process.env['LEAK_SEED'] ?? Math.floor(Math.random() * 2 ** 31))
  t.comment(`LEAK_SEED=${seed}`)
  const world = await start(t, seed)
  await storm(world, WARM_UP)
  const before = await settled(t, world)
  const { opened, failed } = await storm(world, OPENS)
  if (opened < OPENS) t.comment(`${opened} of ${OPENS} were opened in time`)
  t.same(failed.slice(0, 3), [], 'all could be opened')
  let after = await settled(t, world)
  const more = () => Object.entries(after).filter(([what, count]) => count > (before[what] ?? 0) + SLACK)
  const collected = async () => {
    if (more().length > 0) after = await world.bridge.holds()
    return more().length === 0
  }
  await until(collected, 'the end of everything').catch(() => {})
  t.comment(JSON.stringify({ before, after }))
  t.same(more(), [], 'nothing is left of it')
  t.equal(after['warnings'], 0, 'and Node.js warns of nothing')
})
