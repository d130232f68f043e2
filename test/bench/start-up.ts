/** How long it takes from the start of a proxy to the first right answer through it. */
import { type Candidate, launch, startServer } from './candidates.js'
import { median } from './measure.js'
import { end } from './processes.js'
import { firstAnswer, prepare } from './questions.js'
import { smallCall } from './scenarios.js'

export interface StartUp {
  candidate: string
  /** Milliseconds. */
  median: number
  runs: number[]
}

/** Starts the candidates in turn, `runs` times, in front of a legacy server that runs already. */
export async function measureStartUp(among: readonly Candidate[], runs: number): Promise<StartUp[]> {
  const times = among.map((candidate) => ({ candidate, runs: [] as number[] }))
  const server = await startServer('legacy')
  try {
    // What is on disk has to be in memory for all alike: the first time does not count.
    for (let run = -1; run < runs; run++)
      for (const row of times) {
        const time = await startOnce(row.candidate, server.port)
        if (run >= 0) row.runs.push(time)
      }
  } finally {
    await end(server.process)
  }
  return times.map(({ candidate, runs: all }) => ({ candidate: candidate.name, median: median(all) ?? 0, runs: all }))
}

async function startOnce(candidate: Candidate, serverPort: number): Promise<number> {
  const wire = await prepare(candidate.client, smallCall, serverPort)
  const begin = performance.now()
  const { port, process: proxy } = await launch(candidate, serverPort)
  try {
    await firstAnswer(port, wire, candidate.client, smallCall.right)
    return performance.now() - begin
  } finally {
    if (proxy) await end(proxy)
  }
}
