/** What the bridge is to reach, row by row. */
import { yardsticks } from './candidates.js'
import type { Idle } from './idle.js'
import type { Block, Cell } from './measure.js'
import { signInGoals } from './sign-in.js'
import type { StartUp } from './start-up.js'

/** All that a run has measured. */
export interface Measured {
  blocks: Block[]
  startUp: StartUp[]
  idle: Idle[]
}

export interface Verdict {
  goal: string
  /** Undefined where it could not be measured. */
  figure: number | undefined
  met: boolean | undefined
}

export interface Goal {
  goal: string
  figure: (measured: Measured) => number | undefined
  limit: { most: number } | { least: number }
}

const goals: readonly Goal[] = [
  {
    goal: 'small call, http, 64 connections: at most 100 µs of CPU',
    figure: cell('tools/call, small', 64, 'bridge, http', ({ cpu }) => cpu),
    limit: { most: 100 },
  },
  {
    goal: 'small call, stdio, 64 connections: at most 80 µs of CPU',
    figure: cell('tools/call, small', 64, 'bridge, stdio', ({ cpu }) => cpu),
    limit: { most: 80 },
  },
  {
    goal: 'small call, legacy to modern, 64 connections: at most 100 µs of CPU',
    figure: cell('tools/call, small', 64, 'bridge, legacy to modern', ({ cpu }) => cpu),
    limit: { most: 100 },
  },
  ...['modern to modern', 'legacy to legacy'].flatMap((pair): Goal[] => [
    {
      goal: `small call, ${pair}, 64 connections: at least 0.85 of the pass-through’s throughput`,
      figure: cell('tools/call, small', 64, `bridge, ${pair}`, ({ ratios }) => ratios.rate),
      limit: { least: 0.85 },
    },
    {
      goal: `1 MiB of text, ${pair}: at least 0.85 of the pass-through’s throughput`,
      figure: cell('tools/call, 1 MiB of text', 8, `bridge, ${pair}`, ({ ratios }) => ratios.rate),
      limit: { least: 0.85 },
    },
  ]),
  {
    goal: 'small call, http, 64 connections: at least 0.5 of the pass-through’s throughput',
    figure: cell('tools/call, small', 64, 'bridge, http', ({ ratios }) => ratios.rate),
    limit: { least: 0.5 },
  },
  {
    goal: 'list, http, 64 connections: at least 0.5 of the pass-through’s throughput',
    figure: cell('tools/list, 20 tools', 64, 'bridge, http', ({ ratios }) => ratios.rate),
    limit: { least: 0.5 },
  },
  {
    goal: '1 MiB of text, http: at most 1.3 times the pass-through’s CPU',
    figure: cell('tools/call, 1 MiB of text', 8, 'bridge, http', ({ ratios }) => ratios.cpu),
    limit: { most: 1.3 },
  },
  ...['http', 'stdio', 'legacy to modern', 'modern to modern'].map(
    (pair): Goal => ({
      goal: `small call, ${pair}, with metrics and Redis: at most 1.1 times the CPU without`,
      figure: (measured) => {
        const cpuOf = (what: string) =>
          cell('tools/call, small', 64, `bridge, ${pair}, ${what}`, ({ cpu }) => cpu)(measured)
        const [all, bare] = [cpuOf('metrics and Redis'), cpuOf('bare')]
        return all === undefined || bare === undefined ? undefined : all / bare
      },
      limit: { most: 1.1 },
    }),
  ),
  {
    goal: 'start-up, http: at most 100 ms longer than the pass-through',
    figure: startsLater('bridge, http'),
    limit: { most: 100 },
  },
  {
    goal: 'start-up, stdio: at most 100 ms longer, the start of its server included',
    figure: startsLater('bridge, stdio'),
    limit: { most: 100 },
  },
  ...['legacy to modern', 'legacy to legacy'].map(
    (pair): Goal => ({
      goal: `idle session, ${pair}: at most 25 KiB`,
      figure: idle(`bridge, ${pair}`),
      limit: { most: 25 },
    }),
  ),
  ...signInGoals,
]

export function judge(measured: Measured): Verdict[] {
  return goals.map(({ goal, figure: of, limit }) => {
    const figure = of(measured)
    if (figure === undefined) return { goal, figure, met: undefined }
    return { goal, figure, met: 'most' in limit ? figure <= limit.most : figure >= limit.least }
  })
}

function cell(scenario: string, connections: number, candidate: string, of: (cell: Cell) => number | undefined) {
  return ({ blocks }: Measured) => {
    const block = blocks.find((one) => one.scenario === scenario && one.connections === connections)
    const found = block?.cells.find((one) => one.candidate === candidate)
    return found && of(found)
  }
}

function startsLater(candidate: string) {
  return ({ startUp }: Measured) => {
    const [base, own] = [yardsticks.legacy, candidate].map((name) => startUp.find((one) => one.candidate === name))
    return base && own && own.median - base.median
  }
}

function idle(candidate: string) {
  return ({ idle: all }: Measured) => all.find((one) => one.candidate === candidate)?.kib
}
