/** What servers say that names nobody never reaches another principal. Names begin with the number of the hole. */
import t, { type Test } from 'tap'
import { startBridge } from '../support/bridge.js'
import type { EventStream } from '../support/events.js'
import { until } from '../support/eventually.js'
import { LegacyClient } from '../support/legacy-client.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { type Answer, call, LOG_LEVEL } from '../support/modern.js'
import { modernStdio } from '../support/modern-stdio.js'
import type { Transcript } from '../support/transcript.js'

const TOKENS = { alice: 'token-of-alice-0123456789', bob: 'token-of-bob-0123456789' }
type Who = keyof typeof TOKENS
type Json = Record<string, unknown>
const authorized = (who: Who) => ({ authorization: `Bearer ${TOKENS[who]}` })

/** A call of the tool that says its canary in all ways, also when it is over. */
function canary(url: string, who: Who, args: object, signal?: AbortSignal): Promise<Answer> {
  const params = { name: 'canary', arguments: { canary: who, ...args } }
  const options = { meta: { [LOG_LEVEL]: 'debug' }, headers: authorized(who), ...(signal && { signal }) }
  return call(url, 'tools/call', params, options)
}

const logsOf = ({ messages }: Answer) =>
  messages.flatMap(({ method, params }) => (method === 'notifications/message' ? [(params as Json)['data']] : []))

/** Processes in which tools were called, by who called them. */
function processesOf({ seen }: Transcript): Record<Who, Set<string>> {
  const processes = { alice: new Set<string>(), bob: new Set<string>() }
  for (const { pid, line } of seen()) {
    const who = line.includes('"tools/call"') && /"canary":"(alice|bob)"/.exec(line)?.[1]
    if (who) processes[who as Who].add(pid)
  }
  return processes
}

/** What one principal hears while calls of another, whose client has gone, are at work still. */
async function heardBeside(t: Test, url: string, { messages }: Transcript): Promise<unknown[]> {
  // No time passes: the bridge forgets after a while who may be at work.
  const now = performance.now()
  t.intercept(performance, 'now', { value: () => now })
  const heard: unknown[] = []
  const calls = () => messages().filter(({ method }) => method === 'tools/call').length
  for (let round = 0; round < 10; round++) {
    const before = calls()
    const leaving = new AbortController()
    const gone = canary(url, 'alice', { ms: 30, late: 20 }, leaving.signal).catch(() => undefined)
    await until(() => calls() > before, 'the call at the server')
    leaving.abort()
    await gone
    const answer = await canary(url, 'bob', { ms: 60 })
    t.match(answer.message, { result: { content: [{ text: 'bob' }] } })
    heard.push(...logsOf(answer))
  }
  return heard
}

t.test('a modern program logs to a principal in a process of its own', async (t) => {
  const stdio = modernStdio(t)
  const { url } = await startBridge(t, stdio.server, { auth: { tokens: TOKENS } })
  const quiet = (who: Who) =>
    call(url, 'tools/call', { name: 'echo', arguments: { canary: who } }, { headers: authorized(who) })
  await Promise.all([quiet('alice'), quiet('bob')])
  t.equal(stdio.pids().length, 1, 'those who want no logs share a process')

  const heard = await heardBeside(t, url, stdio)
  t.same(new Set(heard), new Set(['bob']))
  t.equal(heard.length, 20, 'and all that is logged for a call arrives')
  await Promise.all([quiet('alice'), quiet('bob')])
  const processes = processesOf(stdio)
  const [shared = ''] = stdio.pids()
  t.equal(processes.alice.size, 2)
  t.equal(processes.bob.size, 2)
  t.same(
    [...processes.alice].filter((pid) => processes.bob.has(pid)),
    [shared],
    'nothing else is shared',
  )
  t.equal(stdio.pids().length, 3)
  t.equal(stdio.seen().at(-1)?.pid === shared, false, 'who has had logs goes on in the own process')
})

t.test('a shared modern program logs to nobody while a message may be for another principal', async (t) => {
  const stdio = modernStdio(t)
  const { url } = await startBridge(t, { ...stdio.server, session: 'shared' }, { auth: { tokens: TOKENS } })
  t.same(logsOf(await canary(url, 'bob', { ms: 20 })), ['bob', 'bob'], 'who is alone hears it')
  t.same(await heardBeside(t, url, stdio), [], 'the calls that were given up may be at work still')
  t.equal(stdio.pids().length, 1)
})

t.test('a shared legacy program logs to nobody while a message may be for another principal', async (t) => {
  const stdio = legacyStdio(t)
  const { url } = await startBridge(t, { ...stdio.server, session: 'shared' }, { auth: { tokens: TOKENS } })
  t.same(logsOf(await canary(url, 'alice', { ms: 20 })), ['alice', 'alice'])
  t.same(await heardBeside(t, url, stdio), [])
  t.equal(stdio.pids().length, 1)
})

t.test("a subscription moves to the process of the principal's calls", async (t) => {
  const stdio = modernStdio(t)
  const { url } = await startBridge(t, stdio.server, { auth: { tokens: TOKENS } })
  const open = async (who: Who) => {
    const client = await LegacyClient.open(url, { headers: authorized(who) })
    const stream = await client.listen()
    await client.request('resources/subscribe', { uri: `test://${who}` })
    return { client, stream }
  }
  const [alice, bob] = [await open('alice'), await open('bob')]
  t.equal(stdio.pids().length, 1)
  await alice.client.request('logging/setLevel', { level: 'info' })
  const listens = () => stdio.messages().filter(({ method }) => method === 'subscriptions/listen').length
  const before = listens()
  await alice.client.call('touch', { uris: ['test://alice', 'test://bob'] })
  await until(() => listens() > before, 'the subscription in the other process')
  t.equal(stdio.pids().length, 2)
  const updates = ({ text }: EventStream) => (text.match(/test:\/\/\w+/g) ?? []).sort()
  await until(async () => {
    await alice.client.call('touch', { uris: ['test://alice', 'test://bob'] })
    return updates(alice.stream).length > 2
  }, 'the changes in the own process')
  await bob.client.call('touch', { uris: ['test://alice', 'test://bob'] })
  await until(() => updates(bob.stream).length > 0, 'the changes in the process that is shared')
  t.same(new Set(updates(alice.stream)), new Set(['test://alice']))
  t.same(new Set(updates(bob.stream)), new Set(['test://bob']))
})

t.test('with a single principal, a modern program is one process', async (t) => {
  const stdio = modernStdio(t)
  const { url } = await startBridge(t, stdio.server)
  await call(url, 'tools/call', { name: 'echo', arguments: {} })
  t.same(logsOf(await canary(url, 'alice', {})), ['alice', 'alice'])
  t.equal(stdio.pids().length, 1)
})
