/** Tells whether two words differ by one slip of a typist. */

/** Whether one letter is missing, added or different, or two neighbours are swapped. */
export function isOneSlipApart(one: string, other: string): boolean {
  const most = Math.min(one.length, other.length)
  if (Math.max(one.length, other.length) - most > 1) return false
  let before = 0
  while (before < most && one[before] === other[before]) before++
  let after = 0
  while (after < most - before && one.at(-1 - after) === other.at(-1 - after)) after++
  const left = one.slice(before, one.length - after)
  const right = other.slice(before, other.length - after)
  if (left.length <= 1 && right.length <= 1) return true
  return left.length === 2 && right.length === 2 && left[0] === right[1] && left[1] === right[0]
}
