/** Writes the newest figures between markers: tables and profile into docs/performance.md, replicas into docs/operations.md. */
import { readFileSync, writeFileSync } from 'node:fs'
import { goals } from './goals.js'
import { beside } from './processes.js'
import {
  aboutLine,
  freshTable,
  goalRows,
  goalTable,
  idleTable,
  openTable,
  partsTable,
  replicaTables,
  scenarioTable,
} from './report.js'
import type { Results } from './results.js'
import { scenarios } from './scenarios.js'
import { asMarkdown, rowsIn, type Table } from './tables.js'

const PERFORMANCE = beside('../../docs/performance.md')
const OPERATIONS = beside('../../docs/operations.md')

/** Replaces the tables, the profile and the replicas, as far as they were measured. */
export function writeDocument(results: Results): void {
  const { about, blocks, fresh, idle, replicas, profiles } = results
  if (blocks.length + fresh.length + idle.length > 0)
    write(PERFORMANCE, 'tables', (before) => withTables(before, results))
  if (profiles.length > 0)
    write(PERFORMANCE, 'profile', () => [`${aboutLine(about)}.`, asMarkdown(partsTable(profiles))])
  if (replicas) write(OPERATIONS, 'replicas', () => [howMeasured(results), ...replicaTables(replicas).map(asMarkdown)])
}

/** The goals and a table for each scenario. Those that were not measured stay as they were. */
export function withTables(before: string, results: Results): string[] {
  const pieces = new Map(
    before
      .split(/\n\n(?=\*\*)/)
      .map((piece) => [scenarioOf(piece), piece.trim()] as const)
      .filter(([name]) => name !== undefined),
  )
  const known = rowsIn(pieces.get('Goals') ?? '')
  const newest = goalRows(results.goals)
  const rows = goals.flatMap(({ goal }) => [...newest, ...known].filter(([name]) => name === goal).slice(0, 1))
  const names = scenarios.map(({ name }) => name)
  const tables = tablesOf(results)
  for (const name of names) {
    const own = tables.filter(({ title }) => scenarioOf(`**${title}`) === name)
    if (own.length > 0)
      pieces.set(name, [...own.map((table) => asMarkdown(table).trimEnd()), howMeasured(results)].join('\n\n'))
  }
  return [asMarkdown(goalTable(rows)), ...names.flatMap((name) => pieces.get(name) ?? [])]
}

/** The scenario of a table, by its title; `Goals` for those. */
function scenarioOf(piece: string): string | undefined {
  return /^\*\*([\w-]+)/.exec(piece.trim())?.[1]
}

function tablesOf({ blocks, fresh, idle }: Results): Table[] {
  return [
    ...scenarios.flatMap(({ name, kind }) => {
      const own = blocks.filter(({ scenario }) => scenario === name)
      return kind === 'open' ? own.map(openTable) : own.length === 0 ? [] : [scenarioTable(own)]
    }),
    ...(fresh.length > 0 ? [freshTable(fresh)] : []),
    ...(idle.length > 0 ? [idleTable(idle)] : []),
  ]
}

function howMeasured({ about }: Results): string {
  return `${aboutLine(about)}. Medians, with quartiles in parentheses.`
}

/** Writes other contents between the markers of this name, made of what is there. */
function write(path: string, name: string, piecesOf: (before: string) => readonly string[]): void {
  const text = readFileSync(path, 'utf8')
  const [begin, end] = [`<!-- ${name}: written by npm run bench -->`, `<!-- end of ${name} -->`]
  const [from, to] = [text.indexOf(begin) + begin.length, text.indexOf(end)]
  if (from < begin.length || to < from) throw new Error(`${path} has no markers for the ${name}`)
  const inside = piecesOf(text.slice(from, to))
    .map((piece) => piece.trimEnd())
    .join('\n\n')
  writeFileSync(path, `${text.slice(0, from)}\n\n${inside}\n\n${text.slice(to)}`)
}
