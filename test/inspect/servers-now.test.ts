/** What the inspector of a bridge says about its servers now: their tools, as far as they are known, their sessions, and the circuit breaker. */
import { pino } from 'pino'
import t, { type Test } from 'tap'
import { Inspector } from '../../src/inspector/inspector.js'
import type { ServerNow } from '../../src/inspector/views.js'
import { startBridge } from '../support/bridge.js'
import { until } from '../support/eventually.js'
import { messages } from '../support/inspected.js'
import { TOKEN } from '../support/inspector.js'
import { LegacyClient } from '../support/legacy-client.js'
import { LegacyHttp } from '../support/legacy-http.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { ModernHttp } from '../support/modern-http.js'

async function start(t: Test, entry: object) {
  const log = pino({ level: 'silent' })
  const inspector = new Inspector(
    { token: TOKEN, payloads: 'off', callsPerSecond: 500, hide: [], try: false },
    { version: '0.0.0', log, folder: undefined },
  )
  const { url, bridge } = await startBridge(t, entry, {}, { inspector, recorder: inspector.recorder })
  const now = async (): Promise<ServerNow | undefined> => {
    const headers = { authorization: `Bearer ${TOKEN}` }
    const response = await fetch(`${bridge.inspectUrl}/servers`, { headers })
    const { servers } = (await response.json()) as { servers: ServerNow[] }
    return servers[0]
  }
  const list = async (cursor?: string) => {
    const body = JSON.parse(messages.call('', {})) as { method: string; params: Record<string, unknown> }
    const { _meta } = body.params
    const sent = { ...body, method: 'tools/list', params: { _meta, ...(cursor !== undefined && { cursor }) } }
    const response = await messages.post(url, JSON.stringify(sent))
    return (await response.text()).replace(/^data: /gm, '')
  }
  return { url, now, list }
}

t.test('learns tools from lists that clients requested, without a request of its own', async (t) => {
  const legacy = legacyStdio(t, { pages: 2 })
  const { now, list } = await start(t, legacy.server)
  t.equal((await now())?.tools, undefined)
  const first = JSON.parse(await list()) as { result: { tools: { name: string }[]; nextCursor: string } }
  const second = JSON.parse(await list(first.result.nextCursor)) as typeof first
  const names = [...first.result.tools, ...second.result.tools].map(({ name }) => name)
  t.ok(names.length > first.result.tools.length)
  await until(async () => (await now())?.tools?.length === names.length, 'both pages are known')
  t.same((await now())?.tools, names)
  await list()
  await list(first.result.nextCursor)
  t.same((await now())?.tools, names, 'the same list again')
  const asked = legacy.seen().filter(({ line }) => line.includes('tools/list'))
  t.equal(asked.length, 4)
})

t.test('learns tools from a list that passes unchanged', async (t) => {
  const modern = await ModernHttp.start(t)
  const { now, list } = await start(t, { url: modern.url })
  await list()
  await list()
  await until(async () => ((await now())?.tools ?? []).includes('echo'), 'the tools are known')
})

t.test('counts open sessions by side', async (t) => {
  const modern = await ModernHttp.start(t)
  const ofClients = await start(t, { url: modern.url })
  t.same((await ofClients.now())?.sessions, { client: 0, server: 0 })
  const first = await LegacyClient.open(ofClients.url)
  await LegacyClient.open(ofClients.url)
  t.same((await ofClients.now())?.sessions, { client: 2, server: 0 }, 'modern servers have no sessions')
  await first.end()
  await until(async () => (await ofClients.now())?.sessions?.client === 1, 'one has ended')

  const legacy = await LegacyHttp.start(t)
  const withServer = await start(t, { url: legacy.url })
  await (await messages.post(withServer.url, messages.call('echo', {}))).text()
  t.same((await withServer.now())?.sessions, { client: 0, server: 1 }, 'modern clients have no sessions')
})

t.test('the circuit breaker is open after a failure, and closed when the server works', async (t) => {
  const { url, now } = await start(t, { command: 'no-such-program' })
  await (await messages.post(url, messages.call('echo', {}))).text()
  t.match((await now())?.pause, { failures: Number, ms: Number })
  const legacy = await LegacyHttp.start(t)
  const well = await start(t, { url: legacy.url })
  await (await messages.post(well.url, messages.call('echo', {}))).text()
  t.equal((await well.now())?.pause, undefined)
})
