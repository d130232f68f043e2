/** The tables of the document: those of one run, on one Node.js after the other. */
import t from 'tap'
import { publishedOf, summaryOf, tablesOf } from './document.js'
import { judge } from './goals.js'
import type { Cell } from './measure.js'
import { parseOptions } from './options.js'
import type { Published } from './published.js'
import { goalRows, publishedTable } from './report.js'
import type { Results } from './results.js'

const ABOUT: Results['about'] = {
  commit: 'new',
  date: '2026-11-24T09:00Z',
  node: 'v24',
  processor: 'CPU',
  cores: 2,
  load: 0,
  pinned: true,
  options: '--scenario inspect',
  pace: { rounds: 1, window: 1, warmUp: 1, lives: 1 },
}
const LANE = 'modern-legacy-http'
const GOAL = `small, 64 connections, ${LANE}: CPU against the pass-through`

/** A run with one figure: the CPU of a lane against the pass-through. */
function runOn(node: string, multiple: number): Results {
  const cell: Cell = {
    candidate: LANE,
    kind: 'bridge',
    figures: { cpu: 40 },
    ratios: { cpu: { median: multiple, low: multiple, high: multiple } },
    memory: undefined,
    lives: [{ cpu: 40 }],
  }
  const blocks = [{ scenario: 'small', connections: 64, cells: [cell], failed: [] }]
  const results: Results = { about: { ...ABOUT, node }, blocks, fresh: [], idle: [], goals: [], profiles: [] }
  return { ...results, goals: judge(results) }
}

t.test('the document has a run on each Node.js, with the goals of that one', async (t) => {
  const pieces = tablesOf([runOn('v24.1.0', 0.8), runOn('v20.19.0', 0.8)])
  t.equal(pieces.length, 8)
  const [newer, , goals, small, older, , goalsOn20] = pieces as [string, string, string, string, string, string, string]
  t.equal(newer, '### On Node.js 24.1.0')
  t.match(goals, `| ${GOAL} | at most 0.65 × | 0.80 (0.80–0.80) | missed |`)
  t.match(small, `| ${LANE} | 0.80 (0.80–0.80) | 40 |`)
  t.equal(older, '### On Node.js 20.19.0')
  t.match(goalsOn20, `| ${GOAL} | at most 0.9 × | 0.80 (0.80–0.80) | reached |`)
})

t.test('users read the latency of one connection, and quartiles only where a proxy has all it can take', async (t) => {
  const run = runOn('v24.1.0', 0.8)
  const blocks = run.blocks.flatMap((block) =>
    [1, 16, 64].map((connections) => {
      const cells = block.cells.map((cell) => ({
        ...cell,
        figures: { cpu: 40, p50: connections / 10, p99: 7, rate: 1_000 * connections },
      }))
      return { ...block, connections, cells }
    }),
  )
  const [heading, about, table] = summaryOf({ ...run, blocks })
  t.equal(heading, '### On Node.js 24.1.0')
  t.match(about, /^Commit new, .*\. Medians over 1 lives\.$/)
  t.match(table, '|  | p50 ms, 1 | CPU ×, 64 | CPU µs | calls/s | p99 ms |')
  t.match(table, `| ${LANE} | 0.100 | 0.80 (0.80–0.80) | 40 | 64000 | 7.00 |`)
  t.same(summaryOf({ ...run, blocks: [] }), [])
})

t.test('a part of a run is not written, because the tables would be of several runs', async (t) => {
  t.throws(() => parseOptions(['--write', '--scenario', 'small']), /whole run/)
  t.doesNotThrow(() => parseOptions(['--write', '--scenario', 'replicas']))
  t.doesNotThrow(() => parseOptions(['--write']))
})

t.test('other programs are compared as a whole, in what each of them can do', async (t) => {
  for (const more of [
    ['--scenario', 'small'],
    ['--lane', 'http'],
    ['--connections', '1'],
    ['--no-peers'],
    ['--against', 'main'],
  ])
    t.throws(() => parseOptions(['--publish', ...more]), /--publish takes a whole run/, more.join(' '))
  t.doesNotThrow(() => parseOptions(['--publish', '--lives', '1']))

  const cellOf = (candidate: string, multiple: number): Cell => {
    const spread = { median: multiple, low: multiple, high: multiple }
    const ratios = { p50: spread, p99: spread, rate: spread }
    return { candidate, kind: 'peer', figures: { p50: 0.25, rate: 4_000 }, ratios, memory: undefined, lives: [] }
  }
  const cells = [cellOf('no proxy', 1), cellOf('one', 3), cellOf('pipe', 2)]
  const published: Published = {
    rows: ['one', 'pipe', undefined].map((candidate) => ({ what: 'a program', by: String(candidate), candidate })),
    blocks: [1, 8, 32].map((connections) => {
      const some = connections === 1 ? cells : cells.slice(0, 2)
      return { scenario: 'sessions', connections, cells: some, failed: [{ candidate: 'pipe', why: 'it hung' }] }
    }),
    fresh: [],
    sizes: [{ candidate: 'one', session: 1.5, ten: { processes: 11, mib: 300 } }],
  }
  const { rows, notes } = publishedTable(published)
  t.same(rows.slice(1), [
    ['a program: one', '3.0 (3.0–3.0)', '3.0 (3.0–3.0)', '3.0 (3.0–3.0)', '3.0', '3.00', '1.50', '11', '300', '–'],
    ['a program: pipe', '2.0 (2.0–2.0)', ...Array.from({ length: 8 }, () => '–')],
    ['a program: undefined', ...Array.from({ length: 9 }, () => '–')],
  ])
  const busy = { ...ABOUT, load: 4, node: 'v24.1.0' }
  for (const [about, said] of [
    [busy, true],
    [ABOUT, false],
  ] as const) {
    const pieces = publishedOf({ ...runOn('v24', 1), about, published })
    t.equal(/The machine was busy/.test(pieces.join('\n')), said)
    t.match(pieces.at(-1), /^\| a program: one \|/m)
  }
  t.same(notes, [
    'Without a proxy: p50 0.250, 0.250, 0.250 ms, and 4000, 4000, 4000 calls a second.',
    'A wrong answer or none: pipe.',
  ])
})

t.test('a goal without a figure has no row', async (t) => {
  t.same(
    goalRows([{ goal: 'x', limit: { most: 1 }, unit: 'ms', figure: undefined, spread: undefined, reached: undefined }]),
    [],
  )
})
