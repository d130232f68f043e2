/**
 * Hides possible secrets in the text of a message when it is read. The text may be truncated anywhere. The rest stays
 * exactly as sent.
 */

import { withoutCredentials } from '../base/credentials/credentials.js'
import { HIDDEN } from '../base/credentials/forms.js'
import { isOfOAuth, isSecret, isSecretFlag, isSecretInList, isSecretValue } from '../base/credentials/names.js'
import { shortDigest } from '../base/crypto/digest.js'
import { begins, LONGEST, patternOf } from './paths.js'
import { endOfString } from './strings.js'

/** A text, and the number of values hidden in it. */
export interface Redacted {
  text: string
  hidden: number
}

/** Names of members that hold base64. */
const BINARY: ReadonlySet<string> = new Set(['blob', 'data'])
/** Levels of JSON within strings of JSON that are examined. Deeper ones are hidden. */
const DEEPEST = 4
/** Members of an object that describe a value, in lower case: its name, and the value. */
const CALLED: ReadonlySet<string> = new Set(
  'attribute env field header id k key label name param parameter property type variable'.split(' '),
)
const VALUES: ReadonlySet<string> = new Set('default defaultvalue v val value values'.split(' '))
/** Lists of names only, in lower case. In others, a value may follow a name: `["Authorization", "x"]`. */
const NAMES_ONLY: ReadonlySet<string> = new Set(
  'columns dependentrequired enum fields keys names properties required roles scopes tags types'.split(' '),
)
/** Where JSON begins in a text. */
const JSON_WITHIN = /[{[]\s*(?:["{[]|$)/

/**
 * Returns a function that hides secrets. `hide` has globs of JSON Pointers: `*` is one name, `**` any number of them.
 * `isHidden` hides further values of one text.
 */
export function redactor(hide: readonly string[]): (text: string, isHidden?: IsHidden) => Redacted {
  const patterns = hide.map(patternOf)
  return (text, isHidden) => {
    // In a batch, a path begins with the index of a message.
    const start = text.startsWith('[') ? 1 : 0
    if (!/^\s*(?:[{["\d-]|true|false|null)/.test(text)) return plainly(text)
    const hides: IsHidden = (path) =>
      patterns.some((pattern) => begins(pattern, path) || begins(pattern, path, start)) || isHidden?.(path) === true
    return new Redaction(text, hides, 0).run()
  }
}

/** A text that is not JSON. */
function plainly(text: string): Redacted {
  const shown = withoutCredentials(text)
  return { text: shown, hidden: shown === text ? 0 : 1 }
}

/** Whether the value at a path is hidden. The path is valid only during the call. */
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
  /** Of an object: a member names a secret, so the value is hidden, as in a list of headers. */
  isSecret: boolean
  /** The positions of values that a later member may mark as secret. */
  values: number[]
  /** A member shows that its `code` is one of OAuth; and the position of an earlier `code`. */
  isOAuth: boolean
  codes: number[]
  /** Of an array: the hidden element, because the one before it names a secret. */
  hides: string | undefined
}

/** A replaced part of the text. */
interface Replacement {
  start: number
  end: number
  shown: string
}

/** One pass over a text. */
class Redaction {
  readonly #text: string
  readonly #isHidden: IsHidden
  readonly #depth: number
  readonly #open: Open[] = []
  /** The path of the current value. */
  readonly #path: string[] = []
  readonly #replacements: Replacement[] = []
  #at = 0

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
        if (isOfOAuth(inside.key)) this.#isOAuth(inside)
      } else {
        // After a value comes a name, even if the comma is missing.
        if (inside) inside.named = false
        this.#value(char, inside)
      }
    }
    return this.#replaced()
  }

  /** The text with the replacements. Those inside a larger one are ignored. */
  #replaced(): Redacted {
    let [out, copied, hidden] = ['', 0, 0]
    for (const { start, end, shown } of this.#replacements.sort(
      (one, other) => one.start - other.start || other.end - one.end,
    )) {
      if (start < copied) continue
      out += this.#text.slice(copied, start) + shown
      copied = end
      hidden++
    }
    return { text: out + this.#text.slice(copied), hidden }
  }

  #value(char: string, inside: Open | undefined): void {
    const key = inside && !inside.isArray ? inside.key : undefined
    const length = inside ? inside.length + inside.key.length + 1 : 0
    this.#path.length = this.#open.length
    if (inside) this.#path[this.#open.length - 1] = inside.key
    if (key === 'requestState') {
      const end = endOfValue(this.#text, this.#at)
      this.#replace(end, JSON.stringify(`‹sealed, ${end - this.#at - (char === '"' ? 2 : 0)} B›`))
    } else if (length > LONGEST || this.#isSecret(key, inside) || this.#isHidden(this.#path)) {
      this.#replace(endOfValue(this.#text, this.#at), JSON.stringify(HIDDEN))
    } else {
      if (key !== undefined && VALUES.has(key.toLowerCase())) inside?.values.push(this.#at)
      if (key === 'code') inside?.codes.push(this.#at)
      if (char === '{' || char === '[') this.#enter(char === '[', length)
      else if (char === '"') this.#string(key, inside)
      else this.#literal()
    }
  }

  /** Whether the current value is secret because of its siblings. */
  #isSecret(key: string | undefined, inside: Open | undefined): boolean {
    if (inside?.isArray) return inside.hides === inside.key
    if (key === undefined || !inside) return false
    if (inside.isSecret && VALUES.has(key.toLowerCase())) return true
    return isSecret(key) || (key === 'code' && inside.isOAuth)
  }

  #enter(isArray: boolean, length: number): void {
    this.#open.push({
      isArray,
      length,
      key: isArray ? '0' : '',
      named: false,
      isSecret: false,
      values: [],
      isOAuth: false,
      codes: [],
      hides: undefined,
    })
    this.#at++
  }

  /** A number or a word; in a text that is not JSON, anything. After quotes of another kind, the rest is not JSON. */
  #literal(): void {
    const end = /['`]/.test(this.#text[this.#at] as string) ? this.#text.length : endOfValue(this.#text, this.#at)
    const value = this.#text.slice(this.#at, end)
    const shown = withoutCredentials(value)
    if (shown !== value) this.#replace(end, shown)
    else this.#at = end
  }

  #string(key: string | undefined, inside: Open | undefined): void {
    const end = endOfString(this.#text, this.#at)
    const value = stringAt(this.#text, this.#at, end)
    if (inside) this.#learn(key, value, inside)
    const isCutOff = end === this.#text.length
    if (key !== undefined && isSecretValue(key, value, isCutOff)) return this.#replace(end, JSON.stringify(HIDDEN))
    if (key !== undefined && BINARY.has(key) && /^[\w+/=\s-]{64,}$/.test(value)) {
      const digest = shortDigest(value).slice(0, 16)
      return this.#replace(end, JSON.stringify(`‹${value.length} characters, sha256 ${digest}›`))
    }
    const shown = shownOf(value, this.#depth)
    if (shown !== value) this.#replace(end, JSON.stringify(shown))
    else this.#at = end
  }

  /** Learns from a string whether its siblings are secret. */
  #learn(key: string | undefined, value: string, inside: Open): void {
    if (key !== undefined) {
      if (!CALLED.has(key.toLowerCase()) || !isSecret(value)) return
      inside.isSecret = true
      this.#hide(inside.values)
    } else if (isSecretFlag(value) || (Number(inside.key) % 2 === 0 && !this.#hasNamesOnly() && isSecretInList(value)))
      inside.hides = String(Number(inside.key) + 1)
  }

  /** Whether the current array holds names, by its own name. */
  #hasNamesOnly(): boolean {
    const around = this.#open.findLast(({ isArray }) => !isArray)
    return around !== undefined && NAMES_ONLY.has(around.key.toLowerCase())
  }

  #isOAuth(inside: Open): void {
    inside.isOAuth = true
    this.#hide(inside.codes)
  }

  /** Hides values before the current position. */
  #hide(starts: number[]): void {
    for (const start of starts.splice(0))
      if (start < this.#at)
        this.#replacements.push({ start, end: endOfValue(this.#text, start), shown: JSON.stringify(HIDDEN) })
  }

  #replace(end: number, shown: string): void {
    this.#replacements.push({ start: this.#at, end, shown })
    this.#at = end
  }
}

/** A string with its secrets hidden; it may be or contain JSON. */
function shownOf(value: string, depth: number): string {
  const at = value.search(JSON_WITHIN)
  const isJson = at >= 0 || value.startsWith('"')
  if (isJson && depth >= DEEPEST) return HIDDEN
  let shown = value
  if (isJson) {
    const start = Math.max(at, 0)
    const within = new Redaction(value.slice(start), () => false, depth + 1).run()
    if (within.hidden > 0) shown = value.slice(0, start) + within.text
  }
  return withoutCredentials(shown)
}

/** The value of a string, which may be truncated. */
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
