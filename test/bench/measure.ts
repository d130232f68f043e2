/** Measures scenarios: the candidates side by side, window by window, so that what drifts drifts for all of them. */
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { type Candidate, launch, type Running, type Surroundings, startServer, yardstick } from './candidates.js'
import { beside, cpuOf, end, memoryOf, start } from './processes.js'
import { type Era, firstAnswer, prepare, type Question, urlAt } from './questions.js'
import type { Scenario } from './scenarios.js'
import { ratioOf, type Spread, spreadOf } from './statistics.js'

export interface Pace {
  rounds: number
  /** Milliseconds of one window of one candidate. */
  window: number
  /** Milliseconds of load before anything counts. */
  warmUp: number
  /** Processes of each bridge: one may be slower than another for as long as it lives. */
  copies: number
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
  /** Medians over all windows. */
  figures: Partial<Figures>
  /** Multiples of the figures of the pass-through to a server of the same era in the same round. */
  ratios: Partial<Record<keyof Figures, Spread>>
  /** MiB of the proxy when all was over. */
  memory: number | undefined
  windows: Figures[]
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

/** Milliseconds that the load generator may take beyond a window. */
const HANG = 20_000
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

/** Measures one scenario. Rejects at the first wrong answer of the bridge; another program is left out from there on. */
export function measure(
  scenario: Scenario,
  connections: readonly number[],
  among: readonly Candidate[],
  pace: Pace,
  surroundings: Surroundings,
): Promise<Block[]> {
  return withPeers(among, async (generator, ports, started) => {
    const failed: Block['failed'] = []
    let all: Ready[] = []
    /** Does something with each candidate or process in turn. */
    const each = async <T extends { candidate: Candidate }>(some: readonly T[], act: (one: T) => Promise<unknown>) => {
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
    const window = async (ready: Ready, amount: Amount) => ready.windows.push(await load(generator, ready, amount))

    const toStart = Array.from({ length: pace.copies }, (_, copy) =>
      among.filter(({ kind }) => kind === 'bridge' || copy === 0).map((candidate) => ({ candidate })),
    ).flat()
    await each(toStart, async ({ candidate }) => {
      const running = await launch(candidate, ports.get(candidate.server) as number, surroundings)
      for (const child of [running.process, running.reader]) if (child) started.unshift(child)
      const ready = { ...running, job: await jobFor(running, scenario.question), windows: [] }
      await load(generator, ready, { connections: Math.max(...connections), milliseconds: pace.warmUp })
      all.push(ready)
    })
    const blocks: Block[] = []
    for (const count of connections) {
      for (const ready of all) ready.windows = []
      // Half of what a closed loop reaches is what an open loop asks for.
      if (scenario.kind === 'open')
        for (const ready of all)
          ready.rate = (await load(generator, ready, { connections: count, milliseconds: pace.warmUp })).rate / 2
      for (let round = 0; round < pace.rounds; round++) {
        await each(rotated(all, round), async (ready) => {
          if (all.includes(ready)) await window(ready, amountOf(ready, count, pace))
        })
      }
      blocks.push({ scenario: scenario.name, connections: count, cells: summaries(all), failed })
    }
    return blocks
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
export async function jobFor({ candidate, port }: Running, question: Question, to = port): Promise<Ready['job']> {
  const wire = await prepare(candidate.client, question, port)
  const expected = await firstAnswer(to, wire, candidate.client, question)
  const headers = Object.entries({ host: new URL(urlAt(to)).host, ...wire.headers })
  const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`)
  return { targets: [{ port: to, head: `POST /mcp HTTP/1.1\r\n${lines.join('')}` }], body: wire.body, expected }
}

/** Loads one candidate for a while. Rejects at the first wrong answer. */
export async function load(
  generator: ChildProcess,
  ready: Ready,
  amount: Amount,
): Promise<Figures & { requests: number }> {
  const { job, process: proxy, candidate } = ready
  const before = proxy && cpuOf(proxy)
  generator.send({ ...job, ...amount } satisfies Job)
  const patience = AbortSignal.timeout(amount.milliseconds + HANG)
  const [outcome] = (await once(generator, 'message', { signal: patience })) as [Outcome]
  if ('broken' in outcome) throw new Error(`${candidate.name}: ${outcome.broken}`)
  const after = proxy && cpuOf(proxy)
  const { requests, seconds, ...latencies } = outcome.load
  const used = before === undefined || after === undefined ? undefined : after - before
  const cpu = used && used / requests
  return { requests, rate: requests / seconds, ...latencies, cpu, busy: used && used / (seconds * 1e6) }
}

function summaries(all: readonly Ready[]): Cell[] {
  const windowsOf = (name: string) =>
    together(all.filter(({ candidate }) => candidate.name === name).map(({ windows }) => windows))
  const first = all.filter(({ candidate }, at) => all.findIndex((one) => one.candidate === candidate) === at)
  return first.map(({ candidate: { name, kind, server }, process: proxy, rate }) => {
    const windows = windowsOf(name)
    return {
      candidate: name,
      kind,
      ...(rate !== undefined && { offered: rate }),
      ...summary(windows, windowsOf(yardstick(server))),
      memory: proxy && memoryOf(proxy),
      windows,
    }
  })
}

/** The windows of all processes of a candidate: the median of each round. */
function together([first = [], ...others]: readonly Figures[][]): Figures[] {
  if (others.length === 0) return first
  return first.map((window, round) => {
    const all = [window, ...others.flatMap((windows) => windows[round] ?? [])]
    const figures = FIGURES.map((figure) => [figure, spreadOf(all.map((one) => one[figure]))?.median])
    return Object.fromEntries(figures) as unknown as Figures
  })
}

/** Medians of some windows, and the spread of their ratios to those of the pass-through in the same rounds. */
function summary(windows: readonly Figures[], base: readonly Figures[]): Pick<Cell, 'figures' | 'ratios'> {
  const of = (figure: keyof Figures, all: readonly Figures[]) => all.map((one) => one[figure])
  const figures = FIGURES.map((figure) => [figure, spreadOf(of(figure, windows))?.median])
  const ratios = FIGURES.map((figure) => [figure, ratioOf(of(figure, windows), of(figure, base))])
  return { figures: Object.fromEntries(figures), ratios: Object.fromEntries(ratios) }
}

/** Another one is first in each round, so that nobody is always after the same one. */
export function rotated<T>(all: readonly T[], round: number): T[] {
  const first = round % Math.max(1, all.length)
  return [...all.slice(first), ...all.slice(0, first)]
}
