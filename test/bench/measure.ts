/** Measures scenarios: the candidates side by side, turn by turn, so that what drifts drifts for all of them. */
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { type Candidate, launch, type Running, startServer, yardsticks } from './candidates.js'
import { beside, cpuOf, end, memoryOf, start } from './processes.js'
import { type Era, firstAnswer, prepare, type Question, urlAt } from './questions.js'
import type { Scenario } from './scenarios.js'

export interface Pace {
  rounds: number
  /** Milliseconds of one turn of one candidate. */
  turn: number
  /** Milliseconds of load before anything counts. */
  warmUp: number
}

export interface Figures {
  /** Requests per second. */
  rate: number
  /** Milliseconds. */
  p50: number
  p99: number
  /** Microseconds of the proxy's CPU per request; undefined where there is no proxy or no way to tell. */
  cpu: number | undefined
  /** Share of a core that the proxy had: near 1, it is what limits the rate. */
  busy: number | undefined
}

export interface Cell extends Figures {
  candidate: string
  requests: number
  /** MiB of the proxy when all was over. */
  memory: number | undefined
  /** Multiples of the figures of the yardstick for its server in the same round. */
  ratios: { rate: number; cpu: number | undefined }
  rounds: Figures[]
}

/** Milliseconds that the load generator may take beyond a turn. */
const HANG = 20_000

/** As the load generator takes and answers them. */
interface Job {
  port: number
  connections: number
  milliseconds: number
  head: string
  body: [string, string]
  expected: [string, string]
}
type Outcome = { load: { requests: number; seconds: number; p50: number; p99: number } } | { broken: string }

type Turn = Figures & { requests: number }
type Ready = Running & { job: Omit<Job, 'connections' | 'milliseconds'> }

/** What was measured of one scenario over so many connections. */
export interface Block {
  scenario: string
  connections: number
  cells: Cell[]
}

/** Measures one scenario. Rejects at the first wrong answer. */
export async function measure(scenario: Scenario, among: readonly Candidate[], pace: Pace): Promise<Block[]> {
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
    const all: Ready[] = []
    for (const candidate of among) {
      const running = await launch(candidate, ports.get(candidate.server) as number)
      if (running.process) started.unshift(running.process)
      const ready = { ...running, job: await jobFor(running, scenario.question) }
      await turn(generator, ready, Math.max(...scenario.connections), pace.warmUp)
      all.push(ready)
    }
    const blocks: Block[] = []
    for (const connections of scenario.connections) {
      const turns = await alternate(generator, all, connections, pace)
      const base = (era: Era) => turns[all.findIndex(({ candidate }) => candidate.name === yardsticks[era])] ?? []
      const cells = all.map((ready, index) => summary(ready, turns[index] ?? [], base(ready.candidate.server)))
      blocks.push({ scenario: scenario.name, connections, cells })
    }
    return blocks
  } finally {
    // Proxies before what they talk to: a bridge says goodbye to its server.
    for (const child of started) await end(child)
  }
}

/** Loads one candidate, with further arguments for its Node.js, and ends it. Resolves to how many requests it has answered. */
export async function measureUnder(
  candidate: Candidate,
  question: Question,
  node: readonly string[],
  connections: number,
  milliseconds: number,
): Promise<number> {
  const started: ChildProcess[] = []
  try {
    const generator = start('rest', [beside('load.mjs')], ['ignore', 'inherit', 'inherit', 'ipc'])
    const server = await startServer(candidate.server)
    started.push(generator, server.process)
    const running = await launch(candidate, server.port, node)
    if (running.process) started.unshift(running.process)
    const ready = { ...running, job: await jobFor(running, question) }
    return (await turn(generator, ready, connections, milliseconds)).requests
  } finally {
    for (const child of started) await end(child)
  }
}

/** The turns of each, one of each per round. */
async function alternate(generator: ChildProcess, all: readonly Ready[], connections: number, pace: Pace) {
  const turns: Turn[][] = all.map(() => [])
  for (let round = 0; round < pace.rounds; round++)
    for (const [index, ready] of all.entries()) turns[index]?.push(await turn(generator, ready, connections, pace.turn))
  return turns
}

async function jobFor({ candidate, port }: Running, question: Question) {
  const wire = await prepare(candidate.client, question, port)
  const expected = await firstAnswer(port, wire, candidate.client, question.right)
  const headers = Object.entries({ host: new URL(urlAt(port)).host, ...wire.headers })
  const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`)
  return { port, head: `POST /mcp HTTP/1.1\r\n${lines.join('')}`, body: wire.body, expected }
}

async function turn(
  generator: ChildProcess,
  { job, process: proxy, candidate }: Ready,
  connections: number,
  milliseconds: number,
): Promise<Turn> {
  const before = proxy && cpuOf(proxy)
  generator.send({ ...job, connections, milliseconds } satisfies Job)
  const [outcome] = (await once(generator, 'message', { signal: AbortSignal.timeout(milliseconds + HANG) })) as [
    Outcome,
  ]
  if ('broken' in outcome) throw new Error(`${candidate.name}: ${outcome.broken}`)
  const after = proxy && cpuOf(proxy)
  const { requests, seconds, p50, p99 } = outcome.load
  const used = before === undefined || after === undefined ? undefined : after - before
  return { requests, rate: requests / seconds, p50, p99, cpu: per(used, requests), busy: per(used, seconds * 1e6) }
}

function summary({ candidate, process: proxy }: Ready, turns: Turn[], base: readonly Turn[]): Cell {
  const ratio = (figure: 'rate' | 'cpu') =>
    median(turns.map((turn, round) => per(turn[figure], base[round]?.[figure] ?? Number.NaN)))
  return {
    candidate: candidate.name,
    requests: turns.reduce((sum, { requests }) => sum + requests, 0),
    rate: median(turns.map(({ rate }) => rate)) ?? 0,
    p50: median(turns.map(({ p50 }) => p50)) ?? 0,
    p99: median(turns.map(({ p99 }) => p99)) ?? 0,
    cpu: median(turns.map(({ cpu }) => cpu)),
    busy: median(turns.map(({ busy }) => busy)),
    memory: proxy && memoryOf(proxy),
    ratios: { rate: ratio('rate') ?? 0, cpu: ratio('cpu') },
    rounds: turns,
  }
}

function per(amount: number | undefined, units: number): number | undefined {
  return amount === undefined ? undefined : amount / units
}

/** The one in the middle; undefined where one is missing. */
export function median(values: readonly (number | undefined)[]): number | undefined {
  const known = values.filter((value) => value !== undefined && !Number.isNaN(value)) as number[]
  if (known.length === 0 || known.length < values.length) return undefined
  const sorted = known.sort((a, b) => a - b)
  const middle = sorted.length / 2
  return ((sorted[Math.ceil(middle) - 1] as number) + (sorted[Math.floor(middle)] as number)) / 2
}
