/**
 * Writes the figures of a run between markers: the small call into docs/performance.md, tables and profile
 * into docs/development/performance.md, replicas into docs/development/replicas.md, other programs into docs/comparison.md.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { beside } from './processes.js'
import {
  aboutLine,
  freshTable,
  goalRows,
  goalTable,
  idleTable,
  openTable,
  partsTable,
  publishedTable,
  replicaTables,
  scenarioTable,
  summaryTable,
} from './report.js'
import type { Results } from './results.js'
import { scenarios } from './scenarios.js'
import { asMarkdown, type Table } from './tables.js'

const PERFORMANCE = beside('../../docs/performance.md')
const MEASUREMENTS = beside('../../docs/development/performance.md')
const REPLICAS = beside('../../docs/development/replicas.md')
const COMPARISON = beside('../../docs/comparison.md')

/** Replaces the tables, the profile and the replicas, each as a whole: no table has figures of several runs. */
export function writeDocument(results: readonly Results[]): void {
  if (results.some(({ blocks, fresh, idle }) => blocks.length + fresh.length + idle.length > 0))
    write(MEASUREMENTS, 'tables', tablesOf(results))
  const summary = results.flatMap(summaryOf)
  if (summary.length > 0) write(PERFORMANCE, 'summary', summary)
  const profiled = results.filter(({ profiles }) => profiles.length > 0)
  if (profiled.length > 0)
    write(
      MEASUREMENTS,
      'profile',
      profiled.flatMap(({ about, profiles }) => [`${aboutLine(about)}.`, asMarkdown(partsTable(profiles))]),
    )
  const [replicated] = results.filter(({ replicas }) => replicas !== undefined)
  if (replicated?.replicas)
    write(REPLICAS, 'replicas', [howMeasured(replicated), ...replicaTables(replicated.replicas).map(asMarkdown)])
}

/** The load above which other work takes part in all latencies. */
const BUSY = 1.5
const BUSY_NOTE =
  '**The machine was busy with other work**: latencies and starts are too high, and so are their multiples. Memory and processes are right.'

/** Replaces what is published of the bridge beside other programs. */
export function writePublished(results: readonly Results[]): void {
  write(COMPARISON, 'comparison', results.flatMap(publishedOf))
}

/** What is published of a run. */
export function publishedOf(one: Results): string[] {
  const { about, published } = one
  if (!published) return []
  const busy = about.load > BUSY ? [BUSY_NOTE] : []
  return [headingOf(one), howMeasured(one), ...busy, asMarkdown(publishedTable(published))]
}

/** The goals and the tables of a run: on one Node.js after the other. */
export function tablesOf(results: readonly Results[]): string[] {
  return results.flatMap((one) => [
    headingOf(one),
    howMeasured(one),
    asMarkdown(goalTable(goalRows(one.goals))),
    ...scenarioTables(one).map(asMarkdown),
  ])
}

/** What users read of a run: the small call, in few columns; nothing if it was not measured. */
export function summaryOf(one: Results): string[] {
  const own = one.blocks.filter(({ scenario }) => scenario === 'small')
  const { about } = one
  return own.length === 0
    ? []
    : [headingOf(one), `${aboutLine(about)}. Medians over ${about.pace.lives} lives.`, asMarkdown(summaryTable(own))]
}

function headingOf({ about }: Results): string {
  return `### On Node.js ${about.node.slice(1)}`
}

function scenarioTables({ blocks, fresh, idle }: Results): Table[] {
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
  const { lives } = about.pace
  return `${aboutLine(about)}. Medians over ${lives} lives of each process, with quartiles in parentheses.`
}

/** Writes other contents between the markers of this name. */
function write(path: string, name: string, pieces: readonly string[]): void {
  const text = readFileSync(path, 'utf8')
  const [begin, end] = [`<!-- ${name}: written by npm run bench -->`, `<!-- end of ${name} -->`]
  const [from, to] = [text.indexOf(begin) + begin.length, text.indexOf(end)]
  if (from < begin.length || to < from) throw new Error(`${path} has no markers for the ${name}`)
  const inside = pieces.map((piece) => piece.trimEnd()).join('\n\n')
  writeFileSync(path, `${text.slice(0, from)}\n\n${inside}\n\n${text.slice(to)}`)
}
