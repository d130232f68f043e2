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
  /** What passes without the bridge, and not with it. */
  lost: Check[]
}

/** The verdict for each scenario that was run, or should have been. `direct` is what came of it without the bridge. */
export function judge({ scored, wanted, expected, checks }: Outcome, direct?: Outcome): Map<string, Verdict> {
  const names = new Set([...wanted, ...checks.keys()])
  return new Map(
    [...names].map((name) => {
      const found = checks.get(name) ?? []
      const verdict = judgeOne(name, found, scored.includes(name), expected)
      const lost = lostOf(direct?.checks.get(name) ?? [], found)
      return [name, lost.length > 0 ? { ...verdict, kind: 'fail', lost } : verdict]
    }),
  )
}

/** Checks that one passes and the other does not. `INFO` is what a check says where there is nothing to be checked. */
function lostOf(direct: readonly Check[], bridged: readonly Check[]): Check[] {
  const alike = (all: readonly Check[], { id, name }: Check) =>
    all.filter((check) => check.id === id && check.name === name)
  const passes = (all: readonly Check[], good: readonly Check['status'][]) =>
    all.some(({ status }) => good.includes(status)) && !all.some(isFailing)
  return direct.filter(
    (check) => passes(alike(direct, check), ['SUCCESS']) && !passes(alike(bridged, check), ['SUCCESS', 'INFO']),
  )
}

/** A warning says that something which should be so is not: the suite counts it where failures can be expected. */
function isFailing({ status }: Check): boolean {
  return status === 'FAILURE' || status === 'WARNING'
}

function judgeOne(name: string, checks: readonly Check[], scored: boolean, expected: readonly string[]): Verdict {
  const failing = checks.filter(isFailing)
  const passing = checks.filter(({ status }) => status === 'SUCCESS')
  const skipped = checks.filter(({ status }) => status === 'SKIPPED').length
  const isExpected = ({ id }: Check) => scored && (expected.includes(name) || expected.includes(`${name}:${id}`))
  const unexpected = failing.filter((check) => !isExpected(check))
  const counts = { scored, passed: passing.length, failed: failing.length, skipped, unexpected, lost: [] }
  if (passing.length + failing.length === 0) return { kind: 'none', ...counts }
  if (unexpected.length > 0) return { kind: 'fail', ...counts }
  const failed = new Set(failing.map(({ id }) => id))
  const passesAfterAll = expected.includes(name)
    ? failing.length === 0
    : passing.some((check) => isExpected(check) && !failed.has(check.id))
  if (passesAfterAll) return { kind: 'stale', ...counts }
  return { kind: failing.length > 0 ? 'expected' : 'pass', ...counts }
}
