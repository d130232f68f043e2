/** What replicas cost: bridges that share a Redis, called at the replica that owns a session or at another one. */
import type { ChildProcess } from 'node:child_process'
import { type Candidate, launch, type Running, startServer } from './candidates.js'
import { COLLECTING, close, type IdlePace, openMany, REHEARSAL, restingMemory, type Session } from './idle.js'
import { jobFor, load, type Pace, type Ready, rotated, withPeers } from './measure.js'
import { cpuOf, end, type Redis } from './processes.js'
import { smallCall } from './scenarios.js'
import { ratioOf, type Spread, spreadOf } from './statistics.js'

export interface Replicas {
  calls: ReplicaCalls[]
  memory: ReplicaMemory[]
}

interface ReplicaCalls {
  lane: string
  how: string
  replicas: number
  /** Calls per second of all replicas together. */
  rate: number | undefined
  /** Microseconds of CPU of all replicas together per call. */
  cpu: Spread | undefined
  /** The same as a multiple of one bridge without Redis in the same round. */
  ratio: Spread | undefined
  /** Microseconds of CPU of Redis per call. */
  redis: number | undefined
}

interface ReplicaMemory {
  lane: string
  replicas: number
  /** In all replicas together. */
  sessions: number
  /** MiB of one replica before the sessions were opened. */
  before: number | undefined
  /** KiB that each session adds. */
  kib: number | undefined
}

/** Several replicas that are called in one way. */
interface Group {
  how: string
  running: Running[]
  job: Ready['job']
  windows: { rate: number; cpu: number | undefined; redis: number | undefined }[]
}

interface ReplicasPace extends Pace {
  idle: IdlePace
  replicas: readonly number[]
}

/** Connections to each replica. */
export const PER_REPLICA = 16
/** Calls per millisecond of one replica before anything counts. */
const WARM_UP_RATE = 3
const KIB_OF_MIB = 1024

/** Measures one lane after the other: calls, and memory where clients have sessions. Rejects at the first wrong answer. */
export async function measureReplicas(among: readonly Candidate[], pace: ReplicasPace, redis: Redis) {
  const results: Replicas = { calls: [], memory: [] }
  for (const candidate of among.filter(({ way }) => way === 'replica')) {
    const { client, server, bridge } = candidate
    const alone = among.find(
      (one) => one !== candidate && one.client === client && one.server === server && one.bridge === bridge,
    )
    if (alone) results.calls.push(...(await measureCalls(candidate, alone, pace, redis)))
    if (client === 'legacy')
      for (const count of pace.replicas) results.memory.push(await measureMemory(candidate, count, pace.idle, redis))
  }
  return results
}

function measureCalls(candidate: Candidate, alone: Candidate, pace: ReplicasPace, redis: Redis) {
  return withPeers([candidate], async (generator, ports, started): Promise<ReplicaCalls[]> => {
    const groups: Group[] = []
    const window = (group: Group, amount: { milliseconds: number; requests?: number }) =>
      measureWindow(generator, group, amount, redis.process)
    for (const [one, count] of [[alone, 1] as const, ...pace.replicas.map((count) => [candidate, count] as const)]) {
      const running = await launchMany(one, count, ports.get(one.server) as number, redis, [], started)
      for (const [how, forwarded] of waysToCall(one, count)) {
        const group: Group = { how, running, job: await jobOf(running, forwarded), windows: [] }
        // Code is compiled after so many calls, which take longer where others use the machine too.
        const milliseconds = pace.warmUp * count
        await window(group, { milliseconds: 2 * milliseconds, requests: milliseconds * WARM_UP_RATE })
        groups.push(group)
      }
    }
    for (let round = 0; round < pace.rounds; round++)
      for (const group of rotated(groups, round)) group.windows.push(await window(group, { milliseconds: pace.window }))
    const cpuIn = ({ windows }: Group) => windows.map(({ cpu }) => cpu)
    return groups.map((group) => ({
      lane: laneOf(candidate),
      how: group.how,
      replicas: group.running.length,
      rate: spreadOf(group.windows.map(({ rate }) => rate))?.median,
      cpu: spreadOf(cpuIn(group)),
      ratio: ratioOf(cpuIn(group), cpuIn(groups[0] as Group)),
      redis: spreadOf(group.windows.map(({ redis }) => redis))?.median,
    }))
  })
}

/** Which share of the calls goes to another replica than the one where their session was opened. */
function waysToCall({ client, server, way }: Candidate, count: number): [how: string, forwarded: number][] {
  if (way !== 'replica') return [['without Redis', 0]]
  if (client === 'modern') return [['any replica', 0]]
  const affinity: [string, number] = ['with affinity', 0]
  if (count === 1) return [affinity]
  const all: [string, number] = ['at another replica', 1]
  // A direct session over HTTP belongs to no replica, so nothing is forwarded.
  return server === 'legacy'
    ? [affinity, all]
    : [affinity, ['half at another replica', 0.5], ['90 % at another replica', 0.9], all]
}

/** The question of each connection, in a session of its own where clients have sessions. */
async function jobOf(running: readonly Running[], forwarded: number): Promise<Ready['job']> {
  const jobs: Ready['job'][] = []
  for (let connection = 0; connection < running.length * PER_REPLICA; connection++) {
    // Spread over the connections of each replica.
    const round = Math.floor(connection / running.length)
    const shift = Math.floor((round + 1) * forwarded) > Math.floor(round * forwarded) ? 1 : 0
    const [owner, called] = [connection, connection + shift].map((at) => running[at % running.length] as Running)
    jobs.push(await jobFor(owner as Running, smallCall, called?.port))
  }
  return { ...(jobs[0] as Ready['job']), targets: jobs.flatMap(({ targets }) => targets) }
}

async function measureWindow(
  generator: ChildProcess,
  { running, job }: Group,
  amount: { milliseconds: number; requests?: number },
  redis: ChildProcess,
) {
  const cpu = () => sumOf(running.map(({ process }) => process && cpuOf(process)))
  const [before, redisBefore] = [cpu(), cpuOf(redis)]
  // What the processes use is counted here, for all of them.
  const ready = { ...(running[0] as Running), process: undefined, job, windows: [] }
  const { rate, requests } = await load(generator, ready, { connections: job.targets.length, ...amount })
  const each = (from: number | undefined, to: number | undefined) => perOne(from, to, requests)
  return { rate, cpu: each(before, cpu()), redis: each(redisBefore, cpuOf(redis)) }
}

async function measureMemory(candidate: Candidate, count: number, { sessions, pause }: IdlePace, redis: Redis) {
  const server = await startServer(candidate.server)
  const started: ChildProcess[] = []
  const open: Session[] = []
  try {
    const running = await launchMany(candidate, count, server.port, redis, COLLECTING, started)
    const memory = async () => sumOf(await Promise.all(started.map((process) => restingMemory(process, pause))))
    const share = Math.floor(sessions / count)
    for (const { port } of running) await close(port, await openMany(candidate.client, port, REHEARSAL))
    const before = await memory()
    for (const { port } of running) open.push(...(await openMany(candidate.client, port, share)))
    const kib = perOne(before, await memory(), open.length / KIB_OF_MIB)
    const each = before === undefined ? undefined : before / count
    return { lane: laneOf(candidate), replicas: count, sessions: open.length, before: each, kib }
  } finally {
    for (const { stream } of open) stream.destroy()
    for (const child of [...started, server.process]) await end(child)
  }
}

/** Starts so many replicas, and puts their processes to those that are ended later. */
async function launchMany(
  candidate: Candidate,
  count: number,
  server: number,
  { url }: Redis,
  node: readonly string[],
  started: ChildProcess[],
): Promise<Running[]> {
  const all: Running[] = []
  while (all.length < count) {
    const running = await launch(candidate, server, { redis: url }, node)
    if (running.process) started.unshift(running.process)
    all.push(running)
  }
  return all
}

function laneOf({ name }: Candidate): string {
  return name.replace(/, .*/, '')
}

function sumOf(figures: readonly (number | undefined)[]): number | undefined {
  return figures.reduce((sum, one) => (sum === undefined || one === undefined ? undefined : sum + one), 0)
}

function perOne(before: number | undefined, after: number | undefined, count: number): number | undefined {
  return before === undefined || after === undefined ? undefined : (after - before) / count
}
