/** Events between a client and a server of the SDK: straight, chosen, with scopes, in a group, and with a replica that is killed. */
import { createHmac } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { execPath } from 'node:process'
import { text } from 'node:stream/consumers'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import t, { type Test } from 'tap'
import { z } from 'zod'
import { startBridge } from '../support/bridge.js'
import { startBridgeProcess } from '../support/bridge-process.js'
import { bridgeCommand } from '../support/cli.js'
import { SECRET, webhook } from '../support/eventful.js'
import { until } from '../support/eventually.js'
import { temporaryFolder } from '../support/folder.js'
import { listenUntilEnd } from '../support/listen-until-end.js'
import { programArgs } from '../support/program.js'
import { noRedis, RedisServer } from '../support/redis.js'
import { addressOfProgram } from './modern-servers.js'

t.setTimeout(120_000)

type Json = Record<string, unknown>

const PROGRAM = 'interop/events-server'
const CALLBACK = 'https://93.184.216.34'
const EVENTS = { callbacks: [CALLBACK] }
const TOKENS = {
  alice: { token: 'alice-0123456789abcdef', scopes: ['mail', 'act'] },
  bob: { token: 'bob-0123456789abcdefgh', scopes: [] },
}
const as = (who: keyof typeof TOKENS) => ({ authorization: `Bearer ${TOKENS[who].token}` })

/** What stands in for the address that a client gives: it takes what is signed with the client's secret. */
async function startReceiver(t: Test) {
  const received: Json[] = []
  const key = Buffer.from(SECRET.slice('whsec_'.length), 'base64')
  async function take(request: IncomingMessage): Promise<Json | undefined> {
    const body = await text(request)
    const { 'webhook-id': id, 'webhook-timestamp': time, 'webhook-signature': signature } = request.headers
    const own = createHmac('sha256', key)
      .update(`${String(id)}.${String(time)}.${body}`)
      .digest('base64')
    if (signature !== `v1,${own}`) return undefined
    const message = JSON.parse(body) as Json
    received.push({ ...message, subscription: request.headers['x-mcp-subscription-id'] })
    return { challenge: message['challenge'] }
  }
  const server = createServer((request, response) => {
    take(request).then(
      (answer) => response.writeHead(answer ? 200 : 401).end(JSON.stringify(answer)),
      () => response.destroy(),
    )
  })
  await listenUntilEnd(t, server)
  return { received, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/` }
}

interface Peer {
  ask(method: string, params?: Json): Promise<Json>
  /** Opens a stream of events, and says what has come on it. */
  stream(params: Json): { told: Json[]; leave(): void }
}

/** A client of the SDK, at an address or with a program. */
async function connect(t: Test, target: string | { command: string; args: string[] }, headers = {}): Promise<Peer> {
  const transport =
    typeof target === 'string'
      ? new StreamableHTTPClientTransport(new URL(target), { requestInit: { headers } })
      : new StdioClientTransport({ ...target, env: process.env as Record<string, string>, stderr: 'ignore' })
  const client = new Client({ name: 'events', version: '1' }, { versionNegotiation: { mode: { pin: '2026-07-28' } } })
  t.teardown(() => client.close())
  const told: Json[] = []
  client.fallbackNotificationHandler = async ({ method, params }) => {
    told.push({ method, ...params })
  }
  await client.connect(transport)
  const Any = z.looseObject({})
  return {
    ask: (method, params = {}) => client.request({ method, params }, Any) as Promise<Json>,
    stream: (params) => {
      const { length } = told
      const end = new AbortController()
      client.request({ method: 'events/stream', params }, Any, { signal: end.signal, timeout: 60_000 }).catch(() => {})
      t.teardown(() => end.abort())
      return {
        get told() {
          return told.slice(length)
        },
        leave: () => end.abort(),
      }
    },
  }
}

/** Everything that a client does with events: `prefix` is before the names of the server's. */
async function uses(t: Test, { ask, stream }: Peer, prefix: string, received: Json[], names = ['mail.received']) {
  const name = `${prefix}mail.received`
  const emit = (text: string) =>
    ask('tools/call', { name: `${prefix}emit`, arguments: { name: 'mail.received', text } })
  const listed = (await ask('events/list'))['events'] as Json[]
  t.same(
    listed.map((one) => one['name']),
    names.map((one) => prefix + one),
  )
  const { cursor } = await ask('events/poll', { name, cursor: null })
  await emit('one')
  t.match(await ask('events/poll', { name, cursor }), { events: [{ name, data: { text: 'one' } }] })

  const open = stream({ name, cursor })
  const heard = (what: string) => open.told.filter(({ method }) => method === `notifications/events/${what}`)
  await until(() => heard('event').length > 0, 'the event that the cursor is before')
  t.match(heard('active'), [{ truncated: false }])
  await emit('two')
  await until(() => heard('event').length > 1 && heard('heartbeat').length > 0, 'an event and a heartbeat')
  t.match(heard('event'), [
    { name, data: { text: 'one' } },
    { name, data: { text: 'two' } },
  ])
  t.match(await ask('events/poll', { name, cursor: heard('event')[0]?.['cursor'] }), {
    events: [{ data: { text: 'two' } }],
  })
  open.leave()

  const subscription = webhook(`${CALLBACK}/hook`, name)
  const { id } = await ask('events/subscribe', subscription)
  await emit('three')
  t.match(received, [
    { type: 'verification', subscription: id },
    { name: 'mail.received', data: { text: 'three' }, subscription: id },
  ])
  await ask('events/unsubscribe', subscription)
  await emit('four')
  t.equal(received.length, 2)
  await t.rejects(ask('events/unsubscribe', subscription), { code: -32023 })
  await t.rejects(ask('events/poll', { name: `${name}x` }), { code: -32023 })
}

const ALL = ['mail.received', 'mail.secret']

async function start(t: Test) {
  const { received, url: receiver } = await startReceiver(t)
  const env = { ...process.env, EVENTS_RECEIVER: receiver }
  return { received, receiver, server: { url: await addressOfProgram(t, PROGRAM, { env }), events: EVENTS } }
}

t.test('of one server over HTTP', async (t) => {
  const { server, received } = await start(t)
  const { url } = await startBridge(t, server)
  await uses(t, await connect(t, url), '', received, ALL)
})

t.test('of a program, for a client on stdio', async (t) => {
  const { received, url } = await startReceiver(t)
  const args = [...programArgs(PROGRAM), 'stdio']
  const server = { command: execPath, args, env: { EVENTS_RECEIVER: url }, events: EVENTS }
  const file = join(temporaryFolder(t), 'bridge.json')
  writeFileSync(file, JSON.stringify({ mcpServers: { test: server } }))
  const peer = await connect(t, bridgeCommand('--listen', 'stdio', '--config', file))
  await uses(t, peer, '', received, ALL)
})

t.test('of chosen types', async (t) => {
  const { server, received } = await start(t)
  const { url } = await startBridge(t, { ...server, events: { ...EVENTS, allow: ['*.received'] } })
  const peer = await connect(t, url)
  await uses(t, peer, '', received)
  await t.rejects(peer.ask('events/poll', { name: 'mail.secret' }), { code: -32023 })
})

t.test('of callers with scopes', async (t) => {
  const { server, received } = await start(t)
  const scopes = { '*.received': ['mail'], '*.secret': ['secret'] }
  const own = { ...server, events: { ...EVENTS, scopes }, scopes: { emit: ['act'] } }
  const { url } = await startBridge(t, own, { auth: { tokens: TOKENS } })
  await uses(t, await connect(t, url, as('alice')), '', received)
  const bob = await connect(t, url, as('bob'))
  for (const method of ['events/list', 'events/poll', 'events/subscribe'])
    await t.rejects(bob.ask(method, webhook(`${CALLBACK}/hook`)), method)
})

t.test('of a server in a group, beside one without events', async (t) => {
  const { server, received } = await start(t)
  const mcpServers = { one: server, two: { url: await addressOfProgram(t, 'interop/modern-server') } }
  const { url } = await startBridge(t, {}, { mcpServers, groups: { team: { servers: ['one', 'two'] } } })
  await uses(t, await connect(t, new URL('/team/mcp', url).href), 'one__', received, ALL)
})

t.test('of two replicas, one of which is killed', { skip: noRedis }, async (t) => {
  const { server, received } = await start(t)
  const redis = { url: (await RedisServer.start(t)).url }
  const settings = {
    listen: 'http://127.0.0.1:0/mcp',
    mcpServers: { one: server, two: server },
    groups: { team: { servers: ['one', 'two'] } },
    auth: { tokens: TOKENS },
    redis,
    stateKeys: ['a secret that all the replicas know of'],
  }
  const killed = await startBridgeProcess(t, settings)
  const { url: left } = await startBridge(t, {}, settings)
  const [here, there] = [killed.urls['one'] as string, left].map((url) => new URL('/team/mcp', url).href) as [
    string,
    string,
  ]
  const before = await connect(t, here, as('alice'))
  const name = 'one__mail.received'
  const emit = ({ ask }: Peer, text: string) =>
    ask('tools/call', { name: 'one__emit', arguments: { name: 'mail.received', text } })
  const events = ({ told }: { told: Json[] }) => told.filter(({ method }) => method === 'notifications/events/event')
  const subscription = webhook(`${CALLBACK}/hook`, name)
  await before.ask('events/subscribe', subscription)
  const stream = before.stream({ name })
  await until(() => stream.told.length > 0, 'the stream')
  await emit(before, 'one')
  await until(() => events(stream).length > 0, 'the first event')
  process.kill(killed.pid, 'SIGKILL')

  const after = await connect(t, there, as('alice'))
  await emit(after, 'two')
  const again = after.stream({ name, cursor: events(stream)[0]?.['cursor'] })
  await until(() => events(again).length > 0, 'the event of the meantime')
  t.match(events(again), [{ name, data: { text: 'two' } }])
  t.match(
    received.slice(1).map(({ data }) => data),
    [{ text: 'one' }, { text: 'two' }],
  )
  const bob = await connect(t, there, as('bob'))
  await t.rejects(bob.ask('events/subscribe', subscription), { code: -32024 })
  await t.rejects(bob.ask('events/unsubscribe', subscription), { code: -32023 })
  await after.ask('events/unsubscribe', subscription)
  await emit(after, 'three')
  t.equal(received.length, 3)
})
