/** What the inspector holds in memory after messages of 1 MiB: its bound, and no part of them. */
import type { ChildProcess } from 'node:child_process'
import t from 'tap'
import { RING } from '../../src/inspector/ring.js'
import { type Candidate, candidates, launch, wayName } from '../bench/candidates.js'
import { COLLECTING, restingMemory } from '../bench/idle.js'
import { jobFor, load, withPeers } from '../bench/measure.js'
import { scenarios } from '../bench/scenarios.js'
import { PATIENCE } from '../support/eventually.js'

const MIB = 1024 * 1024
/** Messages of a run. If parts of them stayed in memory, that would be hundreds of megabytes. */
const CALLS = 400
/** MiB that two processes of the same program may differ in, and that compiled code of the inspector takes. */
const NOISE = 32
/** Looks at the memory, and milliseconds between two: the system takes memory back late. */
const LOOKS = 5
const PAUSE = 500

const large = scenarios.find(({ name }) => name === 'text')?.question
const skip = process.platform !== 'linux' && 'memory is read as Linux tells it'

for (const lane of ['modern-legacy-http', 'legacy-legacy-http', 'legacy-modern-stdio'])
  t.test(`${lane}: with all texts kept and a viewer, a bridge holds at most the bound more`, { skip }, async (t) => {
    const [off, on] = [await heldBy(lane, 'no inspector'), await heldBy(lane, 'payloads of every call, watched')]
    t.comment(`${off.toFixed(0)} MiB without an inspector, ${on.toFixed(0)} with`)
    t.ok(on - off < RING.bytes / MIB + NOISE, `${(on - off).toFixed(0)} MiB more`)
  })

/** MiB that a process holds after the calls, when its garbage is collected. */
function heldBy(lane: string, way: Parameters<typeof wayName>[1]): Promise<number> {
  const candidate = candidates.find(({ name }) => name === wayName(lane, way)) as Candidate
  return withPeers([candidate], async (generator, ports, started) => {
    const port = ports.get(candidate.server) as number
    const running = await launch(candidate, port, { redis: undefined }, COLLECTING)
    for (const child of [running.process, running.reader]) if (child) started.unshift(child)
    const job = await jobFor(running, large as NonNullable<typeof large>)
    const ready = { ...running, job, windows: [] }
    await load(generator, ready, { connections: 8, milliseconds: PATIENCE, requests: CALLS })
    let least = Number.POSITIVE_INFINITY
    for (let i = 0; i < LOOKS; i++)
      least = Math.min(least, (await restingMemory(running.process as ChildProcess, PAUSE)) ?? Number.NaN)
    return least
  })
}
