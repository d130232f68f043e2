/** Where the microseconds of a call go: CPU profiles of one candidate under load, summed up by part and by file. */
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { type Candidate, launch, type Surroundings } from './candidates.js'
import { jobFor, load, withPeers } from './measure.js'
import { type CallFrame, fileOf, IDLE, partOf } from './parts.js'
import { beside } from './processes.js'
import type { Scenario } from './scenarios.js'
import { type Spread, spreadOf } from './statistics.js'

/** Time of the main thread in a part of the process, without what that calls. */
export interface Share {
  part: string
  /** Microseconds per request. */
  each: Spread
}

export interface Profile {
  candidate: string
  scenario: string
  connections: number
  /** Microseconds of CPU per request, of all threads. */
  cpu: Spread | undefined
  /** The largest first. */
  parts: Share[]
  files: Share[]
}

export interface ProfilePace {
  windows: number
  window: number
  warmUp: number
}

interface Recording {
  nodes: { id: number; callFrame: CallFrame }[]
  samples: number[]
  timeDeltas: number[]
}

const POLL = 20
const PATIENCE = 10_000

/** Profiles a candidate that is asked one question again and again: several windows, after code is compiled. */
export function profile(
  candidate: Candidate,
  { question, name }: Scenario,
  connections: number,
  pace: ProfilePace,
  surroundings: Surroundings,
): Promise<Profile> {
  return withPeers([candidate], async (generator, ports, started) => {
    const folder = mkdtempSync(join(tmpdir(), 'mcp-bridge-profile-'))
    try {
      const profiler = pathToFileURL(beside('profiler.mjs'))
      profiler.searchParams.set('folder', folder)
      const port = ports.get(candidate.server) as number
      const running = await launch(candidate, port, surroundings, ['--import', profiler.href])
      if (!running.process) throw new TypeError(`${candidate.name} has no process`)
      started.unshift(running.process)
      const ready = { ...running, job: await jobFor(running, question), windows: [] }
      await load(generator, ready, { connections, milliseconds: pace.warmUp })
      const [parts, files] = [new Sums(partOf), new Sums(fileOf)]
      const cpu: (number | undefined)[] = []
      for (let window = 0; window < pace.windows; window++) {
        running.process.kill('SIGUSR2')
        const figures = await load(generator, ready, { connections, milliseconds: pace.window })
        running.process.kill('SIGUSR2')
        const recording = JSON.parse(await written(join(folder, `${window}.json`))) as Recording
        for (const sums of [parts, files]) sums.add(recording, figures.requests)
        cpu.push(figures.cpu)
      }
      const all = { parts: parts.shares(), files: files.shares() }
      return { candidate: candidate.name, scenario: name, connections, cpu: spreadOf(cpu), ...all }
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  })
}

async function written(path: string): Promise<string> {
  for (let waited = 0; !existsSync(path); waited += POLL) {
    if (waited > PATIENCE) throw new Error('The profile was not written')
    await sleep(POLL)
  }
  return readFileSync(path, 'utf8')
}

/** Time per request by whatever a frame belongs to, window by window. */
class Sums {
  readonly #keyOf: (frame: CallFrame) => string
  readonly #windows: Map<string, number>[] = []

  constructor(keyOf: (frame: CallFrame) => string) {
    this.#keyOf = keyOf
  }

  add({ nodes, samples, timeDeltas }: Recording, requests: number): void {
    const counted = nodes.filter(({ callFrame }) => partOf(callFrame) !== IDLE)
    const keys = new Map(counted.map(({ id, callFrame }) => [id, this.#keyOf(callFrame)]))
    const sums = new Map<string, number>()
    for (const [index, id] of samples.entries()) {
      const key = keys.get(id)
      if (key !== undefined) sums.set(key, (sums.get(key) ?? 0) + (timeDeltas[index] ?? 0) / requests)
    }
    this.#windows.push(sums)
  }

  shares(): Share[] {
    const all = new Set(this.#windows.flatMap((sums) => [...sums.keys()]))
    return [...all]
      .map((part) => ({ part, each: spreadOf(this.#windows.map((sums) => sums.get(part) ?? 0)) as Spread }))
      .sort((a, b) => b.each.median - a.each.median)
  }
}
