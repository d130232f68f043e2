/** What of all lanes and scenarios a run measures, how thoroughly, and about how long that takes. */
import { beforeName, type Candidate, candidates } from './candidates.js'
import type { IdlePace } from './idle.js'
import type { Pace } from './measure.js'
import { peers } from './peers.js'
import type { ProfilePace } from './profile.js'
import { type Scenario, type Size, scenarios } from './scenarios.js'

export interface RunPace extends Pace {
  /**
   * Where ways to configure the bridge are compared: they differ by few percent, and code that is still being compiled
   * costs more than that.
   */
  ways: Pace
  starts: number
  idle: IdlePace
  profile: ProfilePace
  /** Numbers of replicas, one after the other. */
  replicas: readonly number[]
}

export interface Part {
  scenario: Scenario
  connections: readonly number[]
  among: Candidate[]
}

/** What a user asks for. Texts select whatever has them in its name; none selects all. */
export interface Wish {
  size: Size
  scenarios: readonly string[]
  lanes: readonly string[]
  connections: readonly number[]
  peers: boolean
  /** A further Node.js: only what is measured on each. */
  further?: boolean
}

export const PACES: Readonly<Record<Size, RunPace>> = {
  // Until it is compiled, code takes several times the CPU, and compiling takes place on the same core. After 1.5 seconds, a
  // translated call cost 1.38 of the pass-through; after 6, 0.75.
  quick: {
    rounds: 4,
    window: 200,
    warmUp: 500,
    lives: 1,
    ways: { rounds: 4, window: 300, warmUp: 1_000, lives: 1 },
    starts: 2,
    idle: { sessions: 200, pause: 1_000 },
    profile: { windows: 3, window: 1_000, warmUp: 1_000 },
    replicas: [1, 2],
  },
  usual: {
    rounds: 4,
    window: 250,
    warmUp: 6_000,
    lives: 5,
    ways: { rounds: 4, window: 300, warmUp: 4_000, lives: 5 },
    starts: 9,
    idle: { sessions: 1_000, pause: 2_000 },
    profile: { windows: 5, window: 2_000, warmUp: 3_000 },
    replicas: [1, 2, 4],
  },
  all: {
    rounds: 8,
    window: 500,
    warmUp: 4_000,
    lives: 7,
    ways: { rounds: 8, window: 1_000, warmUp: 6_000, lives: 7 },
    starts: 15,
    idle: { sessions: 10_000, pause: 3_000 },
    profile: { windows: 9, window: 3_000, warmUp: 5_000 },
    replicas: [1, 2, 4],
  },
}

/** The lanes of the goals: the others are translated, passed on unchanged and written to pipes by the same code. */
const USUAL_LANES = [
  'modern-legacy-http',
  'legacy-modern-http',
  'legacy-legacy-http',
  'modern-modern-http',
  'modern-legacy-stdio',
  'legacy-modern-stdio',
]

/** Selects what is measured. Throws if that is nothing. */
export function select(wish: Wish): Part[] {
  const parts = scenarios
    .filter(({ name }) => matches(name, wish.scenarios))
    .filter(({ rare }) => !rare || wish.size === 'all' || wish.scenarios.length > 0)
    .filter(({ eachNode }) => eachNode || !wish.further)
    .map((scenario) => {
      const asksNothing = ['fresh', 'idle', 'replicas'].includes(scenario.kind)
      const own = scenario.connections[wish.size]
      const connections = wish.connections.length > 0 && !asksNothing ? wish.connections : own
      return { scenario, connections, among: amongOf(scenario, wish) }
    })
    .filter(({ among }) => among.some(({ kind }) => kind !== 'control'))
  if (parts.length === 0) throw new Error('Nothing is selected: see npm run bench -- --help')
  return parts
}

/** The names of all lanes. */
export function laneNames(): string[] {
  return [...candidates, ...peers]
    .filter(({ kind, way }) => kind !== 'control' && way === undefined)
    .map(({ name }) => name)
}

function amongOf(scenario: Scenario, { size, lanes, peers: others }: Wish): Candidate[] {
  const few = size === 'quick' || (size === 'usual' && scenario.name !== 'small')
  const wanted = lanes.length === 0 && few ? (scenario.lanes ?? USUAL_LANES) : lanes
  const asksPeers = others && scenario.peers !== undefined && (lanes.length > 0 || scenario.peers.includes(size))
  const some = (asksPeers ? [...candidates, ...peers] : candidates)
    .filter((candidate) => takesPart(candidate, scenario, size))
    .filter(
      ({ kind, name }) => kind === 'control' || matches(name.replace(/, .*/, ''), kind === 'peer' ? lanes : wanted),
    )
  // Nothing is compared with a control of an era that no lane has.
  return some.filter(
    (one) =>
      one.kind !== 'control' ||
      some.some(
        ({ kind, client, server }) => kind !== 'control' && (scenario.kind === 'idle' ? client : server) === one.server,
      ),
  )
}

function takesPart(candidate: Candidate, scenario: Scenario, size: Size): boolean {
  const { kind, way, bare, pipe, proxy, idle, client, server, transport } = candidate
  const { ways, translated } = scenario
  if (translated && kind === 'bridge' && client === server) return false
  if (size !== 'all' && scenario.further?.some((one) => one === way)) return false
  if (kind === 'bridge' && (way === undefined ? ways !== undefined : !ways?.includes(way))) return false
  // Calls of modern clients that pass unchanged have nothing that replicas share.
  if (scenario.kind === 'replicas')
    return kind === 'bridge' && transport === 'http' && (client === 'legacy' || server === 'legacy')
  // Ways are compared with each other.
  if (ways && kind === 'control') return false
  if (scenario.kind === 'idle') return idle ?? false
  if (scenario.kind === 'fresh') return !bare && (pipe || proxy !== undefined)
  // At half its rate, the server itself would be slowed down by the load generator, which is on its core.
  if (scenario.kind === 'open') return !bare && proxy !== undefined
  return !bare && !pipe
}

function matches(name: string, texts: readonly string[]): boolean {
  return texts.length === 0 || texts.some((text) => name.includes(text))
}

/** The pace of a scenario. */
export function paceOf({ ways, window }: Scenario, pace: RunPace): Pace {
  return ways ? { ...pace.ways, window: window ?? pace.ways.window } : pace
}

/**
 * What is measured side by side. Ways to configure a lane are compared with each other only, so lanes take turns: a process
 * that does nothing for minutes may lose its memory, and is slow after that.
 */
export function groupsOf({ ways }: Scenario, among: readonly Candidate[]): Candidate[][] {
  if (!ways) return [[...among]]
  const laneOf = ({ name }: Candidate) => name.replace(beforeName(''), '').replace(/, .*/, '')
  const lanes = new Set(among.filter(({ kind }) => kind !== 'control').map(laneOf))
  return [...lanes].map((lane) => {
    const own = among.filter((one) => laneOf(one) === lane)
    const server = own[0]?.server
    return among.filter((one) => own.includes(one) || (one.kind === 'control' && one.server === server))
  })
}

/** Milliseconds that processes take to start, and sessions to be opened and closed, on a usual machine. */
const START = 500
const SESSION = 4

/** Seconds that a selection takes, roughly. `builds` is how many builds of the bridge are measured. */
export function secondsFor(parts: readonly Part[], pace: RunPace, builds = 1): number {
  const milliseconds = parts.map(({ scenario, connections, among }) => {
    const { kind } = scenario
    const all = groupsOf(scenario, among).flat()
    const { starts, idle, replicas } = pace
    const { rounds, window, warmUp, lives } = kind === 'replicas' ? pace : paceOf(scenario, pace)
    const count = all.reduce((sum, one) => sum + (one.kind === 'bridge' ? builds : 1), 0)
    if (kind === 'fresh') return count * (starts + 1) * 2 * START
    if (kind === 'idle') return count * (START + 4 * idle.pause + idle.sessions * SESSION)
    if (kind === 'replicas') {
      // Two ways of each lane. Calls of sessions are measured twice: with affinity and without.
      const started = 1 + replicas.reduce((sum, one) => sum + one, 0)
      const calls = started * (START + 2 * warmUp) + 2 * replicas.length * rounds * window
      return (count / 2) * (calls + replicas.length * (START + 4 * idle.pause + idle.sessions * SESSION))
    }
    const windows = connections.length * rounds * (kind === 'open' ? 2 * window : window)
    return count * lives * (START + warmUp * (kind === 'open' ? 2 : 1) + windows)
  })
  return milliseconds.reduce((sum, one) => sum + one, 0) / 1000
}
