/** The bridge is told to stop: what could end has ended, and everybody else knows. */
import t, { type Test } from 'tap'
import { NAME, of, startAsker, talk } from './support/asking.js'
import { type Program, says, startProgram } from './support/cli.js'
import { until } from './support/eventually.js'
import { temporaryFile } from './support/folder.js'
import { LegacyClient } from './support/legacy-client.js'
import { legacyStdio } from './support/legacy-stdio.js'
import { ALL_LISTS, listen } from './support/listening.js'
import { call, send } from './support/modern.js'
import { ModernHttp } from './support/modern-http.js'

const CALLS = 200
const LONGEST = 10_000
const STREAMS = 50
const PARKED = 20

const at = (url: string, path: string) => new URL(path, url).href
const wait = (url: string, ms: number) => call(url, 'tools/call', { name: 'wait', arguments: { ms } })

async function start(t: Test, mcpServers: object, timeouts: object): Promise<{ program: Program; origin: string }> {
  const file = temporaryFile(t, 'config.json', { mcpServers, timeouts, listen: 'http://127.0.0.1:0/mcp' })
  const program = startProgram(t, ['--config', file])
  const [, origin = ''] = await says(program, /"url":"(http:\/\/[^/"]*)\//)
  return { program, origin }
}

t.test(
  `stopped with ${CALLS} calls, ${STREAMS} streams and ${PARKED} parked calls, it cuts nothing that could end`,
  async (t) => {
    const asker = await startAsker(t, 'over stdio')
    const modern = await ModernHttp.start(t)
    const servers = { legacy: asker.server, modern: { url: modern.url } }
    const { program, origin } = await start(t, servers, { drainTimeout: LONGEST + 10_000 })
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
    t.equal(await program.ended, 0)
    t.equal(of(asker, 'notifications/cancelled').length, 5, 'the server knows of those who did not come back')
  },
)

t.test('for a while it only says that it stops, and serves what is still sent to it', async (t) => {
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

t.test('with nothing to wait for it stops at once', async (t) => {
  // If it waited, this test would not end.
  const { program } = await start(t, { a: legacyStdio(t).server }, { drainTimeout: 3_600_000 })
  await says(program, /"event":"server_ready"/)
  program.child.kill('SIGTERM')
  t.equal(await program.ended, 0)
})

t.test(
  'what has not ended in time ends with an error that says what is not known; who is in a hurry says it twice',
  async (t) => {
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
  },
)
