/** Writes two JSON values side by side: equal lines share a row, differences are marked. */
import { begins, type Pattern, patternOf } from '../paths.js'
import { areAlike, areEqual, type Compared, MAX_COMPARED_DEPTH, memberOf, stepsBetween } from './diff.js'

/** Two lines that belong together; one is missing if only one value has it. */
export interface ComparedRow {
  kind: 'same' | 'ignored' | 'add' | 'remove' | 'replace'
  left?: string
  right?: string
}

export interface ComparedRows {
  rows: readonly ComparedRow[]
  /** There are more rows, which are not made. */
  isCut: boolean
}

/** Most rows, and characters of a value that stays in one line. */
const MAX_COMPARED_ROWS = 2_000
const FLAT = 100
const INDENT = 2

/** The rows of two values. `ignore` is as in `diff`. */
export function sideBySide(expected: unknown, actual: unknown, ignore: readonly string[] = []): ComparedRows {
  const writer = new RowWriter(ignore.map(patternOf))
  writer.compare(expected, actual, { at: [], to: [], depth: 0, name: '' })
  return { rows: writer.rows, isCut: writer.isFull }
}

interface Place extends Pick<Compared, 'at' | 'to'> {
  depth: number
  /** The name before the values, as JSON with a colon; '' in a list. */
  name: string
}

class RowWriter {
  readonly rows: ComparedRow[] = []
  readonly #patterns: readonly Pattern[]

  constructor(patterns: readonly Pattern[]) {
    this.#patterns = patterns
  }

  get isFull(): boolean {
    return this.rows.length >= MAX_COMPARED_ROWS
  }

  compare(left: unknown, right: unknown, place: Place): void {
    const { at, to, depth, name } = place
    if (this.#isIgnored(at) || this.#isIgnored(to)) return this.#both('ignored', left, right, place)
    if (areEqual(left, right)) return this.#both('same', left, right, place)
    if (!areAlike(left, right) || depth >= MAX_COMPARED_DEPTH) return this.#both('replace', left, right, place)
    const [open, close] = Array.isArray(left) ? '[]' : '{}'
    this.#add({ kind: 'same', left: lineOf(depth, `${name}${open}`), right: lineOf(depth, `${name}${open}`) })
    const where = { at, to, patterns: this.#patterns }
    for (const [from, into] of stepsBetween(left as object, right as object, where)) {
      if (this.isFull) return
      const inside: Place = {
        at: [...at, from ?? ''],
        to: [...to, into ?? ''],
        depth: depth + 1,
        name: Array.isArray(left) ? '' : `${JSON.stringify(from ?? into)}: `,
      }
      const [one, other] = [memberOf(left, from), memberOf(right, into)]
      if (from === undefined) this.#one('right', other, inside, this.#isIgnored(inside.to))
      else if (into === undefined) this.#one('left', one, inside, this.#isIgnored(inside.at))
      else this.compare(one, other, inside)
    }
    this.#add({ kind: 'same', left: lineOf(depth, close as string), right: lineOf(depth, close as string) })
  }

  #isIgnored(path: readonly string[]): boolean {
    return this.#patterns.some((pattern) => begins(pattern, path))
  }

  #both(kind: ComparedRow['kind'], left: unknown, right: unknown, { depth, name }: Place): void {
    const lefts = linesOf(left, depth, name)
    const rights = kind === 'same' ? lefts : linesOf(right, depth, name)
    for (let i = 0; i < Math.max(lefts.length, rights.length); i++)
      this.#add({
        kind,
        ...(lefts[i] !== undefined && { left: lefts[i] as string }),
        ...(rights[i] !== undefined && { right: rights[i] as string }),
      })
  }

  #one(side: 'left' | 'right', value: unknown, { depth, name }: Place, isIgnored: boolean): void {
    const kind = isIgnored ? 'ignored' : side === 'left' ? 'remove' : 'add'
    for (const line of linesOf(value, depth, name)) this.#add({ kind, [side]: line })
  }

  #add(row: ComparedRow): void {
    if (!this.isFull) this.rows.push(row)
  }
}

/** A value in lines: in one, if it is short. */
function linesOf(value: unknown, depth: number, name: string): string[] {
  const flat = JSON.stringify(value)
  if (flat.length <= FLAT || typeof value !== 'object') return [lineOf(depth, name + flat)]
  const [first = '', ...others] = JSON.stringify(value, null, INDENT).split('\n')
  return [lineOf(depth, name + first), ...others.map((line) => lineOf(depth, line))]
}

function lineOf(depth: number, text: string): string {
  return ' '.repeat(depth * INDENT) + text
}
