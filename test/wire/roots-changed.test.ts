/** A legacy client whose roots change says so to each legacy server that was promised it, in every lane. */
import t, { type Test } from 'tap'
import { ABLE, type Asker, of, startAsker, WAYS } from '../support/asking.js'
import { startBridge } from '../support/bridge.js'
import { until } from '../support/eventually.js'
import { LegacyClient } from '../support/legacy-client.js'
import { CAPABILITIES, call } from '../support/modern.js'
import { modernStdio } from '../support/modern-stdio.js'
import { openPipe } from '../support/pipe.js'
import { askOn } from '../support/spelled.js'
import { SseClient } from '../support/sse-client.js'

type Json = Record<string, unknown>
interface Client {
  ask(method: string, params: Json): Promise<unknown>
  change(): Promise<unknown>
}

const CHANGED = 'notifications/roots/list_changed'
const REPORTING = { ...ABLE, roots: { listChanged: true } }

/** Opens a legacy client with these capabilities, by transport. */
const CLIENTS: Record<string, (t: Test, settings: Json, path: string, capabilities: Json) => Promise<Client>> = {
  'Streamable HTTP': async (t, settings, path, capabilities) => {
    const { url } = await startBridge(t, {}, settings)
    const client = await LegacyClient.open(new URL(`/${path}/mcp`, url).href, { capabilities })
    return { ask: (method, params) => client.request(method, params), change: () => client.notify(CHANGED) }
  },
  'HTTP+SSE': async (t, settings, path, capabilities) => {
    const { url } = await startBridge(t, {}, settings)
    const client = await SseClient.open(new URL(`/${path}/sse`, url).href, '2025-11-25', { capabilities })
    return {
      ask: (method, params) => client.request(method, params),
      change: () => client.post({ jsonrpc: '2.0', method: CHANGED }),
    }
  },
  stdio: async (t, settings, _path, capabilities) => {
    const pipe = openPipe(t, {}, settings)
    const clientInfo = { name: 'old', version: '1' }
    await askOn(pipe, 'initialize', { protocolVersion: '2025-11-25', capabilities, clientInfo })
    pipe.line('{"jsonrpc":"2.0","method":"notifications/initialized"}')
    return {
      ask: (method, params) => askOn(pipe, method, params),
      change: () => Promise.resolve(pipe.line(JSON.stringify({ jsonrpc: '2.0', method: CHANGED }))),
    }
  },
}

/** A way to ask of a server that is no program. */
const IN_PROCESS = 'on the stream of the call over HTTP'
/** A list waits for each server: programs may start slowly. */
const GROUPS = { team: { wait: 60_000 } }

const promised = (asker: Asker) =>
  of(asker, 'initialize').map(({ params }) => (params as { capabilities: Json }).capabilities['roots'])
const heard = (asker: Asker) => of(asker, CHANGED).length

for (const [transport, open] of Object.entries(CLIENTS)) {
  t.test(`each legacy server of a group hears that the roots of a client over ${transport} have changed`, async (t) => {
    const askers = await Promise.all(WAYS.map((way) => startAsker(t, way)))
    const off = await startAsker(t, IN_PROCESS)
    const own = await startAsker(t, IN_PROCESS)
    const modern = modernStdio(t)
    const mcpServers = {
      ...Object.fromEntries(askers.map(({ server }, i) => [`s${i}`, server])),
      off: { ...off.server, roots: 'off' },
      own: { ...own.server, roots: ['file:///srv'] },
      modern: modern.server,
    }
    const client = await open(t, { mcpServers, groups: GROUPS }, 'team', REPORTING)
    await client.ask('tools/list', {})
    for (const asker of askers) t.same(promised(asker), [{ listChanged: true }], asker.name)
    t.same([promised(off), promised(own)], [[undefined], [{}]])
    for (let times = 1; times <= 2; times++) {
      await client.change()
      for (const asker of askers) await until(() => heard(asker) === times, asker.name)
    }
    await client.ask('tools/list', {})
    t.same([heard(off), heard(own)], [0, 0], 'a server that may not ask for roots of the client does not hear it')
    t.notMatch(JSON.stringify(modern.messages()), CHANGED, 'nor does a modern one')
    for (const asker of askers) t.equal(heard(asker), 2)
  })

  t.test(
    `a server whose calls are checked hears that the roots of a client over ${transport} have changed`,
    async (t) => {
      for (const way of WAYS) {
        const asker = await startAsker(t, way)
        const mcpServers = { test: { ...asker.server, tools: { deny: ['none_*'] } } }
        const client = await open(t, { mcpServers }, 'test', REPORTING)
        await client.ask('tools/list', {})
        await client.change()
        await until(() => heard(asker) === 1, way)
        t.same(promised(asker), [{ listChanged: true }], way)
      }
    },
  )
}

t.test('a client that does not promise to report changes reports none to the servers of a group', async (t) => {
  const [asker, other] = [await startAsker(t, IN_PROCESS), await startAsker(t, IN_PROCESS)]
  const settings = { mcpServers: { asker: asker.server, other: other.server }, groups: GROUPS }
  const { url } = await startBridge(t, {}, settings)
  const at = new URL('/team/mcp', url).href
  const client = await LegacyClient.open(at, { capabilities: ABLE })
  await client.request('tools/list')
  await client.notify(CHANGED)
  await client.request('tools/list')
  t.same([promised(asker), heard(asker)], [[{}], 0])
  await call(at, 'tools/list', {}, { meta: { [CAPABILITIES]: REPORTING } })
  t.notMatch(promised(asker), [{ listChanged: true }], 'no modern client can report them')
})

t.test('changed roots start no server, and are told in the sessions of their client alone', async (t) => {
  const asker = await startAsker(t, IN_PROCESS)
  const settings = { mcpServers: { asker: asker.server, other: asker.server }, groups: GROUPS }
  const headers = (name: string) => ({ authorization: `Bearer ${name}` })
  const auth = { tokens: { ada: 'a'.repeat(32), bob: 'b'.repeat(32) } }
  const { url } = await startBridge(t, {}, { ...settings, auth })
  const at = new URL('/team/mcp', url).href
  const clients = await Promise.all(
    ['a', 'b'].map((one) => LegacyClient.open(at, { capabilities: REPORTING, headers: headers(one.repeat(32)) })),
  )
  for (const client of clients) await client.request('tools/list')
  const before = of(asker, 'initialize').length
  await clients[0]?.notify(CHANGED)
  await until(() => heard(asker) === 2, 'the session of each of the two servers')
  await clients[1]?.request('tools/list')
  t.equal(heard(asker), 2)
  t.equal(of(asker, 'initialize').length, before)
})
