/** Says in tables what came of the legs: one for those that are about the same. */
import { styleText } from 'node:util'
import { about } from './legs.js'
import type { Outcome } from './suite.js'
import { judge, type Kind, type Verdict } from './verdict.js'

const WORDS: Readonly<Record<Kind, string>> = {
  pass: 'pass',
  expected: 'expected fail',
  fail: 'FAIL',
  stale: 'STALE',
  none: 'no verdict',
}
const COLORS = { pass: 'green', expected: 'yellow', fail: 'red', stale: 'red', none: 'dim' } as const

/** A text and, where it has one, its color. */
type Cell = [text: string, color?: (typeof COLORS)[Kind]]

/** What came of one leg, by scenario. */
interface Column {
  outcome: Outcome
  verdicts: ReadonlyMap<string, Verdict>
}

export interface Report {
  text: string
  /** Whether something passes without the bridge, and not with it, which the suite cannot know. */
  lost: boolean
}

/** The tables, and below them every failure that nobody expected, in its own words. */
export function report(outcomes: readonly Outcome[]): Report {
  const columns = outcomes.map((outcome) => ({ outcome, verdicts: judge(outcome, directOf(outcome, outcomes)) }))
  const titles = new Set(outcomes.map(({ leg }) => about(leg)))
  const tables = [...titles].map((title) => {
    const alike = columns.filter(({ outcome: { leg } }) => about(leg) === title)
    return `${title}\n\n${table(alike)}\n`
  })
  const problems = columns.flatMap(({ outcome: { leg }, verdicts }) =>
    [...verdicts].flatMap(([name, verdict]) => complaints(`${leg.name}: ${name}`, verdict)),
  )
  const lost = columns.some(({ verdicts }) => [...verdicts.values()].some((verdict) => verdict.lost.length > 0))
  return { text: [...tables, ...problems].join('\n'), lost }
}

function directOf({ leg }: Outcome, outcomes: readonly Outcome[]): Outcome | undefined {
  return leg.mode === 'server' ? outcomes.find(({ leg: { name } }) => name === leg.like) : undefined
}

function table(columns: readonly Column[]): string {
  const names = new Set(columns.flatMap(({ verdicts }) => [...verdicts.keys()]))
  const isScored = (name: string) => columns.some(({ verdicts }) => verdicts.get(name)?.scored)
  const scored = [...names].filter(isScored)
  const others = [...names].filter((name) => !isScored(name)).sort()
  const row = (name: string): Cell[] => [[name], ...columns.map(({ verdicts }) => cell(verdicts.get(name)))]
  const total = (title: string, of: readonly string[]): Cell[] => [
    [`${of.length} ${title}`],
    ...columns.map(({ verdicts }): Cell => [sum(of.flatMap((name) => verdicts.get(name) ?? []))]),
  ]
  const heading: Cell[] = [['scenario'], ...columns.map(({ outcome: { leg } }): Cell => [leg.name])]
  const rows: Cell[][] = [heading, ...scored.map(row), [['']]]
  if (others.length > 0) rows.push([['not scored:']], ...others.map(row), [['']])
  rows.push(total('scored', scored))
  if (others.length > 0) rows.push(total('not scored', others))
  return align(rows).join('\n')
}

function cell(verdict: Verdict | undefined): Cell {
  if (!verdict) return ['']
  const { kind, passed, failed, skipped } = verdict
  const counts = kind === 'none' ? '' : ` ${passed}/${passed + failed}`
  const aside = skipped > 0 ? ` (${skipped} skipped)` : ''
  return [word(verdict) + counts + aside, COLORS[kind]]
}

/** What does not count is not shouted about. */
function word({ kind, scored }: Verdict): string {
  return scored ? WORDS[kind] : WORDS[kind].toLowerCase()
}

function sum(verdicts: readonly Verdict[]): string {
  return Object.keys(WORDS)
    .map((kind) => verdicts.filter((verdict) => verdict.kind === kind))
    .flatMap((alike) => (alike[0] ? [`${alike.length} ${word(alike[0])}`] : []))
    .join(', ')
}

function complaints(where: string, { kind, scored, skipped, unexpected, lost }: Verdict): string[] {
  if (lost.length > 0) return lost.map(({ id, name }) => `${where}: ${id} (${name}): passes without the bridge`)
  if (!scored) return []
  if (kind === 'none' && skipped === 0) return [`${where}: came to nothing`]
  if (kind === 'stale') return [`${where}: is expected to fail in a way that it no longer does`]
  return unexpected.map(({ id, errorMessage }) => `${where}: ${id}: ${errorMessage ?? 'no reason given'}`)
}

function align(rows: readonly Cell[][]): string[] {
  const width = (column: number) => Math.max(...rows.map((row) => row[column]?.[0].length ?? 0))
  return rows.map((row) =>
    row
      .map(([text, color], column) => {
        const padded = column === row.length - 1 ? text : text.padEnd(width(column) + 2)
        return color && process.stdout.isTTY ? styleText(color, padded) : padded
      })
      .join(''),
  )
}
