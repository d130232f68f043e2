/**
 * Three replicas as processes, in front of one server, with one of them killed, one stopped and Redis started anew in the
 * middle; with REPLICA_KILL_EVERY (milliseconds), one is killed and replaced again and again instead. Nothing is done or answered twice, every caller is answered, and only what cannot be saved is lost, and said to be.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { says, startProgram } from '../support/cli.js'
import { until } from '../support/eventually.js'
import { temporaryFolder } from '../support/folder.js'
import { LegacyHttp } from '../support/legacy-http.js'
import { type Answer, CAPABILITIES, call } from '../support/modern.js'
import { noRedis, RedisServer } from '../support/redis.js'

type Json = Record<string, unknown>

const CALLS = Number(process.env['REPLICA_CALLS'] ?? 5_000)
/** Milliseconds between two kills; 0 for one kill, one stop and one start of Redis. */
const KILL_EVERY = Number(process.env['REPLICA_KILL_EVERY'] ?? 0)
/** Of so many calls one asks something. */
const ASKS = 10
const CALLERS = 48
/** Milliseconds that people take at most to answer. */
const THINKS = 1_000
const STATE_KEY = 'a secret that all the replicas know of'

interface Replica {
  name: string
  url: string
  kill(signal: NodeJS.Signals): void
  /** Callers are sent there. */
  up: boolean
  ended: Promise<number | null>
}

/** How a call has ended, and who held it while it was parked. */
interface Ending {
  kind: 'done' | 'broken' | 'lost' | 'other'
  key: string
  holder: string | undefined
  said: string
}

t.test(`${CALLS} calls through three replicas`, { skip: noRedis }, async (t) => {
  const folder = temporaryFolder(t)
  const executions = join(folder, 'executions')
  const server = await LegacyHttp.start(t, { asks: true, executions })
  const redis = await RedisServer.start(t)
  const config = join(folder, 'config.json')
  writeFileSync(
    config,
    JSON.stringify({
      mcpServers: { it: { url: server.url } },
      listen: 'http://127.0.0.1:0/mcp',
      redis: { url: redis.url, timeout: 2_000 },
      stateKeys: [STATE_KEY],
      log: { level: 'warn', format: 'json' },
      limits: { parkedPerPrincipal: 2_000 },
      timeouts: { drainDelay: 1_000 },
    }),
  )
  const start = async (name: string): Promise<Replica> => {
    const program = startProgram(t, ['--config', config, '--log-level', 'info'])
    const [, url = ''] = await says(program, /"url":"([^"]+)"/)
    const { child, ended } = program
    return { name, url, kill: (signal) => child.kill(signal), up: true, ended }
  }
  const replicas = await Promise.all(['one', 'two', 'three'].map(start))
  const [killed, stopped] = replicas as [Replica, Replica]
  for (const { url } of replicas) await call(url, 'tools/list')

  /** Looks at how all calls have ended. `gone`: the replicas that were killed. */
  function check(t: Test, endings: readonly Ending[], gone: ReadonlySet<string>): void {
    const of = (kind: Ending['kind']) => endings.filter((ending) => ending.kind === kind)
    t.comment(
      `${of('done').length} done, ${of('lost').length} lost, ${of('broken').length} broken, ${storm.refused} refused first`,
    )
    t.same(of('other'), [])
    t.equal(endings.length, CALLS, 'every caller was answered')
    t.ok(of('lost').length > 0, 'some calls were parked where nobody can fetch them')
    t.same(
      of('lost').filter(({ holder }) => !gone.has(String(holder))),
      [],
      'and only those were lost',
    )
    t.same(
      of('broken').filter(({ said }) => !gone.has(said)),
      [],
      'only connections to it were broken',
    )

    const executed = readFileSync(executions, 'utf8').split('\n').filter(Boolean)
    const once = new Set(executed)
    t.equal(once.size, executed.length, 'nothing was done twice')
    const missing = of('done').filter(({ key }) => !once.has(key))
    t.same(missing, [], 'and all that is said to be done')
    const answers = server.received.flatMap(({ body }) => /"said":"(answer to [^"]+)"/.exec(body)?.[1] ?? [])
    t.equal(new Set(answers).size, answers.length, 'no question was answered twice')
  }
  const storm = new Storm(replicas)
  const over = storm.run()
  const gone = new Set<string>()
  const killedAt = Date.now()
  if (KILL_EVERY > 0) {
    for (let kills = 1; storm.ended < CALLS * 0.95; kills++) {
      await sleep(KILL_EVERY)
      const victim = replicas[kills % replicas.length] as Replica
      gone.add(victim.name)
      victim.kill('SIGKILL')
      await sleep(300)
      victim.up = false
      replicas[kills % replicas.length] = await start(`${victim.name.replace(/#.*/, '')}#${kills}`)
    }
    check(t, await over, gone)
    t.comment(`${gone.size} were killed`)
    return
  }
  await until(() => storm.ended > CALLS * 0.3)
  gone.add(killed.name)
  killed.kill('SIGKILL')
  await sleep(1_000)
  killed.up = false
  await until(() => storm.ended > CALLS * 0.5)
  await redis.stop()
  await sleep(300)
  await redis.start()
  await until(() => storm.ended > CALLS * 0.7)
  stopped.kill('SIGTERM')
  await unready(stopped)
  stopped.up = false
  const endings = await over
  t.equal(await stopped.ended, 0, 'the one that was stopped has ended by itself')
  t.comment(
    `${Date.now() - killedAt} ms since one was killed; the slowest request took ${storm.slowest} ms, the slowest loss ${storm.slowestLoss} ms`,
  )

  check(t, endings, gone)
  t.ok(storm.carried > CALLS / ASKS / 3, `${storm.carried} answers came to another replica than had asked`)
})

/** Waits until a replica says that nothing more is to be sent there, as what stands before it would. */
async function unready({ url }: Replica): Promise<void> {
  const health = new URL('/readyz', url)
  while ((await fetch(health)).status === 200) await sleep(50)
}

/** Callers who choose a replica anew for each request. */
class Storm {
  readonly #replicas: readonly Replica[]
  #next = 0
  ended = 0
  /** Milliseconds that the slowest request took, and the slowest that was told of a loss. */
  slowest = 0
  slowestLoss = 0
  /** Requests that were sent again somewhere else, because they were refused unseen. */
  refused = 0
  /** Answers that came to another replica than had asked. */
  carried = 0

  constructor(replicas: readonly Replica[]) {
    this.#replicas = replicas
  }

  async run(): Promise<Ending[]> {
    const endings: Ending[] = []
    const caller = async () => {
      while (this.#next < CALLS) {
        endings.push(await this.#call(this.#next++))
        this.ended++
      }
    }
    await Promise.all(Array.from({ length: CALLERS }, caller))
    return endings
  }

  async #call(n: number): Promise<Ending> {
    const key = `key-${n}`
    const question = { method: 'elicitation/create', params: { message: key, requestedSchema: { type: 'object' } } }
    const asking = { name: 'steps', arguments: { key, by: 'session', steps: [{ ask: [question] }] } }
    const params: Json = n % ASKS === 0 ? asking : { name: 'act', arguments: { key, ms: 5 } }
    const expected = n % ASKS === 0 ? `answer to ${key}` : key
    let holder: Replica | undefined
    let sent = params
    for (;;) {
      const started = Date.now()
      const { answer, by, broken, cut } = await this.#send(sent, holder !== undefined)
      const took = Date.now() - started
      this.slowest = Math.max(this.slowest, took)
      if (!answer) return { kind: 'broken', key, holder: holder?.name, said: String(broken) }
      const { result, error } = answer.message
      // A retry that a replica forwards ends with that replica, and its call with it, as if the client had left.
      if (error?.data?.['reason'] === 'invalid_request_state' && cut !== undefined)
        return { kind: 'lost', key, holder: cut, said: answer.text }
      if (error?.data?.['reason'] === 'suspended_call_lost') {
        this.slowestLoss = Math.max(this.slowestLoss, took)
        return { kind: 'lost', key, holder: holder?.name, said: answer.text }
      }
      if (holder && by !== holder) this.carried++
      if (result?.['resultType'] !== 'input_required') {
        const kind = answer.text.includes(expected) ? 'done' : 'other'
        return { kind, key, holder: holder?.name, said: answer.text }
      }
      // Later rounds are asked where the first was, whichever replica they come by.
      holder ??= by
      const requests = result['inputRequests'] as Record<string, { params: { message: string } }>
      const answers = Object.entries(requests).map(
        ([
          name,
          {
            params: { message },
          },
        ]) => {
          return [name, { action: 'accept', content: { said: `answer to ${message}` } }]
        },
      )
      sent = { ...params, inputResponses: Object.fromEntries(answers), requestState: result['requestState'] }
      await sleep(Math.random() * THINKS)
    }
  }

  /** Sends a request to any of the replicas; to another where it is certain that nothing has come of it, or is told apart. */
  async #send(
    params: Json,
    safe: boolean,
  ): Promise<{ answer?: Answer; by: Replica; broken?: string; cut?: string | undefined }> {
    let cut: string | undefined
    for (;;) {
      const up = this.#replicas.filter((replica) => replica.up)
      const by = up[Math.floor(Math.random() * up.length)] as Replica
      try {
        const answer = await call(by.url, 'tools/call', params, { meta: { [CAPABILITIES]: { elicitation: {} } } })
        if (answer.status !== 503) return { answer, by, cut }
      } catch (error) {
        const refused = error instanceof Error && 'code' in error && error.code === 'ECONNREFUSED'
        // Answers can be given again: what came of them is kept.
        if (!refused && !safe) return { by, broken: by.name }
        if (!refused) cut = by.name
      }
      this.refused++
      await sleep(100)
    }
  }
}
