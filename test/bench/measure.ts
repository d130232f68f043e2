/** Measures scenarios: the candidates side by side, window by window, so that what drifts drifts for all of them. */
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import {
  type Candidate,
  launch,
  processesOf,
  type Running,
  type Surroundings,
  startServer,
  yardstick,
} from './candidates.js'
import { beside, cpuOf, end, memoryOf, start } from './processes.js'
import { type Era, firstAnswer, prepare, prepareOnPipe, type Question, urlAt } from './questions.js'
import type { Scenario } from './scenarios.js'
import { ratioOf, type Spread, spreadOf } from './statistics.js'

export interface Pace {
  rounds: number
  /** Milliseconds of one window of one candidate. */
  window: number
  /** Milliseconds of load before anything counts. */
  warmUp: number
  /** How often each process is started: one may be slower than another for as long as it lives. */
  lives: number
}

export interface Figures {
  /** Requests per second. */
  rate: number
  /** Milliseconds. */
  p50: number
  p90: number
  p99: number
  /** Microseconds of the proxy's CPU per request; undefined where there is no proxy or no way to tell. */
  cpu: number | undefined
  /** Share of a core that the proxy had: near 1, it is what limits the rate. */
  busy: number | undefined
}

/** What was measured of one candidate. */
export interface Cell {
  candidate: string
  kind: Candidate['kind']
  /** Requests per second that were sent in an open loop. */
  offered?: number
  /** Medians of all lives. */
  figures: Partial<Figures>
  /**
   * Multiples of the figures of the pass-through to a server of the same era, of the first way to configure a lane where
   * ways are compared, or of what the scenario names: the median of the windows of each life, and medians and quartiles of all lives.
   */
  ratios: Partial<Record<keyof Figures, Spread>>
  /** MiB of the proxy when its last life was over. */
  memory: number | undefined
  /** Medians of the windows of each life. */
  lives: Partial<Figures>[]
}

/** What was measured of one scenario over so many connections. */
export interface Block {
  scenario: string
  connections: number
  cells: Cell[]
  /** Other programs that gave wrong answers or none, and are left out, with the reason. */
  failed: { candidate: string; why: string }[]
}

/** As the load generator takes and answers them. */
interface Job {
  /** Where connections go, in turn, and the head of their requests, without its length. */
  targets: { port: number; head: string }[]
  connections: number
  milliseconds: number
  requests?: number
  rate?: number
  body: string[]
  expected: string[]
}
type Load = { requests: number; seconds: number; p50: number; p90: number; p99: number }
type Outcome = { load: Load } | { broken: string }
type Amount = Omit<Job, 'targets' | 'body' | 'expected'>

/** A candidate that has answered rightly once. */
export type Ready = Running & { job: Omit<Job, keyof Amount>; rate?: number; windows: Figures[] }

/** What was measured of one process. */
interface Life {
  candidate: Candidate
  life: number
  rate: number | undefined
  memory: number | undefined
  windows: Figures[]
}

/** Milliseconds that the load generator may take beyond a window. */
const HANG = 20_000
/** Milliseconds that a candidate is warmed up before it is the next one's turn. */
const SLICE = 500
/**
 * V8 collects the garbage of a process that has been idle for seconds, and drops compiled code that knew the shapes of what was
 * collected. Candidates are idle while others have their turn, so they would be measured cold, and some more than others.
 */
const WARM = ['--no-memory-reducer']
const FIGURES = ['rate', 'p50', 'p90', 'p99', 'cpu', 'busy'] as const

/** Starts the load generator and the servers of these candidates. Ends them, and all else that was put to them, in the end. */
export async function withPeers<T>(
  among: readonly Candidate[],
  measureThem: (generator: ChildProcess, ports: Map<Era, number>, started: ChildProcess[]) => Promise<T>,
): Promise<T> {
  const started: ChildProcess[] = []
  try {
    const generator = start('rest', [beside('load.mjs')], ['ignore', 'inherit', 'inherit', 'ipc'])
    started.push(generator)
    const ports = new Map<Era, number>()
    for (const era of new Set(among.map(({ server }) => server))) {
      const server = await startServer(era)
      started.push(server.process)
      ports.set(era, server.port)
    }
    return await measureThem(generator, ports, started)
  } finally {
    // Proxies before what they talk to: a bridge says goodbye to its server.
    for (const child of started) await end(child)
  }
}

/**
 * Measures one scenario: all candidates side by side, and again with new processes for each life. Rejects at the first wrong
 * answer of the bridge; another program is left out from there on.
 */
export function measure(
  scenario: Scenario,
  connections: readonly number[],
  among: readonly Candidate[],
  pace: Pace,
  surroundings: Surroundings,
): Promise<Block[]> {
  return withPeers(among, async (generator, ports) => {
    const failed: Block['failed'] = []
    const lives: Life[][] = connections.map(() => [])
    for (let life = 0; life < pace.lives; life++) {
      process.stderr.write(`${scenario.name}: life ${life + 1} of ${pace.lives}\n`)
      const started: ChildProcess[] = []
      try {
        let all: Ready[] = []
        /** Does something with each candidate or process in turn. */
        const each = async <T extends { candidate: Candidate }>(
          some: readonly T[],
          act: (one: T) => Promise<unknown>,
        ) => {
          for (const one of some)
            try {
              await act(one)
            } catch (error) {
              const { candidate } = one
              if (candidate.kind !== 'peer') throw error
              failed.push({ candidate: candidate.name, why: error instanceof Error ? error.message : String(error) })
              all = all.filter((ready) => ready.candidate !== candidate)
            }
        }
        const left = among.filter(({ name }) => !failed.some(({ candidate }) => candidate === name))
        await each(rotated(left, life).map(toCandidate), async ({ candidate }) => {
          const running = await launch(candidate, ports.get(candidate.server) as number, surroundings, WARM)
          for (const child of [running.process, running.reader]) if (child) started.unshift(child)
          const sessions = scenario.sessions ? Math.max(...connections) : 1
          all.push({ ...running, job: await jobOfMany(running, scenario.question, sessions), windows: [] })
        })
        const most = Math.max(...connections)
        for (let warmed = 0; warmed < pace.warmUp; warmed += SLICE)
          await each(rotated(all, warmed / SLICE), async (ready) => {
            const milliseconds = SLICE * processesOf(ready.candidate)
            if (all.includes(ready)) await load(generator, ready, { connections: most, milliseconds })
          })
        for (const [at, count] of connections.entries()) {
          for (const ready of all) ready.windows = []
          // Half of what a closed loop reaches is what an open loop asks for.
          if (scenario.kind === 'open')
            for (const ready of all)
              ready.rate = (await load(generator, ready, { connections: count, milliseconds: pace.warmUp })).rate / 2
          for (let round = 0; round < pace.rounds; round++)
            await each(rotated(all, round), async (ready) => {
              // A pipe has one client.
              if (!all.includes(ready) || (ready.pipe && count > 1)) return
              ready.windows.push(await load(generator, ready, amountOf(ready, count, pace)))
            })
          for (const { candidate, process: proxy, rate, windows } of all)
            lives[at]?.push({ candidate, life, rate, windows, memory: proxy && memoryOf(proxy) })
        }
      } finally {
        for (const child of started) await end(child)
      }
    }
    return connections.map((count, at) => {
      const cells = summaries(among, lives[at] ?? [], scenario)
      return { scenario: scenario.name, connections: count, cells, failed }
    })
  })
}

/** An open loop has windows of twice the length, because percentiles need many requests. */
function amountOf({ rate }: Ready, connections: number, { window }: Pace): Amount {
  return rate === undefined ? { connections, milliseconds: window } : { connections, milliseconds: 2 * window, rate }
}

/**
 * Asks a candidate until the answer is right, and prepares the same question for the load generator. A session is opened at the
 * candidate; calls go to the port `to`, that of another replica if it differs.
 */
export async function jobFor(
  { candidate, port, headers: more, pipe }: Running,
  question: Question,
  to = port,
): Promise<Ready['job']> {
  if (pipe) {
    const impatient = setTimeout(() => pipe.giveUp(), HANG)
    const said = await prepareOnPipe(candidate.client, question, pipe.ask).finally(() => clearTimeout(impatient))
    return { targets: [], ...said }
  }
  const plain = await prepare(candidate.client, question, port, !candidate.sessionless)
  const wire = { ...plain, headers: { ...plain.headers, ...more } }
  const expected = await firstAnswer(to, wire, candidate.client, question)
  const headers = Object.entries({ host: new URL(urlAt(to)).host, ...wire.headers })
  const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`)
  return { targets: [{ port: to, head: `POST /mcp HTTP/1.1\r\n${lines.join('')}` }], body: wire.body, expected }
}

/** The same with so many sessions, one for each connection. */
async function jobOfMany(running: Running, question: Question, sessions: number): Promise<Ready['job']> {
  const job = await jobFor(running, question)
  if (running.pipe || running.candidate.sessionless) return job
  const targets = [...job.targets]
  while (targets.length < sessions) targets.push(...(await jobFor(running, question)).targets)
  return { ...job, targets }
}

/** Loads one candidate for a while. Rejects at the first wrong answer. */
export async function load(
  generator: ChildProcess,
  ready: Ready,
  amount: Amount,
): Promise<Figures & { requests: number }> {
  const { process: proxy, candidate } = ready
  const before = proxy && cpuOf(proxy)
  const outcome = await outcomeOf(generator, ready, amount)
  if ('broken' in outcome) throw new Error(`${candidate.name}: ${outcome.broken}`)
  const after = proxy && cpuOf(proxy)
  const { requests, seconds, ...latencies } = outcome.load
  const used = before === undefined || after === undefined ? undefined : after - before
  const cpu = used && used / requests
  return { requests, rate: requests / seconds, ...latencies, cpu, busy: used && used / (seconds * 1e6) }
}

async function outcomeOf(generator: ChildProcess, { job, pipe }: Ready, amount: Amount): Promise<Outcome> {
  if (pipe) {
    const impatient = setTimeout(() => pipe.giveUp(), amount.milliseconds + HANG)
    const load = pipe.load(job.body, job.expected, amount.milliseconds, amount.requests)
    return { load: await load.finally(() => clearTimeout(impatient)) }
  }
  generator.send({ ...job, ...amount } satisfies Job)
  const patience = AbortSignal.timeout(amount.milliseconds + HANG)
  const [outcome] = (await once(generator, 'message', { signal: patience })) as [Outcome]
  return outcome
}

function toCandidate(candidate: Candidate): { candidate: Candidate } {
  return { candidate }
}

/** The cells of all candidates that have answered in each of their lives. */
function summaries(among: readonly Candidate[], all: readonly Life[], { ways, base: named }: Scenario): Cell[] {
  const livesOf = (name: string) => all.filter(({ candidate }) => candidate.name === name)
  return among.flatMap((candidate) => {
    const { name, kind, server, way } = candidate
    const own = livesOf(name)
    const [last] = own.slice(-1)
    if (!last) return []
    const [first] = ways ?? []
    const base = livesOf(first && way ? name.replace(way, first) : (named ?? yardstick(server)))
    return [
      {
        candidate: name,
        kind,
        ...(last.rate !== undefined && { offered: last.rate }),
        ...summary(
          own.map(({ windows }) => windows),
          own.map(({ life }) => base.find((one) => one.life === life)?.windows ?? []),
        ),
        memory: last.memory,
      },
    ]
  })
}

/** Medians over lives, and the spread of the ratios to those of another process in the same lives and rounds. */
function summary(lives: readonly Figures[][], bases: readonly Figures[][]): Pick<Cell, 'figures' | 'ratios' | 'lives'> {
  const of = (figure: keyof Figures, windows: readonly Figures[]) => windows.map((one) => one[figure])
  const medians = (spreadIn: (figure: keyof Figures) => Spread | undefined) =>
    Object.fromEntries(FIGURES.map((figure) => [figure, spreadIn(figure)?.median]))
  const each = lives.map((windows): Partial<Figures> => medians((figure) => spreadOf(of(figure, windows))))
  const ratios = FIGURES.map((figure) => {
    const inLives = lives.map((windows, life) => ratioOf(of(figure, windows), of(figure, bases[life] ?? []))?.median)
    return [figure, spreadOf(inLives)]
  })
  const figures = medians((figure) => spreadOf(each.map((one) => one[figure])))
  return { figures, ratios: Object.fromEntries(ratios), lives: each }
}

/** Another one is first in each round, so that nobody is always after the same one. */
export function rotated<T>(all: readonly T[], round: number): T[] {
  const first = round % Math.max(1, all.length)
  return [...all.slice(first), ...all.slice(0, first)]
}
