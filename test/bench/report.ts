/** The figures of a run as tables. */
import { beforeName } from './candidates.js'
import type { Fresh } from './fresh.js'
import type { Verdict } from './goals.js'
import type { Idle } from './idle.js'
import type { Block, Cell, Figures } from './measure.js'
import type { Profile, Share } from './profile.js'
import { DIRECT, type Published, SERVERS, SESSIONS } from './published.js'
import { PER_REPLICA, type Replicas } from './replicas.js'
import type { About, Results } from './results.js'
import { scenarios } from './scenarios.js'
import { ratioOf } from './statistics.js'
import { shown, spread, type Table } from './tables.js'

const COLUMNS: readonly [title: string, text: (cell: Cell) => string][] = [
  ['', ({ candidate }) => candidate],
  ['calls/s', ({ figures }) => shown(figures.rate, 0)],
  ['p50 ms', ({ figures }) => shown(figures.p50)],
  ['p99 ms', ({ figures }) => shown(figures.p99)],
  ['CPU µs', ({ figures }) => shown(figures.cpu, 1)],
  ['busy %', ({ figures: { busy } }) => shown(busy && busy * 100, 0)],
  ['RSS MiB', ({ memory }) => shown(memory, 0)],
  ['rate ×', ({ ratios }) => spread(ratios.rate)],
  ['p50 ×', ({ ratios }) => spread(ratios.p50)],
  ['CPU ×', ({ ratios }) => spread(ratios.cpu)],
]

/** One scenario over so many connections, a line per candidate. */
export function blockTable({ scenario, connections, cells, failed }: Block): Table {
  return {
    title: `${scenario}, ${connections} ${connections === 1 ? 'connection' : 'connections'}`,
    rows: [COLUMNS.map(([heading]) => heading), ...cells.map((cell) => COLUMNS.map(([, text]) => text(cell)))],
    notes: failed.map(({ candidate, why }) => `Left out: ${candidate} (${why.slice(0, 160).replace(/\s+/g, ' ')})`),
  }
}

/** A figure of a cell, over the connections of one block. */
type Column = readonly [heading: string, block: Block, text: (cell: Cell) => string]

/** A scenario in short: CPU as multiples over all connections, and more figures of one of them. */
export function scenarioTable(blocks: readonly Block[]): Table {
  const reference = referenceOf(blocks)
  return columnTable(reference, [
    ...blocks.map((block): Column => [`CPU ×, ${block.connections}`, block, ({ ratios }) => spread(ratios.cpu)]),
    [`CPU µs, ${reference.connections}`, reference, ({ figures }) => shown(figures.cpu, 0)],
    ['calls/s', reference, ({ figures }) => shown(figures.rate, 0)],
    ['p50 ms', reference, ({ figures }) => shown(figures.p50)],
    ['p99 ms', reference, ({ figures }) => shown(figures.p99)],
  ])
}

/** A scenario for users: how long a call takes over the fewest connections, and what a proxy handles over many. */
export function summaryTable(blocks: readonly Block[]): Table {
  const many = referenceOf(blocks)
  const few = blocks[0] ?? many
  return columnTable(many, [
    [`p50 ms, ${few.connections}`, few, ({ figures }) => shown(figures.p50, 3)],
    [`CPU ×, ${many.connections}`, many, ({ ratios }) => spread(ratios.cpu)],
    ['CPU µs', many, ({ figures }) => shown(figures.cpu, 0)],
    ['calls/s', many, ({ figures }) => shown(figures.rate, 0)],
    ['p99 ms', many, ({ figures }) => shown(figures.p99)],
  ])
}

/** The block that has the figures of one number of connections: 64, where that was measured. */
function referenceOf(blocks: readonly Block[]): Block {
  return blocks.find(({ connections }) => connections === 64) ?? (blocks[0] as Block)
}

/** A line for each candidate of this block. */
function columnTable({ scenario, cells, failed }: Block, columns: readonly Column[]): Table {
  const rows = cells.map(({ candidate }) => [
    candidate,
    ...columns.map(([, block, text]) => {
      const cell = block.cells.find((one) => one.candidate === candidate)
      return cell ? text(cell) : shown(undefined)
    }),
  ])
  return {
    title: `${scenario}: ${scenarios.find(({ name }) => name === scenario)?.what ?? ''}`,
    rows: [['', ...columns.map(([heading]) => heading)], ...rows],
    notes: failed.map(({ candidate }) => `Left out, because it gave a wrong answer or none: ${candidate}.`),
  }
}

/** Latencies of an open loop, which count from the time at which a request was due. */
export function openTable({ connections, cells }: Block): Table {
  const windows = (cell: Cell, figure: 'p50' | 'p90' | 'p99') => shown(cell.figures[figure])
  return {
    title: `open: small calls at random times at half the highest rate, ${connections} connections`,
    rows: [
      ['', 'calls/s', 'p50 ms', 'p90 ms', 'p99 ms', 'CPU µs', 'p50 ×', 'p99 ×'],
      ...cells.map((cell) => [
        cell.candidate,
        shown(cell.offered, 0),
        windows(cell, 'p50'),
        windows(cell, 'p90'),
        windows(cell, 'p99'),
        shown(cell.figures.cpu, 1),
        spread(cell.ratios.p50),
        spread(cell.ratios.p99),
      ]),
    ],
  }
}

/** Figures of this build as multiples of those of another one, which was measured in the same rounds. */
export function againstTable({ blocks, fresh, idle }: Results, commit: string): Table {
  const cells = blocks.flatMap(({ scenario, connections, cells }) =>
    cells.flatMap((cell) => {
      const before = cells.find(({ candidate }) => candidate === beforeName(cell.candidate))
      if (before === undefined) return []
      const multiples = (figure: keyof Figures) => {
        const of = ({ lives }: Cell) => lives.map((life) => life[figure])
        return spread(ratioOf(of(cell), of(before)))
      }
      return [[`${scenario}, ${connections}: ${cell.candidate}`, multiples('cpu'), multiples('rate'), multiples('p50')]]
    }),
  )
  const medians = <T extends { candidate: string }>(
    what: string,
    all: readonly T[],
    of: (one: T) => number | undefined,
  ) =>
    all.flatMap((one) => {
      const before = all.find(({ candidate }) => candidate === beforeName(one.candidate))
      return before
        ? [[`${what}: ${one.candidate}`, shown((of(one) ?? Number.NaN) / (of(before) ?? Number.NaN)), '', '']]
        : []
    })
  const rows = [
    ...cells,
    ...medians('time to the first answer', fresh, ({ start }) => start?.median),
    ...medians('cold calls', fresh, ({ cpu }) => cpu?.median),
    ...medians('memory per idle session', idle, ({ kib }) => kib),
  ]
  return { title: `Multiples of ${commit}`, rows: [['', 'CPU or else ×', 'rate ×', 'p50 ×'], ...rows] }
}

/** Parts or files of one candidate that take most, down to a hundredth of its time. */
export function profileTable({ candidate, scenario, connections, cpu, files }: Profile): Table {
  const total = sumOf(files)
  const rows = files
    .filter(({ each }) => each.median >= total / 100)
    .map(({ part, each }) => [part, spread(each), shown((each.median / total) * 100, 1)])
  return {
    title: `${candidate}: ${scenario}, ${connections} connections, ${shown(total, 1)} µs a call in the main thread`,
    rows: [['', 'µs', '%'], ...rows],
    notes: [`CPU of all threads, with the profiler: ${spread(cpu, 1)} µs`],
  }
}

/** The parts of several candidates side by side. */
export function partsTable(profiles: readonly Profile[]): Table {
  const all = [...new Set(profiles.flatMap(({ parts }) => parts.map(({ part }) => part)))]
  const of = ({ parts }: Profile, name: string) => parts.find(({ part }) => part === name)?.each.median
  const largest = (name: string) => Math.max(...profiles.map((profile) => of(profile, name) ?? 0))
  const parts = all.filter((name) => largest(name) >= 0.5).sort((a, b) => largest(b) - largest(a))
  const [first] = profiles
  const { scenario, connections } = first ?? { scenario: '', connections: 0 }
  return {
    title: `Microseconds of a call by part: ${scenario}, ${connections} connections`,
    rows: [
      ['', ...profiles.map(({ candidate }) => candidate)],
      ...parts.map((name) => [name, ...profiles.map((profile) => shown(of(profile, name), 1))]),
      ['sum of the main thread', ...profiles.map((profile) => shown(sumOf(profile.parts), 1))],
      ['all threads, with the profiler', ...profiles.map(({ cpu }) => shown(cpu?.median, 1))],
    ],
  }
}

function sumOf(shares: readonly Share[]): number {
  return shares.reduce((sum, { each }) => sum + each.median, 0)
}

export function freshTable(all: readonly Fresh[]): Table {
  const rows = all.map(({ candidate, start, cpu, p50 }) => [candidate, spread(start, 0), spread(cpu, 0), spread(p50)])
  return {
    title: 'cold-start: from the start of the process to the first answer, and the first 200 calls one by one',
    rows: [['', 'first answer ms', 'CPU µs a cold call', 'p50 ms'], ...rows],
  }
}

export function idleTable(all: readonly Idle[]): Table {
  const rows = all.map(({ candidate, sessions, before, after, kib, beyond, heard, seconds }) => [
    candidate,
    String(sessions),
    shown(before, 1),
    shown(after, 1),
    shown(kib, 1),
    shown(beyond, 1),
    shown(heard, 0),
    shown(seconds, 1),
  ])
  return {
    title: 'idle: memory of sessions that do nothing, each with an open event stream',
    rows: [
      ['', 'sessions', 'MiB before', 'MiB with them', 'KiB each', 'beyond bare sockets', 'heard', 'seconds'],
      ...rows,
    ],
  }
}

/** Calls by way of several replicas, and the memory of sessions in them. */
export function replicaTables({ calls, memory }: Replicas): Table[] {
  const rows = calls.map(({ lane, how, replicas, rate, cpu, ratio, redis }) => [
    `${lane}, ${how}`,
    String(replicas),
    shown(rate, 0),
    spread(cpu, 0),
    spread(ratio),
    shown(redis, 1),
    shown(cpu && 1e6 / cpu.median, 0),
  ])
  const sessions = memory.map(({ lane, replicas, sessions, before, kib }) => [
    lane,
    String(replicas),
    String(sessions),
    shown(before, 0),
    shown(kib, 1),
    shown(kib && 1024 ** 2 / kib, 0),
  ])
  return [
    {
      title: `replicas: small calls by way of replicas that share one core and a Redis, ${PER_REPLICA} connections to each`,
      rows: [['', 'replicas', 'calls/s', 'CPU µs', 'CPU ×', 'µs of Redis', 'calls/s per core'], ...rows],
    },
    {
      title: 'replicas: memory of sessions that do nothing, each with an open event stream',
      rows: [['', 'replicas', 'sessions', 'MiB before, each', 'KiB per session', 'sessions per GiB'], ...sessions],
    },
  ]
}

/** The bridge and other programs, each in what it can do. */
export function publishedTable({ rows, blocks, fresh, sizes }: Published): Table {
  const cell = (name: string | undefined, sessions: number) =>
    blocks.find(({ connections }) => connections === sessions)?.cells.find(({ candidate }) => candidate === name)
  const last = SESSIONS.at(-1) ?? 0
  const direct = SESSIONS.map((sessions) => cell(DIRECT, sessions)?.figures)
  const at = (figure: 'p50' | 'rate', decimals: number) =>
    direct.map((one) => shown(one?.[figure], decimals)).join(', ')
  return {
    title: `Multiples of calls without a proxy, in ${SESSIONS.join(', ')} sessions, and what it takes beside`,
    rows: [
      [
        'in front of',
        ...SESSIONS.map((sessions) => `p50 ×, ${sessions}`),
        `p99 ×, ${last}`,
        `calls/s ×, ${last}`,
        'MiB a session',
        `processes, ${SERVERS} servers`,
        'MiB of these',
        'first answer ms',
      ],
      ...rows.map(({ what, by, candidate }) => {
        const size = sizes.find((one) => one.candidate === candidate)
        const { p99, rate } = cell(candidate, last)?.ratios ?? {}
        return [
          `${what}: ${by}`,
          ...SESSIONS.map((sessions) => spread(cell(candidate, sessions)?.ratios.p50, 1)),
          shown(p99?.median, 1),
          shown(rate?.median),
          shown(size?.session),
          shown(size?.ten?.processes, 0),
          shown(size?.ten?.mib, 0),
          shown(fresh.find((one) => one.candidate === candidate)?.start?.median, 0),
        ]
      }),
    ],
    notes: [
      `Without a proxy: p50 ${at('p50', 3)} ms, and ${at('rate', 0)} calls a second.`,
      ...(blocks[0]?.failed ?? []).map(({ candidate }) => `A wrong answer or none: ${candidate}.`),
    ],
  }
}

/** A row for each goal that was measured. */
export function goalRows(verdicts: readonly Verdict[]): string[][] {
  return verdicts.flatMap(({ goal, limit, unit, figure, spread: of, reached }) => {
    if (figure === undefined) return []
    const decimals = unit === '×' ? 2 : 0
    const wanted = 'most' in limit ? `at most ${limit.most}` : `at least ${limit.least}`
    const found = of === undefined ? shown(figure, decimals) : spread(of, decimals)
    return [[goal, `${wanted} ${unit}`, found, reached ? 'reached' : 'missed']]
  })
}

/** Goals that were measured, by their rows. */
export function goalTable(rows: readonly (readonly string[])[]): Table {
  const reached = rows.filter((row) => row.at(-1) === 'reached').length
  return {
    title: `Goals: ${reached} of ${rows.length} reached`,
    rows: [['', 'wanted', 'measured', ''], ...rows],
  }
}

/** In a line, how a run was made. */
export function aboutLine({ commit, date, node, processor, cores, load, pinned, options }: About): string {
  const how = pinned ? 'proxies have a core to themselves' : 'proxies have NO core to themselves, so expect noise'
  const machine = `${cores} × ${processor}, load ${load.toFixed(1)} before the run, ${how}`
  return `Commit ${commit}, ${date}, proxies on Node.js ${node}, ${machine}; options: ${options || 'none'}`
}
