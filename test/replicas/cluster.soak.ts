/**
 * Three replicas as processes share a Redis Cluster of three primaries and their replicas, and each primary is killed in turn under
 * load: what is forwarded does not need Redis, no session is lost, and what does need it is said to have been done or not.
 *
 * `CLUSTER_CALLERS` is how many clients of each kind there are; what came of them is a comment.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { ADA, all, NAME, startAsker, talk } from '../support/asking.js'
import { BuiltBridge } from '../support/built-bridge.js'
import { until } from '../support/eventually.js'
import { LegacyClient } from '../support/legacy-client.js'
import { type Answer, post } from '../support/modern.js'
import { ModernHttp } from '../support/modern-http.js'
import { askRedis, noRedis, type RedisServer, startCluster } from '../support/redis.js'

const CALLERS = Number(process.env['CLUSTER_CALLERS'] ?? 6)
/** Milliseconds of load before and after each loss. */
const CALM = 3_000
const PASSWORD = 'a-password'
/** Who is asked has an own session with the server: answers of one principal may go to any of its calls. */
const tokenOf = (at: number) => `token-of-somebody-${at}`

/** What came of something, and how often. */
type Counts = Map<string, number>

t.test('primaries of a Redis Cluster are lost under load', { skip: noRedis, timeout: 600_000 }, async (t) => {
  const nodes = await startCluster(t, PASSWORD)
  const modern = await ModernHttp.start(t)
  const asker = await startAsker(t, 'over stdio')
  const direct = await startAsker(t, 'on the stream of the call over HTTP')
  const settings = {
    listen: 'http://127.0.0.1:0/mcp',
    admin: 'http://127.0.0.1:0',
    mcpServers: { modern: { url: modern.url }, asker: asker.server, direct: direct.server },
    redis: { cluster: nodes.map(({ port }) => `redis://:${PASSWORD}@127.0.0.1:${port}`), timeout: 2_000 },
    auth: { tokens: Object.fromEntries(Array.from({ length: CALLERS }, (_, at) => [`person-${at}`, tokenOf(at)])) },
    stateKeys: ['a secret that all the replicas know of'],
    limits: { perPrincipal: 1, startsPerMinute: 10_000 },
  }
  const replicas = await Promise.all([1, 2, 3].map(() => BuiltBridge.start(t, settings)))
  const urlOf = (at: number, server: string) => (replicas[at % 3] as BuiltBridge).url(server)
  const headersOf = (at: number) => ({ authorization: `Bearer ${tokenOf(at)}` })

  const counts: Record<string, Counts> = {}
  let isOver = false
  const running: Promise<void>[] = []
  /** Does something again and again, for each person. */
  const begin = async (what: string, prepare: (at: number) => Promise<() => Promise<string>>) => {
    const found: Counts = new Map()
    counts[what] = found
    for (let at = 0; at < CALLERS; at++) {
      const act = await prepare(at)
      const repeat = async () => {
        while (!isOver) {
          const came = await act().catch((error: Error & { code?: string }) => `broken: ${error.code ?? error.message}`)
          found.set(came, (found.get(came) ?? 0) + 1)
          await sleep(10)
        }
      }
      running.push(repeat())
    }
  }
  const sessions: { client: LegacyClient; tool: string; server: string; at: number }[] = []
  for (const [server, tool] of [
    ['modern', 'act'],
    ['asker', 'echo'],
    ['direct', 'echo'],
  ] as const)
    await begin(`calls to ${server}, of another replica`, async (at) => {
      const client = await LegacyClient.open(urlOf(at, server), { headers: headersOf(at) })
      sessions.push({ client, tool, server, at })
      // Where another replica is, is asked for once.
      for (const shift of [1, 2]) await callAt(urlOf(at + shift, server), client, tool)
      let calls = 0
      return async () => {
        const { status, message } = await callAt(urlOf(at + 1 + (calls++ % 2), server), client, tool)
        return message.result ? 'answered' : `${status} ${message.error?.message}`
      }
    })
  await begin('questions', async (at) => {
    const asking = talk(urlOf(at, 'asker'), asker)
    const answering = talk(urlOf(at + 1, 'asker'), asker)
    const options = { headers: headersOf(at) }
    return async () => {
      const asked = await asking.steps([{ ask: [NAME] }], {}, options)
      if (asked.keys.length === 0) return toldOf(asked)
      const params = { ...asking.paramsOf(asked), inputResponses: all(asked, ADA), requestState: asked.state }
      for (;;) {
        const answered = await answering.call('tools/call', params, options)
        // Nothing was done with this answer: it can be given again.
        if (answered.message.error?.data?.['outcome'] === 'not_executed' && !isOver) await sleep(100)
        else return toldOf(answered)
      }
    }
  })
  await begin('sessions opened', async (at) => async () => {
    const client = await LegacyClient.open(urlOf(at, 'direct'), { headers: headersOf(at) })
    if (client.opened.status !== 200) return `not opened: ${client.opened.status}`
    const { status, message } = await client.call('echo')
    await client.end()
    return message.result ? 'answered' : `${status} ${message.error?.message}`
  })

  const own = new Set(nodes)
  for (const primary of nodes.slice(0, 3)) {
    await sleep(CALM)
    await primary.stop()
    own.delete(primary)
    const began = performance.now()
    await until(() => [...own].every((node) => isWholeWithout(node, primary)), 'a cluster that has all slots again')
    t.comment(`a primary was replaced after ${Math.round(performance.now() - began)} ms`)
    await sleep(CALM)
  }
  isOver = true
  await Promise.all(running)
  for (const [what, found] of Object.entries(counts)) {
    t.comment(what, Object.fromEntries(found))
    t.ok((found.get('answered') ?? 0) > 10, `${what}: ${found.get('answered')} were answered`)
    const wrong = [...found.keys()].filter((name) => name !== 'answered' && name !== 'not executed')
    t.same(wrong, [], `${what}: each was answered, or its error says that nothing was done`)
  }
  for (const [what, found] of Object.entries(counts))
    if (what.includes('another replica')) t.same([...found.keys()], ['answered'], `${what} need no Redis`)
  for (const { client, tool, server, at } of sessions)
    for (const shift of [0, 1, 2]) {
      const { message } = await callAt(urlOf(at + shift, server), client, tool)
      t.ok(message.result, `a session with ${server} is there in each replica: ${JSON.stringify(message.error)}`)
    }
})

function toldOf({
  status,
  message,
}: {
  status: number
  message: { result?: object; error?: { data?: object } }
}): string {
  if (message.result) return 'answered'
  const outcome = (message.error?.data as { outcome?: string } | undefined)?.outcome
  return outcome === 'not_executed' ? 'not executed' : `${status} ${JSON.stringify(message.error)}`
}

/** Calls a tool in a client's session, at any replica. */
function callAt(url: string, client: LegacyClient, tool: string): Promise<Answer> {
  return post(url, client.text('tools/call', { name: tool, arguments: {} }, {}), client.headers)
}

/** Whether a node knows that another is lost, and of one that has its slots now. */
function isWholeWithout({ port }: RedisServer, lost: RedisServer): boolean {
  const ask = (what: string) => askRedis(port, PASSWORD, 'CLUSTER', what)
  const lines = ask('NODES').split('\n')
  return (
    lines.some((line) => line.includes(`:${lost.port}@`) && / master,fail /.test(line)) &&
    ask('INFO').includes('cluster_state:ok')
  )
}
