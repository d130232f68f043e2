/** The figures of a run as tables for people. */
import { beforeName } from './candidates.js'
import type { Verdict } from './goals.js'
import type { Idle } from './idle.js'
import { type Block, type Cell, type Figures, median } from './measure.js'
import type { Share } from './profile.js'
import type { StartUp } from './start-up.js'

const COLUMNS: readonly [title: string, text: (cell: Cell) => string][] = [
  ['', ({ candidate }) => candidate],
  ['req/s', ({ rate }) => rate.toFixed(0)],
  ['p50 ms', ({ p50 }) => p50.toFixed(2)],
  ['p99 ms', ({ p99 }) => p99.toFixed(2)],
  ['CPU µs', ({ cpu }) => shown(cpu, 1)],
  ['busy %', ({ busy }) => shown(busy && busy * 100, 0)],
  ['RSS MiB', ({ memory }) => shown(memory, 0)],
  ['rate ×', ({ ratios }) => ratios.rate.toFixed(2)],
  ['CPU ×', ({ ratios }) => shown(ratios.cpu, 2)],
]

/** One scenario over so many connections, a line per candidate. The last two columns are multiples of a yardstick's. */
export function blockTable({ scenario, connections, cells }: Block): string {
  const rows = cells.map((cell) => COLUMNS.map(([, text]) => text(cell)))
  const title = `${scenario}, ${connections} ${connections === 1 ? 'connection' : 'connections'}`
  return `${title}\n${table([COLUMNS.map(([heading]) => heading), ...rows])}\n`
}

/** Figures of this build as multiples of those of another one, which was measured in the same rounds. */
export function againstTable(blocks: readonly Block[], commit: string): string {
  const rows = blocks.flatMap(({ scenario, connections, cells }) =>
    cells.flatMap((cell) => {
      const before = cells.find(({ candidate }) => candidate === beforeName(cell.candidate))
      if (before === undefined) return []
      const multiples = (figure: 'rate' | 'cpu' | 'p50'): string => shown(medianMultiple(cell, before, figure), 2)
      const title = `${cell.candidate}: ${scenario}, ${connections}`
      return [[title, multiples('cpu'), multiples('rate'), multiples('p50')]]
    }),
  )
  return `Multiples of ${commit}\n${table([['', 'CPU ×', 'rate ×', 'p50 ×'], ...rows])}\n`
}

function medianMultiple(cell: Cell, before: Cell, figure: keyof Figures): number | undefined {
  return median(
    cell.rounds.map((round, index) => (round[figure] ?? Number.NaN) / (before.rounds[index]?.[figure] ?? 0)),
  )
}

/** The parts of a candidate that take most, down to a hundredth of its time. */
export function profileTable(candidate: string, shares: readonly Share[]): string {
  const rows = shares
    .filter(({ share }) => share >= 0.01)
    .map(({ part, each, share }) => [part, shown(each, 2), shown(share * 100, 1)])
  const total = shares.reduce((sum, { each }) => sum + each, 0)
  return `${candidate}, ${shown(total, 1)} µs a call\n${table([['', 'µs', '%'], ...rows])}\n`
}

export function startUpTable(all: readonly StartUp[]): string {
  const rows = all.map(({ candidate, median, runs }) => [
    candidate,
    median.toFixed(0),
    Math.min(...runs).toFixed(0),
    Math.max(...runs).toFixed(0),
  ])
  return `Start to first answer, ms\n${table([['', 'median', 'least', 'most'], ...rows])}\n`
}

export function idleTable(all: readonly Idle[]): string {
  const rows = all.map(({ candidate, sessions, before, after, kib }) => [
    candidate,
    String(sessions),
    shown(before, 1),
    shown(after, 1),
    shown(kib, 1),
  ])
  const heading = ['', 'sessions', 'MiB before', 'MiB with them', 'KiB each']
  return `Idle sessions, each with a stream open\n${table([heading, ...rows])}\n`
}

export function goalList(verdicts: readonly Verdict[]): string {
  const word = (met: boolean | undefined) => (met === undefined ? 'unknown' : met ? 'met' : 'MISSED')
  const lines = verdicts.map(({ goal, figure, met }) => `  ${word(met).padEnd(8)}${goal} (${shown(figure, 2)})\n`)
  return `Goals\n${lines.join('')}`
}

function shown(figure: number | undefined, decimals: number): string {
  return figure === undefined ? 'n/a' : figure.toFixed(decimals)
}

/** Columns as wide as their widest text, the first to the left and figures to the right. */
function table(rows: readonly string[][]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  const pad = (text: string, column: number) =>
    column === 0 ? text.padEnd(widths[column] ?? 0) : text.padStart(widths[column] ?? 0)
  return rows.map((row) => `  ${row.map(pad).join('  ')}`).join('\n')
}
