/** JSON as lines for people: short values stay on one line, and lines know which of the given values they belong to. */

import { tokensOf } from './changed-values.js'
import { endOfString } from './strings.js'

/** One line of JSON. */
export interface JsonLine {
  depth: number
  /** The name of the member, as written; empty if the line begins with no name. */
  name: string
  text: string
  /** The index of the innermost marked value that the line belongs to. */
  mark?: number
  /** The line is the first one of its marked value. */
  isFirst?: true
}

/** The lines of a text, and the marked values that it has, by their index. */
export interface JsonText {
  lines: readonly JsonLine[]
  found: ReadonlySet<number>
}

interface Value {
  start: number
  end: number
  /** Undefined for everything but objects and arrays. */
  members?: Member[]
  /** The text ends before the value does. */
  isCut?: true
}

interface Member {
  /** Undefined in an array. */
  name?: string
  value: Value
}

/** Deeper objects and arrays are one line each. */
const DEEPEST = 100
const STEP = 2
/** What JSON has outside of its strings, besides brackets, commas, colons and white space. */
const LITERAL = /[-+.\w]/
const SPACE = /\s/

/**
 * The lines of a JSON text, which may be truncated. Objects and arrays that fit into `width` characters are one line, unless
 * a marked value is inside. `marks` are JSON Pointers. Text that is not JSON stays as it is, without marks.
 */
export function jsonLines(text: string, width: number, marks: readonly string[] = []): JsonText {
  const root = new Reader(text).root()
  if (!root) return { lines: text.split('\n').map((line) => ({ depth: 0, name: '', text: line })), found: new Set() }
  const writer = new Writer(text, width)
  writer.write(root, treeOf(marks), { depth: 0, name: '', after: '' })
  return { lines: writer.lines, found: writer.found }
}

/** Marked values by the names on their paths. */
interface Tree {
  mark?: number
  readonly inside: Map<string, Tree>
}

function treeOf(marks: readonly string[]): Tree {
  const root: Tree = { inside: new Map() }
  for (const [mark, pointer] of marks.entries()) {
    let at = root
    for (const token of tokensOf(pointer)) {
      const next: Tree = at.inside.get(token) ?? { inside: new Map() }
      at.inside.set(token, next)
      at = next
    }
    at.mark = mark
  }
  return root
}

/** Reads values with their positions. */
class Reader {
  readonly #text: string
  #at = 0

  constructor(text: string) {
    this.#text = text
  }

  /** The only value of the text; undefined if it is not JSON. */
  root(): Value | undefined {
    this.#skip()
    if (this.#at >= this.#text.length) return undefined
    const root = this.#value(0)
    this.#skip()
    return root && this.#at >= this.#text.length ? root : undefined
  }

  #skip(): void {
    while (this.#at < this.#text.length && SPACE.test(this.#text[this.#at] as string)) this.#at++
  }

  #value(depth: number): Value | undefined {
    const text = this.#text
    const start = this.#at
    const char = text[start]
    if (char === '"') this.#at = endOfString(text, start)
    else if (char === '{' || char === '[') return depth < DEEPEST ? this.#container(char, depth) : this.#deep()
    else while (this.#at < text.length && LITERAL.test(text[this.#at] as string)) this.#at++
    return this.#at === start ? undefined : { start, end: this.#at }
  }

  #container(open: '{' | '[', depth: number): Value | undefined {
    const text = this.#text
    const start = this.#at++
    const members: Member[] = []
    for (;;) {
      this.#skip()
      const char = text[this.#at]
      if (char === undefined) return { start, end: this.#at, members, isCut: true }
      if (char === (open === '{' ? '}' : ']')) return { start, end: ++this.#at, members }
      if (char === ',' && members.length > 0) this.#at++
      else {
        const member = open === '{' ? this.#member(depth) : { value: this.#value(depth + 1) }
        if (!member?.value) return undefined
        members.push(member as Member)
      }
    }
  }

  #member(depth: number): Partial<Member> | undefined {
    const text = this.#text
    const start = this.#at
    if (text[start] !== '"') return undefined
    this.#at = endOfString(text, start)
    const name = text.slice(start, this.#at)
    this.#skip()
    const missing = { start: text.length, end: text.length }
    if (this.#at >= text.length) return { name, value: missing }
    if (text[this.#at++] !== ':') return undefined
    this.#skip()
    const value = this.#at >= text.length ? missing : this.#value(depth + 1)
    return value && { name, value }
  }

  /** An object or array that is not divided. */
  #deep(): Value {
    const text = this.#text
    const start = this.#at
    let open = 0
    while (this.#at < text.length) {
      const char = text[this.#at] as string
      if (char === '"') {
        this.#at = endOfString(text, this.#at)
        continue
      }
      this.#at++
      if (char === '{' || char === '[') open++
      else if ((char === '}' || char === ']') && --open === 0) break
    }
    return { start, end: this.#at }
  }
}

interface Where {
  depth: number
  name: string
  /** A comma, unless the value is the last one. */
  after: string
  /** The mark around the value. */
  mark?: number | undefined
}

class Writer {
  readonly lines: JsonLine[] = []
  readonly found = new Set<number>()
  readonly #text: string
  readonly #width: number

  constructor(text: string, width: number) {
    this.#text = text
    this.#width = width
  }

  write(value: Value, tree: Tree | undefined, { depth, name, after, mark: around }: Where): void {
    const own = tree?.mark
    if (own !== undefined) this.found.add(own)
    const mark = own ?? around
    const line = (words: string, begins: string, isFirst: boolean) =>
      this.lines.push({
        depth,
        name: begins,
        text: words,
        ...(mark !== undefined && { mark }),
        ...(isFirst && own !== undefined && { isFirst: true as const }),
      })
    const { start, members, isCut } = value
    const room = this.#width - depth * STEP - name.length - 2 - after.length
    const flat =
      members && members.length > 0 && tree?.inside.size
        ? undefined
        : this.#flat(value, members ? room : Number.POSITIVE_INFINITY)
    if (flat !== undefined || !members) {
      line(`${flat ?? ''}${after}`, name, true)
      return
    }
    const open = this.#text[start] as string
    line(open, name, true)
    for (const [i, member] of members.entries()) {
      const isLast = i === members.length - 1
      this.write(member.value, tree?.inside.get(nameOf(member, i)), {
        depth: depth + 1,
        name: member.name ?? '',
        after: isLast ? '' : ',',
        mark,
      })
    }
    if (!isCut) line(`${open === '{' ? '}' : ']'}${after}`, '', false)
  }

  /** A value on one line; undefined if it is longer than the room, or truncated. */
  #flat({ start, end, members, isCut }: Value, room: number): string | undefined {
    if (!members) return end - start <= room ? this.#text.slice(start, end) : undefined
    if (isCut) return undefined
    const open = this.#text[start] as string
    let flat = open
    for (const [i, { name, value }] of members.entries()) {
      const begin = `${i > 0 ? ', ' : ''}${name === undefined ? '' : `${name}: `}`
      const inside = this.#flat(value, room - flat.length - begin.length - 1)
      if (inside === undefined) return undefined
      flat += begin + inside
    }
    return flat.length + 1 > room && members.length > 0 ? undefined : `${flat}${open === '{' ? '}' : ']'}`
  }
}

function nameOf({ name }: Member, index: number): string {
  if (name === undefined) return String(index)
  try {
    return JSON.parse(name) as string
  } catch {
    return name.slice(1)
  }
}

/** The name at the beginning of a line. */
export function prefixOf({ name }: JsonLine): string {
  return name === '' ? '' : `${name}: `
}

/** Characters of the indentation of a line. */
export function indentOf({ depth }: JsonLine): number {
  return depth * STEP
}

/** A JSON text, which may be truncated, with a line for each value, as JSON.stringify indents it. Other text stays as it is. */
export function indented(text: string): string {
  const { lines } = jsonLines(text, 0)
  return lines.map((line) => ' '.repeat(indentOf(line)) + prefixOf(line) + line.text).join('\n')
}

/**
 * Divides room among texts that need this many lines each: whoever needs less than a fair share gets what it needs, and
 * each of the others an equal part of the rest, but not less than `least`.
 */
export function sharesOf(needs: readonly number[], room: number, least: number): number[] {
  const shares = needs.map(() => 0)
  let left = room
  let waiting = needs.map((_, i) => i)
  while (waiting.length > 0) {
    const fair = Math.max(least, Math.floor(left / waiting.length))
    const content = waiting.filter((i) => (needs[i] as number) <= fair)
    for (const i of content.length > 0 ? content : waiting) {
      const share = content.length > 0 ? (needs[i] as number) : fair
      shares[i] = share
      left -= share
    }
    waiting = content.length > 0 ? waiting.filter((i) => !content.includes(i)) : []
  }
  return shares
}
