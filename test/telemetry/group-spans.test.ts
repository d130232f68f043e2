/** The spans of a call to all servers of a group: those of the client’s call, and of its parts together. */
import type { ServerResponse } from 'node:http'
import t, { type Test } from 'tap'
import type { Span, Tracer } from '../../src/mcp/protocol/trace.js'
import { startBridge } from '../support/bridge.js'
import { until } from '../support/eventually.js'
import { LegacyHttp } from '../support/legacy-http.js'
import { call } from '../support/modern.js'
import { ModernHttp } from '../support/modern-http.js'

type Json = Record<string, unknown>

const CONTEXT = { traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01' }

/** What ends, by the side of the bridge. */
function recording(): { tracer: Tracer; ends: { side: 'server' | 'client'; fields: Json }[] } {
  const ends: { side: 'server' | 'client'; fields: Json }[] = []
  const span = (side: 'server' | 'client'): Span => ({
    context: CONTEXT,
    ids: { trace_id: 't', span_id: 's' },
    within: () => span('client'),
    end: (fields) => ends.push({ side, fields: { ...fields } }),
  })
  return { tracer: { begin: () => span('server') }, ends }
}

/** How a server treats lists. */
type Way = 'answers' | 'is late' | 'is down' | 'has no tools'

async function start(t: Test, ...ways: Way[]) {
  const held: ServerResponse[] = []
  let arrived = 0
  const servers = await Promise.all(
    ways.map((way, i) => {
      const override = ({ message }: { message?: Json | undefined }, response: ServerResponse): boolean => {
        if (message?.['method'] !== 'tools/list') return false
        arrived++
        if (way === 'is late') held.push(response)
        else if (way === 'is down') response.writeHead(503).end()
        else if (way === 'has no tools')
          response
            .writeHead(200, { 'content-type': 'application/json' })
            .end(JSON.stringify({ jsonrpc: '2.0', id: message['id'], error: { code: -32601, message: 'no' } }))
        else return false
        return true
      }
      return (i % 2 === 0 ? LegacyHttp : ModernHttp).start(t, { override } as never)
    }),
  )
  t.teardown(() => {
    for (const response of held) response.destroy()
  })
  const mcpServers = Object.fromEntries(servers.map(({ url }, i) => [`s${i}`, { url }]))
  const { tracer, ends } = recording()
  const groups = { team: { servers: Object.keys(mcpServers), wait: ways.includes('is late') ? 1_000 : 10_000 } }
  const { url, bridge } = await startBridge(t, {}, { mcpServers, groups }, { tracer })
  const at = new URL('/team/mcp', url).href
  await call(at, 'server/discover')
  ends.length = 0
  const endOf = (side: 'server' | 'client') => {
    const of = ends.filter((end) => end.side === side && end.fields['method'] === 'tools/list')
    t.ok(of.length <= 1, `one span at the side of the ${side}`)
    return of[0]?.fields
  }
  return { at, bridge, endOf, arrived: () => arrived, ends }
}

const ANSWERED: readonly [ways: Way[], missing: string | undefined][] = [
  [['answers', 'answers'], undefined],
  [['is late', 'is late'], 's0 s1'],
  [['is late', 'is down'], 's0 s1'],
  [['answers', 'is late'], 's1'],
  [['answers', 'is down'], 's1'],
  [['is down', 'answers'], 's0'],
  [['has no tools', 'has no tools'], undefined],
  [['has no tools', 'is late'], 's1'],
  [['has no tools', 'is down'], 's1'],
]
for (const [ways, missing] of ANSWERED)
  t.test(`the spans of a list are ok: the first server ${ways[0]}, the second one ${ways[1]}`, async (t) => {
    const { at, endOf } = await start(t, ...ways)
    const { message } = await call(at, 'tools/list')
    t.ok(Array.isArray(message.result?.['tools']))
    t.match(endOf('client'), { outcome: 'ok', group: 'team' })
    t.match(endOf('server'), { outcome: 'ok', missing })
  })

t.test('the spans of a list that no server has answered have the fault', async (t) => {
  const { at, endOf } = await start(t, 'is down', 'is down')
  t.ok((await call(at, 'tools/list')).message.error)
  for (const side of ['client', 'server'] as const) t.match(endOf(side), { outcome: 'fault', blame: 'upstream' }, side)
})

for (const ways of [
  ['is late', 'is late'],
  ['answers', 'is late'],
] satisfies Way[][])
  t.test(`the spans of a list are cancelled if its client goes: the first server ${ways[0]}`, async (t) => {
    const { at, endOf, arrived } = await start(t, ...ways)
    const leaving = new AbortController()
    const gone = call(at, 'tools/list', {}, { signal: leaving.signal }).catch(() => 'gone')
    await until(() => arrived() === 2, 'the list at both servers')
    leaving.abort()
    t.equal(await gone, 'gone')
    await until(() => endOf('server') !== undefined, 'the end of the call')
    for (const side of ['client', 'server'] as const) t.match(endOf(side), { outcome: 'cancelled' }, side)
  })
