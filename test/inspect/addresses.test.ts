/** Addresses, lines of stderr and digests of tokens: the inspector shows them without what may be secret, with and without texts. */
import t, { type Test } from 'tap'
import { EventRecorder } from '../../src/inspector/recorder/recorder.js'
import { Ring } from '../../src/inspector/ring.js'
import { type CallView, Views } from '../../src/inspector/views.js'
import { startBridge } from '../support/bridge.js'
import { until } from '../support/eventually.js'
import { messages } from '../support/inspected.js'
import { LegacyHttp } from '../support/legacy-http.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { ModernHttp } from '../support/modern-http.js'
import { eventsIn } from '../support/sights.js'

const SECRET = 'https://user:CANARY-1@host.example/x?token=CANARY-2#CANARY-3'

async function start(t: Test, server: object, settings: object = {}) {
  const ring = new Ring()
  const { url, log } = await startBridge(t, server, settings, { recorder: new EventRecorder(ring.record) })
  const calls = () => {
    const views = new Views()
    for (const seen of eventsIn(ring)) views.add(seen)
    return [...views.calls.values()]
  }
  return { url, ring, calls, log }
}

function read(uri: string): string {
  const { params, ...rest } = JSON.parse(messages.call('', {})) as { params: { _meta: object } }
  return JSON.stringify({ ...rest, method: 'resources/read', params: { uri, _meta: params._meta } })
}

for (const [about, server] of [
  ['translated', async (t: Test) => legacyStdio(t).server],
  ['unchanged', async (t: Test) => ({ url: (await ModernHttp.start(t)).url })],
] as const)
  t.test(`the address of a resource, ${about}`, async (t) => {
    const { url, ring, calls } = await start(t, await server(t))
    await (await messages.post(url, messages.call('echo', {}))).text()
    await (await messages.post(url, read(SECRET), { 'mcp-name': SECRET })).text()
    const call = () => calls().find(({ method }) => method === 'resources/read') as CallView
    await until(() => call() !== undefined && call().status !== 'open', 'it is read')
    t.equal(call().upstream?.era, about === 'unchanged' ? 'modern' : 'legacy')
    t.equal(call().name, 'https://host.example/x')
    t.notMatch(JSON.stringify(eventsIn(ring)), /CANARY/)
  })

t.test('shows a tool name that has to be encoded in a header', async (t) => {
  const { url, calls } = await start(t, { url: (await ModernHttp.start(t)).url })
  await (await messages.post(url, messages.call('echo', {}))).text()
  const encoded = `=?base64?${Buffer.from('größe').toString('base64')}?=`
  await (await messages.post(url, messages.call('größe', {}), { 'mcp-name': encoded })).text()
  await until(() => calls().at(-1)?.status !== 'open')
  t.match(calls().at(-1), { name: 'größe' })
})

t.test('hides credentials in lines of stderr', async (t) => {
  const script = "console.error('listening; api_key=CANARY-1, Authorization: Bearer CANARY-222222'); process.exit(1)"
  const { url, ring, log } = await start(t, { command: process.execPath, args: ['-e', script] })
  await (await messages.post(url, messages.call('echo', {}))).text()
  await until(() => eventsIn(ring).some((seen) => seen.kind === 'child' && seen.what === 'stderr'), 'a line')
  t.match(JSON.stringify(eventsIn(ring)), /listening; api_key=‹hidden›/)
  t.notMatch(JSON.stringify(eventsIn(ring)), /CANARY/)
  await until(() => /listening/.test(JSON.stringify(log)), 'the log has it, too')
  t.notMatch(JSON.stringify(log), /CANARY/)
})

t.test('shows the same digest of a passed-through token as the log', async (t) => {
  const { url, ring, calls } = await start(t, { url: (await LegacyHttp.start(t)).url }, { auth: { passthrough: true } })
  await (await messages.post(url, messages.call('echo', {}), { authorization: 'Bearer some-token-1' })).text()
  await until(() => calls().at(-1)?.status === 'ok')
  t.match(calls().at(-1)?.principal, /^t:[0-9a-f]{12}$/)
  t.notMatch(JSON.stringify(eventsIn(ring)), /t:[0-9a-f]{13}/)
})
