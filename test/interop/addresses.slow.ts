/**
 * Two addresses of a server, which are killed and started again in turn every two seconds under load: nothing runs twice, and nothing is
 * lost but what was in flight there.
 *
 * Runs alone: it needs the machine for the load.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { startBridge } from '../support/bridge.js'
import { pause, until } from '../support/eventually.js'
import { temporaryFile } from '../support/folder.js'
import { freePort } from '../support/free-port.js'
import { LegacyClient } from '../support/legacy-client.js'
import { type Answer, call } from '../support/modern.js'
import { programArgs } from '../support/program.js'
import { EVERYTHING, end } from './legacy-servers.js'

const CALLERS = 24
/** Milliseconds between two kills, and how many there are at least. */
const BETWEEN = 2_000
const KILLS = 4
const ARRIVALS = fileURLToPath(new URL('../fixtures/arrivals.mjs', import.meta.url))

/** A server at an address, which can be killed and started again there. */
class Replica {
  readonly #args: readonly string[]
  readonly #port: number
  readonly #arrivals: string
  #child: ChildProcess | undefined

  constructor(args: readonly string[], port: number, arrivals: string) {
    this.#args = args
    this.#port = port
    this.#arrivals = arrivals
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}/mcp`
  }

  async start(): Promise<void> {
    const env = { ...process.env, PORT: String(this.#port), ARRIVALS: this.#arrivals }
    this.#child = spawn(process.execPath, [`--import=${ARRIVALS}`, ...this.#args], { env, stdio: 'ignore' })
    await until(() => isOpen(this.#port), 'the server listening')
  }

  async kill(): Promise<void> {
    const child = this.#child as ChildProcess
    const gone = new Promise((resolve) => child.once('exit', resolve))
    child.kill('SIGKILL')
    await gone
  }

  async stop(): Promise<void> {
    if (this.#child) await end(this.#child)
  }
}

function isOpen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy()
      resolve(true)
    })
    socket.on('error', () => resolve(false))
  })
}

async function startTwo(t: Test, args: readonly string[]) {
  const arrivals = temporaryFile(t, 'arrivals', '')
  const replicas = [
    new Replica(args, await freePort(), arrivals),
    new Replica(args, await freePort(), arrivals),
  ] as const
  for (const replica of replicas) {
    await replica.start()
    t.teardown(() => replica.stop())
  }
  /** How often each call has run at a server, or may have. */
  const counts = () => {
    const found = new Map<string, number>()
    for (const line of readFileSync(arrivals, 'utf8').split('\n').filter(Boolean)) {
      const key = line.replace(/^-/, '')
      found.set(key, (found.get(key) ?? 0) + (line === key ? 1 : -1))
    }
    return found
  }
  return { replicas, counts }
}

/** Whether a call of this key ran: `no` if it certainly did not. */
type Told = 'done' | 'no' | 'unknown' | 'other'

function toldBy({ message, text }: Answer, key: string): Told {
  if (text.includes(`Echo: ${key}`)) return 'done'
  const outcome = message.error?.data?.['outcome']
  return outcome === 'not_executed' ? 'no' : outcome === 'unknown' ? 'unknown' : 'other'
}

/** Makes calls while replicas are killed again and again. `caller` makes one that calls under the key that it gets. */
async function underKills(
  t: Test,
  args: readonly string[],
  least: number,
  caller: (url: string) => Promise<(key: string) => Promise<Answer>>,
): Promise<Record<Told, number>> {
  const { replicas, counts } = await startTwo(t, args)
  const { url } = await startBridge(t, { url: replicas.map((one) => one.url) }, { log: { level: 'error' } })
  const told = { done: 0, no: 0, unknown: 0, other: 0 }
  const others: string[] = []
  const done: string[] = []
  let next = 0
  let kills = 0
  const isOver = () => next >= least && kills >= KILLS
  const keepCalling = async () => {
    const ask = await caller(url)
    while (!isOver()) {
      const key = `key-${next++}`
      const answer = await ask(key)
      const what = toldBy(answer, key)
      told[what]++
      if (what === 'done') done.push(key)
      if (what === 'other') others.push(`${answer.status} ${answer.text.slice(0, 300)}`)
    }
  }
  const killing = async () => {
    for (; !isOver(); kills++) {
      await pause(BETWEEN)
      const replica = replicas[kills % 2] as Replica
      await replica.kill()
      await replica.start()
    }
  }
  await Promise.all([killing(), ...Array.from({ length: CALLERS }, keepCalling)])
  const ran = counts()
  t.strictSame(
    [...ran].filter(([, count]) => count > 1),
    [],
    'nothing ran twice',
  )
  t.strictSame(
    done.filter((key) => ran.get(key) !== 1),
    [],
    'what was answered has run once',
  )
  t.strictSame(others, [])
  t.ok(told.unknown <= kills * CALLERS, `${told.unknown} unknown of ${kills} × ${CALLERS} in flight at most`)
  t.ok(told.done >= least - told.unknown - told.no, `${JSON.stringify(told)} with ${kills} kills`)
  return told
}

const echo = (key: string) => ({ name: 'echo', arguments: { message: key } })

for (const [era, args] of Object.entries({
  modern: programArgs('interop/replica'),
  legacy: [EVERYTHING, 'streamableHttp'],
}))
  t.test(`10,000 calls of modern clients to a ${era} server`, { timeout: 600_000 }, async (t) => {
    const told = await underKills(t, args, 10_000, async (url) => (key) => call(url, 'tools/call', echo(key)))
    t.equal(told.no, 0, 'what has not run went to the other address')
  })

t.test('sessions of legacy clients with a legacy server open again elsewhere', { timeout: 600_000 }, async (t) => {
  const told = await underKills(t, [EVERYTHING, 'streamableHttp'], 5_000, async (url) => {
    let client = await LegacyClient.open(url)
    return async (key) => {
      const answer = await client.request('tools/call', echo(key))
      if (answer.status !== 404) return answer
      client = await LegacyClient.open(url)
      return client.request('tools/call', echo(key))
    }
  })
  // Three failures end the sessions at an address; each client may have had one of them for each kill.
  t.ok(told.no < told.done / 20, `${told.no} refused`)
})
