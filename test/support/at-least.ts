/** For assertions in a loop over what was found in a text: a loop over nothing would pass. */
import type { Test } from 'tap'

/** What was found, which has to be so much. */
export function atLeast<T>(t: Test, count: number, what: string, found: Iterable<T>): T[] {
  const all = [...found]
  t.ok(all.length >= count, `there are ${all.length} ${what}`)
  return all
}
