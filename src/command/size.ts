/** `mcp-bridge size`: how many replicas a load needs, and with how much CPU, memory and Redis. Computes from measured figures. */

/** What the replicas have to carry together, at the busiest time. */
export interface Load {
  /** Calls per second. */
  calls: number
  /** Sessions of legacy clients. */
  sessions: number
  /** Open event streams. */
  streams: number
  /** Calls that wait for an answer of a person. */
  parked: number
  /** Share of the calls that come to another replica than the one that has their session; undefined without affinity. */
  forwarded: number | undefined
}

interface Sizing {
  replicas: number
  /** Why there are not fewer. */
  because: Need
  /** Of each replica. */
  each: { cores: number; mebibytes: number; sessions: number; connections: number }
  /** Share of the calls that are forwarded. */
  forwarded: number
  redis: { perSecond: number; mebibytes: number }
  /** What Redis has to do besides with limits on rates: one command for each call. */
  redisWithLimits: number
}

/** What decides how many replicas there are. */
type Need = 'cpu' | 'memory' | 'sessions' | 'connections' | 'one can stop'

/** Figures of one replica on Node.js 24, as docs/replicas.md has them (Sizing). Another machine has others. */
export const FIGURES = {
  /** Microseconds of CPU for a small translated call over HTTP. */
  call: 55,
  /** CPU of a forwarded call, as a multiple. */
  forwarded: 2,
  /** Share of a core that is planned for, so that others can take over. */
  busy: 0.65,
  /** MiB before there are sessions. */
  base: 120,
  /** KiB of a session, of its open stream, and of a parked call. */
  session: 16,
  stream: 20,
  parked: 20,
  /** MiB that a replica may use: three quarters of 1 GiB, the limit of the chart. */
  memory: 768,
  /** Default bounds of a replica: `limits.clientSessions`, `limits.connections`. */
  sessions: 10_000,
  connections: 12_000,
  /** Seconds that a call keeps its connection. */
  seconds: 0.5,
  /** Commands of one replica per second in Redis, to renew its address. */
  renewals: 1,
  /** Bytes of a session in Redis. */
  record: 600,
  /** Most commands that one Redis answers per second. */
  redis: 100_000,
} as const

const KIB = 1024

/** The smallest number of replicas that carries a load even while one of them is stopped. */
export function sizeOf(load: Load): Sizing {
  let [serving, because] = fewest(load, 1)
  // More replicas forward more, which may need more replicas.
  for (;;) {
    const [next, why] = fewest(load, serving + 1)
    if (next <= serving) break
    serving = next
    because = why
  }
  const replicas = serving + 1
  const forwarded = shareForwarded(load, replicas)
  return {
    replicas,
    because: serving === 1 ? 'one can stop' : because,
    each: {
      cores: coresFor(load, forwarded) / serving,
      mebibytes: FIGURES.base + memoryFor(load) / serving,
      sessions: Math.ceil(load.sessions / serving),
      connections: Math.ceil(connectionsFor(load) / serving),
    },
    forwarded,
    redis: { perSecond: replicas * FIGURES.renewals, mebibytes: (load.sessions * FIGURES.record) / KIB / KIB },
    redisWithLimits: load.calls,
  }
}

/** The fewest replicas that carry a load, and why. `among`: the number over which calls are spread. */
function fewest(load: Load, among: number): [number, Need] {
  const needs: [number, Need][] = [
    [coresFor(load, shareForwarded(load, among)) / FIGURES.busy, 'cpu'],
    [memoryFor(load) / (FIGURES.memory - FIGURES.base), 'memory'],
    [load.sessions / FIGURES.sessions, 'sessions'],
    [connectionsFor(load) / FIGURES.connections, 'connections'],
  ]
  const [count, need] = needs.reduce((most, one) => (one[0] > most[0] ? one : most))
  return [Math.max(1, Math.ceil(count)), need]
}

/** Without affinity, calls come to any replica. */
function shareForwarded({ forwarded, sessions }: Load, replicas: number): number {
  return forwarded ?? (sessions === 0 ? 0 : (replicas - 1) / replicas)
}

function coresFor({ calls }: Load, forwarded: number): number {
  return (calls * FIGURES.call * (1 + forwarded * (FIGURES.forwarded - 1))) / 1_000_000
}

/** MiB of all replicas together, without what each needs itself. */
function memoryFor({ sessions, streams, parked }: Load): number {
  return (sessions * FIGURES.session + streams * FIGURES.stream + parked * FIGURES.parked) / KIB
}

function connectionsFor({ calls, streams }: Load): number {
  return streams + calls * FIGURES.seconds
}

const REASONS: Readonly<Record<Need, string>> = {
  cpu: 'the CPU of calls: one replica uses one core',
  memory: 'the memory of sessions and streams',
  sessions: `the bound of ${FIGURES.sessions.toLocaleString('en')} sessions of each server (limits.clientSessions)`,
  connections: `the bound of ${FIGURES.connections.toLocaleString('en')} connections (limits.connections)`,
  'one can stop': 'one is enough, and another has to be there when it stops',
}

/** A sizing for people. */
export function sizingInWords(sizing: Sizing): string {
  const { replicas, because, each, forwarded, redis, redisWithLimits } = sizing
  const number = (value: number) => Math.ceil(value).toLocaleString('en')
  const memory = Math.ceil(each.mebibytes / 64) * 64
  const rows: [string, string][] = [
    ['replicas', `${number(replicas)}, of which one may be stopped at any time`],
    ['decided by', REASONS[because]],
    ['CPU of each', `${each.cores.toFixed(2)} cores at the busiest time`],
    [
      'memory of each',
      `${number(memory)} MiB, with ${number(each.sessions)} sessions and ${number(each.connections)} connections`,
    ],
    ['forwarded', `${Math.round(forwarded * 100)} % of the calls of sessions go on to another replica`],
    [
      'Redis',
      `${number(redis.perSecond)} commands per second, ${number(redis.mebibytes)} MiB; with limits on rates ${number(redisWithLimits)} more commands`,
    ],
  ]
  const width = Math.max(...rows.map(([name]) => name.length))
  const table = rows.map(([name, text]) => `  ${name.padEnd(width)}  ${text}\n`).join('')
  const chart = [
    `replicaCount: ${replicas}`,
    'resources:',
    `  requests: { cpu: ${Math.max(50, Math.ceil((each.cores * 1_000) / 50) * 50)}m, memory: ${memory}Mi }`,
    `  limits: { memory: ${Math.ceil((memory * 4) / 3 / 64) * 64}Mi }`,
  ]
  const over =
    redis.perSecond + redisWithLimits > FIGURES.redis
      ? 'With limits on rates, one Redis is not enough: use a Cluster.\n'
      : ''
  return `${table}${over}\nFor the Helm chart:\n${chart.map((line) => `  ${line}\n`).join('')}\nThe figures are of small calls on one machine: measure yours with "npm run bench -- --scenario replicas".\n`
}
