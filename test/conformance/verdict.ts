/** What a scenario came to on one leg. The rules are the suite's own: it decides how the run ends, this says why. */
import type { Check, Outcome } from './suite.js'

/** `stale` passes though it is expected to fail; `none` has checked nothing. */
export type Kind = 'pass' | 'expected' | 'fail' | 'stale' | 'none'

export interface Verdict {
  kind: Kind
  scored: boolean
  passed: number
  failed: number
  skipped: number
  /** Failures that nobody expected. */
  unexpected: Check[]
}

/** The verdict for each scenario that was run, or should have been. */
export function judge({ scored, wanted, expected, checks }: Outcome): Map<string, Verdict> {
  const names = new Set([...wanted, ...checks.keys()])
  return new Map(
    [...names].map((name) => [name, judgeOne(name, checks.get(name) ?? [], scored.includes(name), expected)]),
  )
}

function judgeOne(name: string, checks: readonly Check[], scored: boolean, expected: readonly string[]): Verdict {
  // A warning says that something which should be so is not: the suite counts it where failures can be expected.
  const failing = checks.filter(({ status }) => status === 'FAILURE' || status === 'WARNING')
  const passing = checks.filter(({ status }) => status === 'SUCCESS')
  const skipped = checks.filter(({ status }) => status === 'SKIPPED').length
  const isExpected = ({ id }: Check) => scored && (expected.includes(name) || expected.includes(`${name}:${id}`))
  const unexpected = failing.filter((check) => !isExpected(check))
  const counts = { scored, passed: passing.length, failed: failing.length, skipped, unexpected }
  if (passing.length + failing.length === 0) return { kind: 'none', ...counts }
  if (unexpected.length > 0) return { kind: 'fail', ...counts }
  const failed = new Set(failing.map(({ id }) => id))
  const passesAfterAll = expected.includes(name)
    ? failing.length === 0
    : passing.some((check) => isExpected(check) && !failed.has(check.id))
  if (passesAfterAll) return { kind: 'stale', ...counts }
  return { kind: failing.length > 0 ? 'expected' : 'pass', ...counts }
}
