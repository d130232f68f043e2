/** The bridges of one user as one: what is shown of each, which are refused, and what stays of those that end. */
import { chmodSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { bridgesIn } from '../../../src/app/running-bridges.js'
import type { InspectorOptions } from '../../../src/inspector/answers.js'
import { Hub } from '../../../src/inspector/hub/hub.js'
import type { Ring } from '../../../src/inspector/ring.js'
import { Views } from '../../../src/inspector/views.js'
import { until } from '../../support/eventually.js'
import { temporaryFolder } from '../../support/folder.js'
import { bridgeOf, startInspector } from '../../support/inspector.js'
import { ToolScope } from '../../support/scope.js'
import { tellCall, tellQuestion, tickingRing } from '../../support/sights.js'

const skip = process.platform === 'win32' && 'Windows has pipes'
const uid = process.getuid?.() ?? -1
const orders = { name: 'orders', state: 'ready', calls: 0, parked: 0 }

/** Serves the inspector of a bridge on a socket, as its user does. */
async function serve(
  t: Test | ToolScope,
  folder: string,
  pid: string,
  ring: Ring,
  more: Partial<InspectorOptions> = {},
) {
  const path = join(folder, `${pid}.sock`)
  await startInspector(t, ring, { token: undefined, mayTry: true, bridge: bridgeOf([orders]), ...more }, { path })
  chmodSync(path, 0o600)
}

function hubIn(t: Test, folder: string) {
  const refused: string[] = []
  const hub = new Hub({ folder, uid, onRefused: (path, why) => refused.push(`${path}: ${why}`), onChange: () => {} })
  t.teardown(() => hub.close())
  const views = () => {
    const now = new Views()
    for (const seen of hub.merged.ring.after(0)) now.add(seen)
    return now
  }
  return { hub, refused, views }
}

t.test(
  'follows all bridges, also those that start later, and keeps apart what has the same name',
  { skip },
  async (t) => {
    const folder = temporaryFolder(t)
    const [first, second] = [tickingRing(), tickingRing()]
    tellCall(first.record, { id: 1, name: 'from-first' })
    await serve(t, folder, '4711', first)
    const { hub, views } = hubIn(t, folder)
    await hub.start()
    await until(() => views().calls.size === 1)
    tellQuestion(second.record, { id: 1, answer: 2 })
    await serve(t, folder, '4712', second)
    await until(() => views().calls.get('c2')?.status === 'ok', 'the other bridge has appeared')
    tellCall(first.record, { id: 2, name: 'later' })
    await until(() => views().calls.size === 3)
    const now = views()
    t.match(
      [...now.calls.values()].map(({ bridge, server, name, status, rounds }) => ({
        bridge,
        server,
        name,
        status,
        rounds,
      })),
      [
        { bridge: '4711', server: 'orders (4711)', name: 'from-first', status: 'ok' },
        { bridge: '4712', server: 'orders (4712)', status: 'ok', rounds: 1 },
        { bridge: '4711', server: 'orders (4711)', name: 'later' },
      ],
    )
    t.same([...now.bridges.keys()], ['4711', '4712'])
    const [message] = now.calls.get('c4')?.events.filter((seen) => seen.kind === 'message') ?? []
    t.match(message, { http: { headers: { 'content-type': 'application/json' } } })
    t.equal(now.sessions[0]?.id, views().calls.get('c1')?.session, 'sessions have the digest of their bridge')
    await hub.refresh()
    t.same(
      hub.servers().map(({ name }) => name),
      ['orders (4711)', 'orders (4712)'],
    )
  },
)

t.test(
  'ends the calls of a bridge that was killed, and keeps them; its process id may come again',
  { skip },
  async (t) => {
    const folder = temporaryFolder(t)
    const scope = new ToolScope()
    const ring = tickingRing()
    await serve(scope, folder, '4711', ring)
    const { hub, views } = hubIn(t, folder)
    await hub.start()
    const call = { kind: 'call', principal: 'a', client: { era: 'modern' }, server: 'orders' } as const
    ring.record({ ...call, what: 'begun', call: 1, method: 'tools/call' })
    await until(() => views().calls.get('c1')?.status === 'open')
    await scope.end()
    await until(() => views().calls.get('c1')?.status === 'cancelled')
    t.match(views().calls.get('c1'), { why: 'The bridge has ended.' })
    await until(() => hub.size === 0)
    const again = tickingRing()
    tellCall(again.record, { id: 1 })
    await serve(t, folder, '4711', again)
    await until(() => views().calls.size === 2)
    t.match(views().calls.get('c2'), { bridge: '4711-2', status: 'ok' })
  },
)

t.test('refuses sockets of other users and those that others may open, and says so once', { skip }, async (t) => {
  const folder = temporaryFolder(t)
  await serve(t, folder, '4711', tickingRing())
  chmodSync(join(folder, '4711.sock'), 0o622)
  await serve(t, folder, '4712', tickingRing())
  const { hub, refused } = hubIn(t, folder)
  await hub.start()
  t.equal(hub.size, 1)
  t.match(refused, [/4711\.sock: others may open it \(run chmod 600 on it\)$/])
  await new Promise((resolve) => setTimeout(resolve, 50))
  t.equal(refused.length, 1)
  const { bridges, refused: foreign } = await bridgesIn(folder, uid + 1)
  t.same(bridges, [])
  for (const { why } of foreign) t.match(why, /belongs to another user/)
  t.ok(foreign.length > 0)
})

t.test('reads texts from the bridge that has them, and has all bridges keep them', { skip }, async (t) => {
  const folder = temporaryFolder(t)
  const ring = tickingRing({ payloads: 'errors' })
  await serve(t, folder, '4711', ring)
  const { hub, views } = hubIn(t, folder)
  await hub.start()
  tellCall(ring.record, { id: 1, outcome: 'error', texts: { request: '{"password":"CANARY"}', result: '{"a":1}' } })
  await until(() => views().calls.get('c1')?.status === 'error')
  const texts = [...(await hub.textsOf({ id: 'c1', parts: [] })).values()]
  t.match(
    texts.map(({ text }) => text),
    [/hidden/, /hidden/, '{"a":1}', '{"a":1}'],
  )
  t.notMatch(JSON.stringify(texts), /CANARY/)
  hub.keepAll(60_000)
  await until(() => ring.kept.payloads === 'all')
  t.equal(hub.kept.payloads, 'all')
  tellCall(ring.record, { id: 2, texts: { request: '{"kept":true}', result: '{}' } })
  await until(() => views().calls.has('c2') && views().calls.get('c2')?.status === 'ok')
  const [request] =
    views()
      .calls.get('c2')
      ?.events.filter((seen) => seen.kind === 'message') ?? []
  t.match(hub.merged.textOf(request?.seq ?? 0), { text: '{"kept":true}', hidden: 0 })
})

t.test('hands requests to the bridge of a server', { skip }, async (t) => {
  const folder = temporaryFolder(t)
  const called: string[] = []
  const bridge = {
    ...bridgeOf([orders]),
    targets: () => [{ name: 'orders', kind: 'server' as const }],
    call: async (name: string) => {
      called.push(name)
      return new Response('{"ok":true}', { headers: { 'content-type': 'application/json', 'mcp-session-id': 'x' } })
    },
  }
  await serve(t, folder, '4711', tickingRing(), { bridge })
  await serve(t, folder, '4712', tickingRing(), { bridge: bridgeOf([orders]) })
  const { hub } = hubIn(t, folder)
  await hub.start()
  await hub.refresh()
  t.same(hub.targets(), [{ name: 'orders (4711)', kind: 'server' }])
  const body = new TextEncoder().encode('{}')
  const request = { method: 'POST', headers: { 'content-type': 'application/json' }, body }
  const answer = await hub.call('orders (4711)', { ...request, signal: new AbortController().signal })
  t.same([answer?.status, answer?.headers.get('mcp-session-id'), await answer?.text()], [200, 'x', '{"ok":true}'])
  t.same(called, ['orders'])
  t.equal(await hub.call('orders (9)', { ...request, signal: new AbortController().signal }), undefined)
})
