/** Compares two JSON values: removed, added and replaced values. The order of keys does not count. */

import { tokenOf } from '../../base/rpc/pointer.js'
import { begins, type Pattern, patternOf } from '../paths.js'

/** One difference. */
export interface Difference {
  /** JSON Pointer (RFC 6901) into the expected value; of an added value, into the actual one. */
  at: string
  /** JSON Pointer into the actual value, if it is another one because elements of a list have moved. */
  to?: string
  op: 'add' | 'remove' | 'replace'
  /** Of `remove` and `replace`. */
  expected?: unknown
  /** Of `add` and `replace`. */
  actual?: unknown
}

export interface Differences {
  readonly all: readonly Difference[]
  /** Number of further differences. */
  readonly more: number
}

/** Most differences that are listed. */
export const MAX_DIFFERENCES = 1_000
/** Levels whose members are compared one by one. Deeper values are compared as one. */
export const MAX_COMPARED_DEPTH = 64
/** Most comparisons of elements to align two lists of different lengths. Longer lists are compared by index. */
const MAX_ALIGNMENT = 250_000

/** Two values to compare, and where they are. */
interface Pair {
  expected: unknown
  actual: unknown
  at: readonly string[]
  to: readonly string[]
}

/**
 * The differences between two values. `ignore` has globs of JSON Pointers into either value: `*` is one name, `**` any number of
 * them. Ignored values may also be missing.
 */
export function diff(expected: unknown, actual: unknown, ignore: readonly string[] = []): Differences {
  const patterns = ignore.map(patternOf)
  const all: Difference[] = []
  let more = 0
  const found = (one: Difference) => {
    if (all.length < MAX_DIFFERENCES) all.push(one)
    else more++
  }
  const isIgnored = (path: readonly string[]) => patterns.some((pattern) => begins(pattern, path))
  const stack: Pair[] = [{ expected, actual, at: [], to: [] }]
  for (let pair = stack.pop(); pair; pair = stack.pop()) {
    const { expected: left, actual: right, at, to } = pair
    if (left === right || isIgnored(at) || isIgnored(to)) continue
    if (!areAlike(left, right) || at.length >= MAX_COMPARED_DEPTH) {
      if (!areEqual(left, right)) found({ ...placeOf(at, to), op: 'replace', expected: left, actual: right })
      continue
    }
    const steps = stepsBetween(left as object, right as object, { at, to, patterns })
    const deeper: Pair[] = []
    for (const [from, into] of steps) {
      const own = [...at, from ?? '']
      const other = [...to, into ?? '']
      if (from === undefined) {
        if (!isIgnored(other)) found({ at: pointerOf(other), op: 'add', actual: memberOf(right, into) })
      } else if (into === undefined) {
        if (!isIgnored(own)) found({ at: pointerOf(own), op: 'remove', expected: memberOf(left, from) })
      } else deeper.push({ expected: memberOf(left, from), actual: memberOf(right, into), at: own, to: other })
    }
    // The stack hands out the last pair first.
    for (const one of deeper.reverse()) stack.push(one)
  }
  return { all, more }
}

/** A JSON Pointer of names. */
export function pointerOf(path: readonly string[]): string {
  return path.map((name) => `/${tokenOf(name)}`).join('')
}

function placeOf(at: readonly string[], to: readonly string[]): Pick<Difference, 'at' | 'to'> {
  const [from, into] = [pointerOf(at), pointerOf(to)]
  return from === into ? { at: from } : { at: from, to: into }
}

/** The members of two objects, or the elements of two lists, as they are compared. */
export function stepsBetween(left: object, right: object, where: Compared): Step[] {
  return Array.isArray(left) ? elementSteps(left, right as unknown[], where) : memberSteps(left, right)
}

/** Whether the members of two values are compared: both are objects, or both are lists. */
export function areAlike(left: unknown, right: unknown): boolean {
  return isContainer(left) && isContainer(right) && Array.isArray(left) === Array.isArray(right)
}

function isContainer(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}

export function memberOf(value: unknown, name: string | undefined): unknown {
  return name !== undefined && Object.hasOwn(value as object, name)
    ? (value as Record<string, unknown>)[name]
    : undefined
}

/** A member of both values, or of one of them. */
type Step = readonly [from: string | undefined, into: string | undefined]

function memberSteps(left: object, right: object): Step[] {
  const shared = Object.keys(left).map((name): Step => [name, Object.hasOwn(right, name) ? name : undefined])
  const added = Object.keys(right).filter((name) => !Object.hasOwn(left, name))
  return [...shared, ...added.map((name): Step => [undefined, name])]
}

/** The paths of two values, and the ignored paths. */
export interface Compared {
  at: readonly string[]
  to: readonly string[]
  patterns: readonly Pattern[]
}

/** Lists of the same length are compared by index, others so that as many equal elements as possible meet. */
function elementSteps(left: readonly unknown[], right: readonly unknown[], { at, to, patterns }: Compared): Step[] {
  if (left.length === right.length) return left.map((_, i): Step => [String(i), String(i)])
  const lefts = left.map((value, i) => fingerprint(value, [...at, String(i)], patterns))
  const rights = right.map((value, i) => fingerprint(value, [...to, String(i)], patterns))
  const shorter = Math.min(left.length, right.length)
  let before = 0
  while (before < shorter && lefts[before] === rights[before]) before++
  let after = 0
  while (after < shorter - before && lefts.at(-1 - after) === rights.at(-1 - after)) after++
  const ends = { left: left.length - after, right: right.length - after }
  const same = (count: number, from: number, into: number) =>
    Array.from({ length: count }, (_, i): Step => [String(from + i), String(into + i)])
  return [
    ...same(before, 0, 0),
    ...between(lefts.slice(before, ends.left), rights.slice(before, ends.right), before),
    ...same(after, ends.left, ends.right),
  ]
}

/** The steps of two lists that begin and end with other elements. `offset` is added to all indices. */
function between(lefts: readonly string[], rights: readonly string[], offset: number): Step[] {
  const steps: Step[] = []
  let [left, right] = [0, 0]
  /** Between two equal elements: the first ones of both sides are compared, the rest is removed or added. */
  const until = (leftEnd: number, rightEnd: number) => {
    while (left < leftEnd && right < rightEnd) steps.push([String(offset + left++), String(offset + right++)])
    while (left < leftEnd) steps.push([String(offset + left++), undefined])
    while (right < rightEnd) steps.push([undefined, String(offset + right++)])
  }
  for (const [i, j] of commonIn(lefts, rights)) {
    until(i, j)
    steps.push([String(offset + left++), String(offset + right++)])
  }
  until(lefts.length, rights.length)
  return steps
}

/** The longest common subsequence, as pairs of indices; none if the lists are long. */
function commonIn(lefts: readonly string[], rights: readonly string[]): [number, number][] {
  const [rows, columns] = [lefts.length + 1, rights.length + 1]
  if (rows * columns > MAX_ALIGNMENT) return []
  const lengths = new Uint32Array(rows * columns)
  for (let i = rows - 2; i >= 0; i--)
    for (let j = columns - 2; j >= 0; j--)
      lengths[i * columns + j] =
        lefts[i] === rights[j] ? lengthAt(i + 1, j + 1) + 1 : Math.max(lengthAt(i + 1, j), lengthAt(i, j + 1))
  const pairs: [number, number][] = []
  for (let [i, j] = [0, 0]; i < rows - 1 && j < columns - 1; ) {
    if (lefts[i] === rights[j]) pairs.push([i++, j++])
    else if (lengthAt(i + 1, j) >= lengthAt(i, j + 1)) i++
    else j++
  }
  return pairs

  function lengthAt(i: number, j: number): number {
    return lengths[i * columns + j] ?? 0
  }
}

/** Whether two values are equal, at any depth. */
export function areEqual(left: unknown, right: unknown): boolean {
  const stack: [unknown, unknown][] = [[left, right]]
  for (let pair = stack.pop(); pair; pair = stack.pop()) {
    const [one, other] = pair
    if (one === other) continue
    if (!areAlike(one, other)) return false
    const names = Object.keys(one as object)
    if (names.length !== Object.keys(other as object).length) return false
    for (const name of names) {
      if (!Object.hasOwn(other as object, name)) return false
      stack.push([memberOf(one, name), memberOf(other, name)])
    }
  }
  return true
}

/** A text that is the same for values without differences. */
function fingerprint(value: unknown, path: readonly string[], patterns: readonly Pattern[]): string {
  if (patterns.some((pattern) => begins(pattern, path))) return ''
  if (!isContainer(value)) return JSON.stringify(value)
  // Deeper members make no difference for the alignment: they are compared afterwards.
  if (path.length > MAX_COMPARED_DEPTH) return Array.isArray(value) ? '[]' : '{}'
  if (Array.isArray(value)) return `[${value.map((one, i) => fingerprint(one, [...path, String(i)], patterns)).join()}]`
  const members = Object.keys(value)
    .toSorted()
    .map((name) => {
      const text = fingerprint(memberOf(value, name), [...path, name], patterns)
      return text === '' ? '' : `${JSON.stringify(name)}:${text}`
    })
  return `{${members.filter(Boolean).join()}}`
}
