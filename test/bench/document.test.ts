/** The tables of the newest figures: a run replaces what it has measured, and nothing else. */
import t from 'tap'
import { withTables } from './document.js'
import type { Cell } from './measure.js'
import { goalRows } from './report.js'
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
const METADATA = 'small, 64 connections, modern-legacy-http: CPU with the metadata of an inspector, against without'
const SMALL = 'small, 64 connections, modern-legacy-http: CPU against the pass-through'

const before = `

**Goals: 1 of 3 reached**

|  | wanted | measured |  |
|---|--:|--:|--:|
| ${SMALL} | at most 1.2 × | 1.03 (0.92–1.13) | reached |
| ${METADATA} | at most 1.03 × | 1.50 (1.40–1.60) | missed |
| a goal that there is no more | at most 1 × | 2.00 | missed |

**small: tools/call**

|  | CPU × |
|---|--:|
| lane | 1.00 |

Commit old.

**inspect: the small call**

|  | CPU × |
|---|--:|
| lane | 9.99 |

Commit old.

`

t.test('figures that were not measured again keep the commit of their run', async (t) => {
  const cell: Cell = {
    candidate: 'modern-legacy-http, metadata',
    kind: 'bridge',
    figures: { cpu: 104 },
    ratios: {},
    memory: undefined,
    lives: [],
  }
  const verdict = { goal: METADATA, limit: { most: 1.03 }, unit: '×', figure: 1.02, spread: undefined, reached: true }
  const results: Results = {
    about: ABOUT,
    blocks: [{ scenario: 'inspect', connections: 64, cells: [cell], failed: [] }],
    fresh: [],
    idle: [],
    goals: [verdict],
    profiles: [],
  }
  const [goals = '', small = '', inspect = '', ...more] = withTables(before, results)
  t.same(more, [])
  t.match(goals, /^\*\*Goals: 2 of 2 reached\*\*\n/)
  t.match(goals, '1.03 (0.92–1.13) | reached')
  t.match(goals, 'at most 1.03 × | 1.02 | reached')
  t.equal(small, '**small: tools/call**\n\n|  | CPU × |\n|---|--:|\n| lane | 1.00 |\n\nCommit old.')
  t.match(inspect, /^\*\*inspect: the small call.*modern-legacy-http, metadata \|.*Commit new, 2026/s)
  t.notMatch(inspect, '9.99')
  t.same(withTables(`\n\n${[goals, small, inspect].join('\n\n')}\n\n`, { ...results, blocks: [], goals: [] }), [
    goals,
    small,
    inspect,
  ])
})

t.test('a goal without a figure has no row', async (t) => {
  t.same(
    goalRows([{ goal: 'x', limit: { most: 1 }, unit: 'ms', figure: undefined, spread: undefined, reached: undefined }]),
    [],
  )
})
