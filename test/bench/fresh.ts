/** Processes that have just been started: the time to the first right answer, and what calls cost until code is compiled. */
import { type Candidate, launch, type Surroundings, stdioServer } from './candidates.js'
import { jobFor, load, rotated, withPeers } from './measure.js'
import { PipeClient } from './pipes.js'
import { end, startCommand } from './processes.js'
import { prepareOnPipe, type Question } from './questions.js'
import { smallCall } from './scenarios.js'
import { type Spread, spreadOf } from './statistics.js'

export interface Fresh {
  candidate: string
  kind: Candidate['kind']
  /** Milliseconds from the start of the process to the first answer. */
  start: Spread | undefined
  /** Microseconds of CPU per call, and milliseconds of half of them, in the calls after that. */
  cpu: Spread | undefined
  p50: Spread | undefined
  runs: Run[]
}

interface Run {
  start: number
  cpu?: number | undefined
  p50?: number
}

/** Calls after the first answer, one after the other. */
const COLD_CALLS = 200
/** Milliseconds for these calls, at most. */
const PATIENCE = 10_000

/** Starts the candidates in turn, `runs` times, in front of servers that run already. Other programs that fail are left out. */
export function measureFresh(
  among: readonly Candidate[],
  runs: number,
  surroundings: Surroundings,
  question: Question = smallCall,
): Promise<Fresh[]> {
  return withPeers(among, async (generator, ports) => {
    const times = new Map(among.map((candidate) => [candidate, [] as Run[]]))
    // What is on disk has to be in memory for all alike: the first time does not count.
    for (let run = -1; run < runs; run++)
      for (const candidate of rotated([...times.keys()], Math.max(0, run)))
        try {
          const port = ports.get(candidate.server) as number
          const result = await (candidate.proxy ? startOnce(candidate, port) : startOnPipe(candidate))
          if (run >= 0) times.get(candidate)?.push(result)
        } catch (error) {
          if (candidate.kind !== 'peer') throw error
          times.delete(candidate)
        }
    return [...times].map(([{ name, kind }, all]) => ({
      candidate: name,
      kind,
      start: spreadOf(all.map(({ start }) => start)),
      cpu: spreadOf(all.map(({ cpu }) => cpu)),
      p50: spreadOf(all.map(({ p50 }) => p50)),
      runs: all,
    }))

    async function startOnce(candidate: Candidate, serverPort: number): Promise<Run> {
      const begin = performance.now()
      const running = await launch(candidate, serverPort, surroundings)
      try {
        const ready = { ...running, job: await jobFor(running, question), windows: [] }
        const start = performance.now() - begin
        const amount = { connections: 1, milliseconds: PATIENCE, requests: COLD_CALLS }
        const { cpu, p50 } = await load(generator, ready, amount)
        return { start, cpu, p50 }
      } finally {
        if (running.process) await end(running.process)
      }
    }
  })
}

/** Starts a program and calls it on its pipe, without any proxy. */
async function startOnPipe({ client, server }: Candidate): Promise<Run> {
  const begin = performance.now()
  const program = startCommand(stdioServer(server), ['pipe', 'pipe', 'inherit'])
  const pipe = new PipeClient(program)
  const impatient = setTimeout(() => pipe.giveUp(), PATIENCE)
  try {
    await prepareOnPipe(client, smallCall, pipe.ask)
    return { start: performance.now() - begin }
  } finally {
    clearTimeout(impatient)
    await end(program)
  }
}
