/** What the bridge is to reach, row by row: a limit for a ratio to the pass-through, or for a difference. */
import { bareProgram, type Way, wayName, yardstick } from './candidates.js'
import type { Cell, Figures } from './measure.js'
import type { Era } from './questions.js'
import type { Results } from './results.js'
import { ratioOf, type Spread, spreadOf } from './statistics.js'

export interface Verdict {
  goal: string
  limit: { most: number } | { least: number }
  unit: string
  /** Undefined where it was not measured. */
  figure: number | undefined
  /** Quartiles, where there are several lives. */
  spread: Spread | undefined
  reached: boolean | undefined
}

type Measured = Pick<Results, 'about' | 'blocks' | 'fresh' | 'idle'>

interface Goal {
  goal: string
  limit: Verdict['limit']
  /** The limit on Node.js 20, if it is another one. */
  limitOn20?: Verdict['limit']
  unit: '×' | 'ms' | 'µs' | 'KiB'
  figure: (measured: Measured) => Spread | number | undefined
}

const TRANSLATED = ['modern-legacy-http', 'legacy-modern-http']
const SAME_ERA = ['legacy-legacy-http', 'modern-modern-http']
const HTTP = [...TRANSLATED, ...SAME_ERA]
const STDIO = ['modern-legacy-stdio', 'legacy-modern-stdio']

const WORDS: Partial<Record<keyof Figures, string>> = { cpu: 'CPU', rate: 'throughput', p50: 'median latency' }

const goals: readonly Goal[] = [
  ...TRANSLATED.map((lane) => ratio('small', 64, lane, 'cpu', { most: 0.65 }, { most: 0.9 })),
  ...SAME_ERA.map((lane) => ratio('small', 64, lane, 'cpu', { most: 0.55 }, { most: 0.75 })),
  ...STDIO.map((lane) => ratio('small', 64, lane, 'cpu', { most: 0.35 }, { most: 0.45 })),
  ...[...HTTP, ...STDIO].map((lane) => ratio('small', 16, lane, 'cpu', { most: 0.75 }, { most: 0.95 })),
  ...HTTP.map((lane) => ratio('small', 1, lane, 'p50', { most: 1 })),
  ...['text', 'event', 'image'].flatMap((scenario) =>
    [...HTTP, ...STDIO].flatMap((lane) => [
      ratio(scenario, 8, lane, 'cpu', { most: 1.1 }),
      ratio(scenario, 8, lane, 'rate', { least: 0.9 }),
    ]),
  ),
  ...[...HTTP, ...STDIO].map(
    (lane): Goal => ({
      goal: `small, 64 connections, ${lane}: CPU with metrics, Redis and a log line for each call, against without`,
      limit: { most: 1.08 },
      unit: '×',
      figure: cpuOver('extras', lane, 'extras on', 'extras off'),
    }),
  ),
  ...TRANSLATED.map(
    (lane): Goal => ({
      goal: `audit, 64 connections, ${lane}: CPU with a line of the audit log, against without`,
      limit: { most: 1.03 },
      unit: '×',
      figure: cpuOver('audit', lane, 'audit', 'plain'),
    }),
  ),
  {
    goal: 'issuers, 64 connections, modern-modern-http: CPU that a token takes that was checked before',
    limit: { most: 10 },
    unit: 'µs',
    figure: ({ blocks }) => {
      const cells = blocks.find(({ scenario }) => scenario === 'issuers')?.cells ?? []
      const [own, base] = (['issuers', 'plain'] as const).map((way) =>
        cellOf(cells, wayName('modern-modern-http', way)),
      )
      return (
        own &&
        base &&
        spreadOf(own.lives.map(({ cpu = Number.NaN }, life) => cpu - (base.lives[life]?.cpu ?? Number.NaN)))
      )
    },
  },
  ...['modern-legacy-http', 'modern-modern-http'].map(
    (lane): Goal => ({
      goal: `embedded, 64 connections, ${lane}: CPU of the plugin in a program, against the command`,
      limit: { most: 1.05 },
      unit: '×',
      figure: cpuOver('embedded', lane, 'in a program', 'plain'),
    }),
  ),
  ...[...HTTP, ...STDIO].flatMap((lane) => [
    inspected(lane, 'with the metadata of an inspector', 'metadata', { most: 1.03 }),
    inspected(lane, 'with all payloads kept and events read', 'payloads, watched', { most: 1.1 }),
  ]),
  ...TRANSLATED.flatMap((lane): Goal[] => [
    {
      goal: `group, 64 connections, ${lane}: CPU of a call through a group, against the endpoint of its server`,
      limit: { most: 1.05 },
      unit: '×',
      figure: cpuOver('group', lane, 'in a group', 'alone'),
    },
    {
      goal: `group-list, 64 connections, ${lane}: CPU of ten cached lists of 20 tools, against one of 200`,
      limit: { most: 1.5 },
      unit: '×',
      figure: cpuOver('group-list', lane, 'ten lists of 20', 'one list of 200'),
    },
  ]),
  ...HTTP.map(
    (lane): Goal => ({
      goal: `start, ${lane}: later than the pass-through`,
      limit: { most: 20 },
      unit: 'ms',
      figure: startsLater(lane, yardstick(serverOf(lane))),
    }),
  ),
  ...STDIO.map(
    (lane): Goal => ({
      goal: `start, ${lane}: later than the program started directly`,
      limit: { most: 100 },
      unit: 'ms',
      figure: startsLater(lane, bareProgram(serverOf(lane))),
    }),
  ),
  ...['legacy-legacy-http', 'legacy-modern-http'].map(
    (lane): Goal => ({
      goal: `idle session, ${lane}: memory beyond bare sockets`,
      limit: { most: 16 },
      unit: 'KiB',
      figure: ({ idle }) => idle.find(({ candidate }) => candidate === lane)?.beyond,
    }),
  ),
  ...HTTP.map(
    (lane): Goal => ({
      goal: `sign-in, 64 connections, ${lane}: CPU with a stored token, against without`,
      limit: { most: 1.02 },
      unit: '×',
      figure: cpuOver('sign-in', lane, 'stored token', 'no token'),
    }),
  ),
  ...HTTP.map(
    (lane): Goal => ({
      goal: `sign-in, 64 connections, ${lane}: CPU where nobody has signed in, against sign-in off`,
      limit: { most: 1.02 },
      unit: '×',
      figure: cpuOver('sign-in', lane, 'no token', 'sign-in off'),
    }),
  ),
  ...HTTP.map(
    (lane): Goal => ({
      goal: `start, ${lane}: later with a stored token than without`,
      limit: { most: 5 },
      unit: 'ms',
      figure: startsLater(wayName(lane, 'stored token'), wayName(lane, 'no token')),
    }),
  ),
]

/** Compares what was measured with all goals. */
export function judge(measured: Measured): Verdict[] {
  const on20 = measured.about.node.startsWith('v20.')
  return goals.map(({ goal, figure: of, limit: usual, limitOn20 = usual, unit }) => {
    const limit = on20 ? limitOn20 : usual
    const found = of(measured)
    const spread = typeof found === 'object' ? found : undefined
    const figure = typeof found === 'object' ? found.median : found
    const reached = figure === undefined ? undefined : 'most' in limit ? figure <= limit.most : figure >= limit.least
    return { goal, limit, unit, figure, spread, reached }
  })
}

function ratio(
  scenario: string,
  connections: number,
  lane: string,
  of: keyof Figures,
  limit: Goal['limit'],
  limitOn20 = limit,
): Goal {
  const count = `${connections} ${connections === 1 ? 'connection' : 'connections'}`
  return {
    goal: `${scenario}, ${count}, ${lane}: ${WORDS[of]} against the pass-through`,
    limit,
    limitOn20,
    unit: '×',
    figure: ({ blocks }) => {
      const block = blocks.find((one) => one.scenario === scenario && one.connections === connections)
      return cellOf(block?.cells ?? [], lane)?.ratios[of]
    },
  }
}

function inspected(lane: string, what: string, way: Way, limit: Goal['limit']): Goal {
  const goal = `small, 64 connections, ${lane}: CPU ${what}, against without`
  return { goal, limit, unit: '×', figure: cpuOver('inspect', lane, way, 'no inspector') }
}

/** CPU of a lane that is configured in one way, against the other way. */
function cpuOver(scenario: string, lane: string, way: Way, base: Way): Goal['figure'] {
  return ({ blocks }) => {
    const cells = blocks.find((one) => one.scenario === scenario && one.connections === 64)?.cells ?? []
    const [own, other] = [way, base].map((one) => cellOf(cells, wayName(lane, one)))
    const cpu = (cell: Cell) => cell.lives.map((life) => life.cpu)
    return own && other && ratioOf(cpu(own), cpu(other))
  }
}

function cellOf(cells: readonly Cell[], candidate: string): Cell | undefined {
  return cells.find((one) => one.candidate === candidate)
}

/** The difference of the medians. */
function startsLater(lane: string, base: string): Goal['figure'] {
  return ({ fresh }) => {
    const [own, other] = [lane, base].map((name) => fresh.find(({ candidate }) => candidate === name)?.start?.median)
    return own === undefined || other === undefined ? undefined : own - other
  }
}

function serverOf(lane: string): Era {
  return lane.includes('-modern-') ? 'modern' : 'legacy'
}
