/** Says in one table what came of all legs. */
import { styleText } from 'node:util'
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

/** The table, and below it every failure that nobody expected, in its own words. */
export function report(outcomes: readonly Outcome[]): string {
  const columns = outcomes.map((outcome) => ({ name: outcome.leg.name, verdicts: judge(outcome) }))
  const names = new Set(columns.flatMap(({ verdicts }) => [...verdicts.keys()]))
  const isScored = (name: string) => columns.some(({ verdicts }) => verdicts.get(name)?.scored)
  const scored = [...names].filter(isScored)
  const others = [...names].filter((name) => !isScored(name)).sort()
  const row = (name: string): Cell[] => [[name], ...columns.map(({ verdicts }) => cell(verdicts.get(name)))]
  const total = (title: string, of: readonly string[]): Cell[] => [
    [`${of.length} ${title}`],
    ...columns.map(({ verdicts }): Cell => [sum(of.flatMap((name) => verdicts.get(name) ?? []))]),
  ]
  const rows: Cell[][] = [[['scenario'], ...columns.map(({ name }): Cell => [name])], ...scored.map(row), [['']]]
  if (others.length > 0) rows.push([['not scored:']], ...others.map(row), [['']])
  rows.push(total('scored', scored))
  if (others.length > 0) rows.push(total('not scored', others))
  const problems = columns.flatMap(({ name: leg, verdicts }) =>
    [...verdicts].flatMap(([name, verdict]) => complaints(`${leg}: ${name}`, verdict)),
  )
  return [...align(rows), ...(problems.length > 0 ? ['', ...problems] : [])].join('\n')
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

function complaints(where: string, { kind, scored, skipped, unexpected }: Verdict): string[] {
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
