/** The bridge is told to stop: what could end has ended, and everybody else knows. */
import { Agent, request } from 'node:http'
import { text } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import { NAME, of, startAsker, talk } from './support/asking.js'
import { type Program, says, startProgram } from './support/cli.js'
import { until } from './support/eventually.js'
import { temporaryFile } from './support/folder.js'
import { BOTH, LegacyClient } from './support/legacy-client.js'
import { LegacyHttp } from './support/legacy-http.js'
import { legacyStdio } from './support/legacy-stdio.js'
import { ALL_LISTS, listen } from './support/listening.js'
import { call, envelope, headersFor, send } from './support/modern.js'
import { ModernHttp } from './support/modern-http.js'

const CALLS = 200
const LONGEST = 5_000
const STREAMS = 50
const PARKED = 20

const at = (url: string, path: string) => new URL(path, url).href
const wait = (url: string, ms: number) => call(url, 'tools/call', { name: 'wait', arguments: { ms } })

const modernCall = (name: string, args: object = {}, meta: object = {}) => ({
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/call',
  params: { name, arguments: args, _meta: { ...envelope(), ...meta } },
})

/** Sends a message over a connection of an agent. */
function onConnection(agent: Agent, url: string, message: object, session: Record<string, string>) {
  const { method, params } = message as { method: string; params?: Record<string, unknown> }
  const own = 'mcp-session-id' in session ? { ...BOTH, ...session } : headersFor(method, params)
  return new Promise<{ status: number; connection: string | undefined; isReused: boolean; text: string }>(
    (resolve, reject) => {
      const sent = request(url, { method: 'POST', agent, headers: own }, (response) => {
        const { statusCode: status = 0, headers } = response
        const said = { status, connection: headers.connection, isReused: sent.reusedSocket }
        text(response).then((text) => resolve({ ...said, text }), reject)
      })
      sent.on('error', reject).end(JSON.stringify(message))
    },
  )
}

async function start(t: Test, mcpServers: object, timeouts: object): Promise<{ program: Program; origin: string }> {
  const file = temporaryFile(t, 'config.json', { mcpServers, timeouts, listen: 'http://127.0.0.1:0/mcp' })
  const program = startProgram(t, ['--config', file])
  const [, origin = ''] = await says(program, /"url":"(http:\/\/[^/"]*)\//)
  return { program, origin }
}

t.test(
  `stopped with ${CALLS} calls, ${STREAMS} streams and ${PARKED} parked calls, cuts off nothing that could end`,
  async (t) => {
    const asker = await startAsker(t, 'over stdio')
    const modern = await ModernHttp.start(t)
    const servers = { legacy: asker.server, modern: { url: modern.url } }
    const { program, origin } = await start(t, servers, { drainTimeout: 4 * LONGEST })
    const [legacyUrl, modernUrl] = [at(origin, '/legacy/mcp'), at(origin, '/modern/mcp')]
    await Promise.all([wait(legacyUrl, 1), wait(modernUrl, 1)])
    const streams = await Promise.all(
      Array.from({ length: STREAMS }, (_, i) =>
        listen(i % 2 ? modernUrl : legacyUrl, ALL_LISTS, { id: `listen ${i}` }),
      ),
    )
    await Promise.all(streams.map((stream) => stream.has(1)))
    const client = talk(legacyUrl)
    const parked = await Promise.all(Array.from({ length: PARKED }, () => client.steps([{ ask: [NAME] }])))
    t.ok(parked.every(({ state }) => state !== 'undefined'))
    const legacy = await LegacyClient.open(legacyUrl)
    const before = of(asker, 'tools/call').length + modern.of('tools/call').length
    const calls = Array.from({ length: CALLS }, (_, i) => wait(i % 2 ? modernUrl : legacyUrl, (LONGEST * i) / CALLS))
    const ofSession = legacy.request('tools/call', { name: 'wait', arguments: { ms: 5_000 } })
    const begun = () => of(asker, 'tools/call').length + modern.of('tools/call').length
    await until(() => begun() === before + CALLS + 1, 'the arrival of every call at its server')

    program.child.kill('SIGTERM')
    await says(program, /"event":"draining"/)
    for (const url of [legacyUrl, modernUrl]) {
      const refused = await wait(url, 1)
      t.match(refused, { status: 503, message: { error: { data: { reason: 'draining', outcome: 'not_executed' } } } })
      t.equal(refused.headers['retry-after'], '1')
    }
    // Five of those who were asked do not come back.
    const answered = await Promise.all(
      parked.slice(5).map((round) => client.again(round, { [round.keys[0] as string]: { action: 'decline' } })),
    )
    t.same(
      answered.map(({ message }) => message.error),
      parked.slice(5).map(() => undefined),
      'an answer is taken',
    )

    const ended = await Promise.all([...calls, ofSession])
    t.same(
      ended.filter(({ message }) => !message.result).map(({ text }) => text),
      [],
      'every call has ended',
    )
    for (const [i, stream] of streams.entries()) {
      t.match(stream.messages.at(-1), { id: `listen ${i}`, result: { resultType: 'complete' } }, `stream ${i}`)
      t.ok(stream.over)
    }
    // Those who do not come back are waited for until then.
    t.equal(await program.ended, 0)
    const lines = program.stderr().match(/^\{.*"fault":"draining".*$/gm) ?? []
    t.equal(lines.length, 2)
    for (const line of lines) {
      t.match(JSON.parse(line), { level: 30, event: 'call', why: 'The bridge is shutting down' })
      t.notMatch(line, /"err"|"stack"/)
    }
    // What the bridge has sent may arrive after its end.
    const cancelled = () => of(asker, 'notifications/cancelled').length
    await until(() => cancelled() >= 5, 'the server knows of those who did not come back')
    t.equal(cancelled(), 5)
  },
)

t.test('first only reports that it is stopping, and serves new requests', async (t) => {
  const { program, origin } = await start(t, { a: legacyStdio(t).server }, { drainDelay: 3_600_000 })
  const url = at(origin, '/mcp')
  await wait(url, 1)
  const stream = await listen(url, ALL_LISTS)
  await stream.has(1)
  program.child.kill('SIGTERM')
  await says(program, /"event":"stopping"/)
  t.match(await send('GET', at(origin, '/readyz'), undefined, {}), { status: 503, text: '{"status":"draining"}' })
  t.match(await wait(url, 1), { status: 200 })
  t.notOk(stream.over)
  program.child.kill('SIGTERM')
  t.equal(await program.ended, 0)
})

t.test(
  'from the signal on each answer closes its connection, and idle connections stay open until the delay is over',
  async (t) => {
    const modern = await ModernHttp.start(t)
    const legacy = await LegacyHttp.start(t)
    const servers = { program: legacyStdio(t).server, http: { url: modern.url }, old: { url: legacy.url } }
    const { program, origin } = await start(t, servers, { drainDelay: 3_600_000 })
    const open = await LegacyClient.open(at(origin, '/program/mcp'))
    const session = { 'mcp-session-id': open.session, 'mcp-protocol-version': '2025-11-25' }
    const lanes = [
      ['translated', '/program/mcp', modernCall('echo'), {}],
      ['passed on', '/http/mcp', modernCall('echo'), {}],
      ['in a session', '/program/mcp', { jsonrpc: '2.0', id: 2, method: 'tools/list' }, session],
      [
        'as an event stream',
        '/program/mcp',
        modernCall('progress', { values: [1], ms: 50 }, { progressToken: 'p' }),
        {},
      ],
    ] as const
    const agent = new Agent({ keepAlive: true })
    t.teardown(() => agent.destroy())
    const send = (path: string, message: object, headers: Record<string, string>) =>
      onConnection(agent, at(origin, path), message, headers)
    const before = await Promise.all(lanes.map(([, path, message, headers]) => send(path, message, headers)))
    t.same(
      before.map(({ connection }) => connection),
      lanes.map(() => 'keep-alive'),
    )
    const another = new Agent({ keepAlive: true })
    t.teardown(() => another.destroy())
    // The head of its answer has not been sent before the signal, because it is no event stream.
    const old = await LegacyClient.open(at(origin, '/old/mcp'))
    const waiting = { jsonrpc: '2.0', id: 3, method: 'tools/call', params: { name: 'wait', arguments: { ms: 3_000 } } }
    const inFlight = onConnection(another, at(origin, '/old/mcp'), waiting, {
      ...session,
      'mcp-session-id': old.session,
    })
    await until(() => legacy.of('tools/call').length === 1, 'the call at the server')
    program.child.kill('SIGTERM')
    await says(program, /"event":"stopping"/)
    const after = await Promise.all(lanes.map(([, path, message, headers]) => send(path, message, headers)))
    for (const [i, [lane]] of lanes.entries())
      t.match(after[i], { connection: 'close', status: before[i]?.status, isReused: true }, lane)
    t.match(await inFlight, { status: 200, connection: 'close' })
    // Of a refused request the rest is read first, and its connection stays.
    const nowhere = () => send('/nowhere', modernCall('echo'), {})
    t.match([await nowhere(), await nowhere()], [{ status: 404 }, { status: 404, isReused: true }])
    program.child.kill('SIGTERM')
    t.equal(await program.ended, 0)
  },
)

t.test('answers a call that was sent over an open connection while the bridge stops', async (t) => {
  const { program, origin } = await start(t, { a: legacyStdio(t).server }, { drainDelay: 0 })
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  t.teardown(() => agent.destroy())
  const send = () => onConnection(agent, at(origin, '/mcp'), modernCall('echo'), {})
  t.match(await send(), { status: 200, connection: 'keep-alive' })
  program.child.kill('SIGTERM')
  await says(program, /"event":"stopping"/)
  t.match(await send(), { status: 503, connection: 'close', isReused: true, text: /"not_executed"/ })
  t.equal(await program.ended, 0)
})

t.test('stops at once if nothing is running', async (t) => {
  // If it waited, this test would not end.
  const { program } = await start(t, { a: legacyStdio(t).server }, { drainTimeout: 3_600_000 })
  await says(program, /"event":"server_ready"/)
  program.child.kill('SIGTERM')
  t.equal(await program.ended, 0)
})

t.test('what has not ended in time fails with an unknown outcome, and a second signal stops at once', async (t) => {
  const a = legacyStdio(t)
  const { program, origin } = await start(t, { a: a.server }, { drainTimeout: 300 })
  const url = at(origin, '/mcp')
  await wait(url, 1)
  const late = wait(url, 60_000)
  await until(() => of(a, 'tools/call').length === 2, 'the call at the server')
  program.child.kill('SIGTERM')
  t.match((await late).message.error, { data: { reason: 'draining', outcome: 'unknown' } })
  t.equal(await program.ended, 0)

  const b = legacyStdio(t)
  const patient = await start(t, { b: b.server }, { drainDelay: 3_600_000, drainTimeout: 3_600_000 })
  await wait(at(patient.origin, '/mcp'), 1)
  const cut = wait(at(patient.origin, '/mcp'), 60_000)
  await until(() => of(b, 'tools/call').length === 2, 'the call at the server')
  patient.program.child.kill('SIGTERM')
  await says(patient.program, /"event":"stopping"/)
  patient.program.child.kill('SIGTERM')
  t.match((await cut).message.error, { data: { reason: 'draining', outcome: 'unknown' } })
  t.equal(await patient.program.ended, 0)
})
