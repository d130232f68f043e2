/**
 * The table of scenarios: what happens between every client and every server. A row with `impossible` says between whom
 * there can be no such thing, and why.
 */
import { call, complete, errors, lists, prompt, read } from './calls.js'
import type { Scenario } from './cell.js'
import { listChange, subscription } from './changes.js'
import { cancel, log, progress } from './during.js'
import { bytes, unknown } from './exact.js'
import { ableClient, end, opening } from './opening.js'
import { asking, unanswered } from './questions.js'
import { task } from './tasks.js'

export const SCENARIOS: readonly Scenario[] = [
  { name: 'opening', plan: ableClient, run: opening },
  { name: 'lists', run: lists },
  { name: 'call', run: call },
  { name: 'error', run: errors },
  { name: 'read', run: read },
  { name: 'prompt', run: prompt },
  { name: 'complete', run: complete },
  { name: 'progress', run: progress },
  { name: 'log', run: log },
  { name: 'cancel', run: cancel },
  { name: 'unknown', run: unknown },
  { name: 'bytes', run: bytes },
  asking('form', [['name']]),
  asking('address', [['page']]),
  asking('sampling', [['model']]),
  asking('roots', [['roots']]),
  asking('two', [['name', 'model']]),
  asking('rounds', [['name'], ['model'], ['roots']]),
  asking('decline', [['name']], { name: { action: 'decline' } }),
  unanswered,
  { name: 'subscribe', run: subscription },
  { name: 'changes', run: listChange },
  task,
  { name: 'end', run: end },
]
