/** Writes the newest figures between markers: tables and profile into docs/performance.md, replicas into docs/operations.md. */
import { readFileSync, writeFileSync } from 'node:fs'
import type { Block } from './measure.js'
import { beside } from './processes.js'
import {
  aboutLine,
  freshTable,
  goalTable,
  idleTable,
  openTable,
  partsTable,
  replicaTables,
  scenarioTable,
} from './report.js'
import type { Results } from './results.js'
import { scenarios } from './scenarios.js'
import { asMarkdown, type Table } from './tables.js'

const PERFORMANCE = beside('../../docs/performance.md')
const OPERATIONS = beside('../../docs/operations.md')

/** Replaces the tables, the profile and the replicas, as far as they were measured. */
export function writeDocument(results: Results): void {
  const { about, blocks, fresh, idle, replicas, goals, profiles } = results
  const how = (windows: number) => `${aboutLine(about)}. Medians, with quartiles in parentheses, of ${windows} windows.`
  if (blocks.length + fresh.length + idle.length > 0) {
    const tables: Table[] = [
      goalTable(goals),
      ...scenarios.flatMap(({ name, kind }) =>
        tablesOf(
          blocks.filter(({ scenario }) => scenario === name),
          kind === 'open',
        ),
      ),
      ...(fresh.length > 0 ? [freshTable(fresh)] : []),
      ...(idle.length > 0 ? [idleTable(idle)] : []),
    ]
    write(PERFORMANCE, 'tables', [how(about.pace.rounds), ...tables.map(asMarkdown)])
  }
  if (profiles.length > 0) write(PERFORMANCE, 'profile', [`${aboutLine(about)}.`, asMarkdown(partsTable(profiles))])
  if (replicas) write(OPERATIONS, 'replicas', [how(about.pace.rounds), ...replicaTables(replicas).map(asMarkdown)])
}

function tablesOf(blocks: readonly Block[], open: boolean): Table[] {
  if (open) return blocks.map(openTable)
  return blocks.length === 0 ? [] : [scenarioTable(blocks)]
}

/** Writes other contents between the markers of this name. */
function write(path: string, name: string, pieces: readonly string[]): void {
  const text = readFileSync(path, 'utf8')
  const [begin, end] = [`<!-- ${name}: written by npm run bench -->`, `<!-- end of ${name} -->`]
  const [from, to] = [text.indexOf(begin), text.indexOf(end)]
  if (from < 0 || to < from) throw new Error(`${path} has no markers for the ${name}`)
  const inside = pieces.map((piece) => piece.trimEnd()).join('\n\n')
  writeFileSync(path, `${text.slice(0, from + begin.length)}\n\n${inside}\n\n${text.slice(to)}`)
}
