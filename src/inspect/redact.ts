/**
 * Hides what may be secret in the text of a message, when somebody reads it. The text may be cut off anywhere. What is
 * not hidden stays as it was sent.
 */
import { createHash } from 'node:crypto'
import { HIDDEN, isSecret, withoutCredentials } from '../credentials.js'
import { begins, LONGEST, patternOf } from './paths.js'
import { endOfString } from './strings.js'

/** A text with values hidden, and how many. */
export interface Redacted {
  text: string
  hidden: number
}

/** Names of members that hold base64. */
const BINARY = new Set(['blob', 'data'])
/** Levels of JSON within strings of JSON that are examined. */
const DEEPEST = 4

/**
 * A function that hides secrets. `hide` has globs of JSON Pointers: `*` is one name, `**` any number of them. `isHidden`
 * says what else is hidden of one text.
 */
export function redactor(hide: readonly string[]): (text: string, isHidden?: IsHidden) => Redacted {
  const patterns = hide.map(patternOf)
  return (text, isHidden) => {
    // In a batch, a path begins with the number of a message.
    const start = text.startsWith('[') ? 1 : 0
    const hides: IsHidden = (path) =>
      patterns.some((pattern) => begins(pattern, path) || begins(pattern, path, start)) || isHidden?.(path) === true
    return new Redaction(text, hides, 0).run()
  }
}

/** Whether the value at a path is hidden. The path is valid during the call only. */
type IsHidden = (path: readonly string[]) => boolean

/** An object or array that is open at a position. */
interface Open {
  isArray: boolean
  /** Characters of its path, with one for each name. */
  length: number
  /** The name or number of the current member. */
  key: string
  /** Whether a name comes next. */
  named: boolean
  /** A member has said that the value is that of something secret, as in a list of headers. */
  isSecret: boolean
}

/** One pass over a text. */
class Redaction {
  readonly #text: string
  readonly #isHidden: IsHidden
  readonly #depth: number
  readonly #open: Open[] = []
  /** The path of the current value. */
  readonly #path: string[] = []
  #out = ''
  #copied = 0
  #at = 0
  #hidden = 0

  constructor(text: string, isHidden: IsHidden, depth: number) {
    this.#text = text
    this.#isHidden = isHidden
    this.#depth = depth
  }

  run(): Redacted {
    const text = this.#text
    while (this.#at < text.length) {
      const char = text[this.#at] as string
      const inside = this.#open.at(-1)
      if (/[\s:]/.test(char)) this.#at++
      else if (char === ',') {
        if (inside?.isArray) inside.key = String(Number(inside.key) + 1)
        this.#at++
      } else if (char === '}' || char === ']') {
        this.#open.pop()
        this.#at++
      } else if (char === '"' && inside && !inside.isArray && !inside.named) {
        const end = endOfString(text, this.#at)
        inside.key = stringAt(text, this.#at, end)
        inside.named = true
        this.#at = end
      } else {
        // After a value a name comes, also if the comma is missing.
        if (inside) inside.named = false
        this.#value(char, inside)
      }
    }
    return { text: this.#out + text.slice(this.#copied), hidden: this.#hidden }
  }

  #value(char: string, inside: Open | undefined): void {
    const key = inside && !inside.isArray ? inside.key : undefined
    const length = inside ? inside.length + inside.key.length + 1 : 0
    this.#path.length = this.#open.length
    if (inside) this.#path[this.#open.length - 1] = inside.key
    if (key === 'requestState') {
      const end = endOfValue(this.#text, this.#at)
      this.#replace(end, JSON.stringify(`‹sealed, ${end - this.#at - (char === '"' ? 2 : 0)} B›`))
    } else if (length > LONGEST || (key !== undefined && isSecret(key)) || this.#isHidden(this.#path)) {
      this.#replace(endOfValue(this.#text, this.#at), JSON.stringify(HIDDEN))
    } else if (char === '{' || char === '[') {
      this.#open.push({ isArray: char === '[', length, key: char === '[' ? '0' : '', named: false, isSecret: false })
      this.#at++
    } else if (char === '"') this.#string(key, inside)
    else this.#literal()
  }

  /** A number or a word; in a text that is no JSON, anything. */
  #literal(): void {
    const end = endOfValue(this.#text, this.#at)
    const value = this.#text.slice(this.#at, end)
    const shown = withoutCredentials(value)
    if (shown !== value) this.#replace(end, shown)
    else this.#at = end
  }

  #string(key: string | undefined, inside: Open | undefined): void {
    const end = endOfString(this.#text, this.#at)
    const value = stringAt(this.#text, this.#at, end)
    if (inside && (key === 'name' || key === 'key') && isSecret(value)) inside.isSecret = true
    if (inside?.isSecret && key === 'value') return this.#replace(end, JSON.stringify(HIDDEN))
    if (key !== undefined && BINARY.has(key) && /^[\w+/=\s-]{64,}$/.test(value)) {
      const digest = createHash('sha256').update(value).digest('hex').slice(0, 16)
      return this.#replace(end, JSON.stringify(`‹${value.length} characters, sha256 ${digest}›`))
    }
    let shown = value
    if (/^\s*[{["]/.test(value) && this.#depth < DEEPEST) {
      const within = new Redaction(value, () => false, this.#depth + 1).run()
      if (within.hidden > 0) shown = within.text
    }
    shown = withoutCredentials(shown)
    if (shown !== value) this.#replace(end, JSON.stringify(shown))
    else this.#at = end
  }

  #replace(end: number, replacement: string): void {
    this.#out += this.#text.slice(this.#copied, this.#at) + replacement
    this.#copied = end
    this.#at = end
    this.#hidden++
  }
}

/** The value of a string, which may be cut off. */
function stringAt(text: string, start: number, end: number): string {
  const literal = text.slice(start, end)
  for (const tried of [literal, `${literal}"`, `${literal.replace(/\\(?:u[\da-f]{0,3})?$/i, '')}"`]) {
    try {
      return JSON.parse(tried) as string
    } catch {
      // The next form.
    }
  }
  return literal.slice(1)
}

/** The position after the value that begins at `start`. */
function endOfValue(text: string, start: number): number {
  let depth = 0
  let at = start
  while (at < text.length) {
    const char = text[at]
    if (char === '"') at = endOfString(text, at)
    else if (char === '{' || char === '[') {
      depth++
      at++
    } else if (char === '}' || char === ']') {
      if (depth === 0) return at
      depth--
      at++
    } else if (char === ',' && depth === 0) return at
    else at++
    if (depth === 0 && (char === '"' || char === '}' || char === ']')) return at
  }
  return at
}
