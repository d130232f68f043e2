/** Writes the newest figures into docs/performance.md, between two markers each for the tables and for the profile. */
import { readFileSync, writeFileSync } from 'node:fs'
import type { Block } from './measure.js'
import { beside } from './processes.js'
import { aboutLine, freshTable, goalTable, idleTable, openTable, partsTable, scenarioTable } from './report.js'
import type { Results } from './results.js'
import { scenarios } from './scenarios.js'
import { asMarkdown, type Table } from './tables.js'

const PATH = beside('../../docs/performance.md')

/** Replaces the tables, or the profile, or both: what was measured. */
export function writeDocument(results: Results): void {
  const { about, blocks, fresh, idle, goals, profiles } = results
  let text = readFileSync(PATH, 'utf8')
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
    text = replaced(text, 'tables', [how(about.pace.rounds), ...tables.map(asMarkdown)])
  }
  if (profiles.length > 0) text = replaced(text, 'profile', [`${aboutLine(about)}.`, asMarkdown(partsTable(profiles))])
  writeFileSync(PATH, text)
}

function tablesOf(blocks: readonly Block[], open: boolean): Table[] {
  if (open) return blocks.map(openTable)
  return blocks.length === 0 ? [] : [scenarioTable(blocks)]
}

/** The text with other contents between the markers of this name. */
function replaced(text: string, name: string, pieces: readonly string[]): string {
  const [begin, end] = [`<!-- ${name}: written by npm run bench -->`, `<!-- end of ${name} -->`]
  const [from, to] = [text.indexOf(begin), text.indexOf(end)]
  if (from < 0 || to < from) throw new Error(`docs/performance.md has no markers for the ${name}`)
  return `${text.slice(0, from + begin.length)}\n\n${pieces.map((piece) => piece.trimEnd()).join('\n\n')}\n\n${text.slice(to)}`
}
