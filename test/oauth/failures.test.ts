/** The table of errors in docs/auth.md, against the faults that there are. */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { Fault, isOfSignIn } from '../../src/base/fault/fault.js'
import { type FaultName, faults } from '../../src/base/fault/faults.js'

const page = readFileSync(new URL('../../docs/auth.md', import.meta.url), 'utf8')
const [, section = ''] = page.split('\n## Errors\n')
const rows = [...(section.split('\n## ')[0] ?? '').matchAll(/^\| `(\w+)` \| (.+?) \| (.+?) \|$/gm)]
const described = rows.map(([, reason = '']) => reason)
/** Faults of a server that a sign-in can end with, too. They have a status of their own. */
const OF_SERVERS: readonly FaultName[] = ['upstreamAuthRequired', 'upstreamUnavailable']

t.test('docs/auth.md describes every reason for which a sign-in fails, once, and no other', async (t) => {
  const names = Object.keys(faults) as FaultName[]
  const ofSignIn = names.filter((name) => isOfSignIn(new Fault(name, '')))
  const reasons = [...ofSignIn, ...OF_SERVERS].map((name) => new Fault(name, '').row.reason)
  t.equal(described.length, 10)
  t.same([...described].sort(), [...reasons].sort())
  for (const [, reason, cause, next] of rows) t.ok(cause && next, `${reason} has a cause, and what to do`)
})

t.test('sign-in errors have HTTP status 200, except the two that docs/auth.md names', async (t) => {
  for (const name of Object.keys(faults) as FaultName[]) {
    const fault = new Fault(name, '')
    if (isOfSignIn(fault)) t.equal(fault.status, 200, name)
  }
  for (const name of OF_SERVERS) {
    const { status, row } = new Fault(name, '')
    t.equal(status, 502)
    t.match(section, new RegExp(`Exceptions:[^.]*\`${row.reason}\`[^.]*502`))
  }
})
