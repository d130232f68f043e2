/** Parses configuration files, JSON with comments and trailing commas or TOML, with the positions of their values. */
import { type Node, type ParseError, parseTree, printParseErrorCode } from 'jsonc-parser'
import { parse as parseToml, TomlError } from 'smol-toml'

/** A position; line and column start at 1. */
export interface Position {
  line: number
  column: number
}

export interface Document {
  value: unknown
  /** The position of the value under these keys, or of the innermost enclosing one that exists. */
  locate(keys: readonly string[]): Position
  /** Duplicate keys in the object under these keys, with the position of the last one, which counts. */
  repeated(keys: readonly string[]): (readonly [key: string, position: Position])[]
}

/** Why a text cannot be parsed, and where. It does not quote the text, which may contain secrets. */
export class FormatError extends Error {
  override name = 'FormatError'
  /** All problems, in words. */
  readonly problems: readonly string[]

  constructor(what: string, places: readonly (readonly [why: string, position: Position])[]) {
    const problems = places.map(([why, { line, column }]) => `${why} at line ${line}, column ${column}`)
    const [first = '', ...more] = problems
    super(`${what}: ${first}`)
    this.problems = [`${what}: ${first}`, ...more]
  }
}

/** Most problems reported for one text. */
const MOST_PROBLEMS = 10

const START: Position = { line: 1, column: 1 }

const EXPECTED: Readonly<Record<string, string>> = {
  InvalidSymbol: 'an invalid word',
  InvalidNumberFormat: 'an invalid number',
  PropertyNameExpected: 'a key in double quotes is missing',
  ValueExpected: 'a value is missing',
  ColonExpected: 'a colon is missing',
  CommaExpected: 'a comma is missing',
  CloseBraceExpected: 'a closing brace is missing',
  CloseBracketExpected: 'a closing bracket is missing',
  EndOfFileExpected: 'there is more after the end',
  UnexpectedEndOfComment: 'a comment does not end',
  UnexpectedEndOfString: 'a string does not end',
  UnexpectedEndOfNumber: 'a number does not end',
  InvalidUnicode: 'an invalid escape',
  InvalidEscapeCharacter: 'an invalid escape (write a backslash twice)',
  InvalidCharacter: 'a character that must be escaped',
}

/** Parses JSON as editors accept it. Throws a FormatError. */
export function readJson(text: string): Document {
  // A byte order mark, as some Windows editors write it.
  const plain = text.replace(/^\uFEFF/, '')
  if (plain.trim() === '') throw invalidJson('the file is empty', START)
  const errors: ParseError[] = []
  try {
    const root = parseTree(plain, errors, { allowTrailingComma: true, disallowComments: false })
    if (errors.length > 0) throw syntaxError(plain, errors)
    if (!root) throw invalidJson('a value is missing', START)
    return {
      value: valueIn(root),
      locate: (keys) => at(plain, nodeAt(root, keys).offset),
      repeated: (keys) => repeatedIn(plain, root, keys),
    }
  } catch (error) {
    if (error instanceof RangeError) throw invalidJson('nested too deep', START)
    throw error
  }
}

function invalidJson(why: string, position: Position): FormatError {
  return new FormatError('not valid JSON', [[why, position]])
}

/** How other formats begin, in the first lines that are not comments. */
const YAML = /^(?:---|-\s|["']?[\w.-]+["']?:(?:\s|$))/
const TOML = /^(?:\[+[\w."-]+\]+\s*$|[\w.-]+\s*=\s)/

function syntaxError(text: string, errors: readonly ParseError[]): FormatError {
  const line = text.split(/\r?\n/).find((one) => !/^\s*(?:[#/]|$)/.test(one)) ?? ''
  const position = at(text, text.indexOf(line))
  if (YAML.test(line)) return invalidJson('it looks like YAML: convert it (yq -o json file.yaml)', position)
  if (TOML.test(line)) return invalidJson('it looks like TOML: its name has to end in .toml', position)
  // One error leads to others in the same line.
  let lineEnd = -1
  const places: (readonly [string, Position])[] = []
  for (const { error, offset } of errors) {
    if (offset <= lineEnd) continue
    places.push([whyAt(text.slice(offset), printParseErrorCode(error)), at(text, offset)])
    if (places.length === MOST_PROBLEMS) break
    const end = text.slice(offset).search(/[\r\n]/)
    lineEnd = end < 0 ? text.length : offset + end
  }
  return new FormatError('not valid JSON', places)
}

/** Frequent mistakes in JSON. */
const SLIPS: readonly (readonly [pattern: RegExp, why: string])[] = [
  [/^#/, 'a comment has to begin with //'],
  [/^--/, 'a comment has to begin with //'],
  [/^['`]/, 'a string has to be in double quotes'],
  [/^[\u2018-\u201f\u00ab\u00bb]/, 'typographic quotes have to be replaced by double quotes (")'],
  [/^(?:True|False|None|TRUE|FALSE|yes|no|on|off|undefined|NULL|nil)\b/, 'an invalid word (write true, false or null)'],
  [/^[\w$-]+\s*:/, 'a key has to be in double quotes'],
  [/^;/, 'a comma has to be written in place of a semicolon'],
  [/^=/, 'a colon has to be written in place of ='],
]

function whyAt(rest: string, code: string): string {
  return SLIPS.find(([pattern]) => pattern.test(rest))?.[1] ?? EXPECTED[code] ?? 'an error'
}

/** Parses TOML. Positions are those of tables: the parser provides no others. Throws a FormatError. */
export function readToml(text: string): Document {
  const plain = text.replace(/^\uFEFF/, '')
  const wrong = (why: string, position: Position) => new FormatError('not valid TOML', [[why, position]])
  try {
    // TOML forbids duplicate keys.
    return { value: parseToml(plain), locate: (keys) => tableAt(plain, keys), repeated: () => [] }
  } catch (error) {
    if (/^\s*\{/.test(plain)) throw wrong('it looks like JSON: its name has to end in .json', START)
    // The rest of the message is an excerpt of the text.
    if (error instanceof TomlError) {
      const [message = ''] = error.message.replace(/^Invalid TOML document: /, '').split('\n')
      throw wrong(message, { line: error.line, column: error.column })
    }
    if (error instanceof RangeError) throw wrong('nested too deep', START)
    throw error
  }
}

function repeatedIn(text: string, root: Node, keys: readonly string[]): (readonly [string, Position])[] {
  const object = nodeAt(root, keys)
  const seen = new Set<string>()
  const last = new Map<string, number>()
  for (const { children: [key] = [], offset } of object.type === 'object' ? (object.children ?? []) : []) {
    const name = String(key?.value)
    if (seen.has(name)) last.set(name, offset)
    seen.add(name)
  }
  return [...last].slice(0, MOST_PROBLEMS).map(([key, offset]) => [key, at(text, offset)] as const)
}

function at(text: string, offset: number): Position {
  const before = text.slice(0, offset).split(/\r\n|\r|\n/)
  return { line: before.length, column: (before.at(-1)?.length ?? 0) + 1 }
}

/** Not the library's own function: a key may be the name of a member of Object.prototype. */
function valueIn({ type, children = [], value }: Node): unknown {
  if (type === 'array') return children.map(valueIn)
  if (type !== 'object') return value
  return Object.fromEntries(
    children.flatMap(({ children: [key, member] = [] }) =>
      key && member ? [[String(key.value), valueIn(member)]] : [],
    ),
  )
}

function nodeAt(root: Node, keys: readonly string[]): Node {
  let found = root
  for (const key of keys) {
    const next =
      found.type === 'array'
        ? found.children?.[Number(key)]
        : found.children?.findLast(({ children }) => children?.[0]?.value === key)?.children?.[1]
    if (!next) break
    found = next
  }
  return found
}

/** The position of the header of the innermost table with these keys. */
function tableAt(text: string, keys: readonly string[]): Position {
  const lines = text.split(/\r\n|\n/)
  for (let depth = keys.length; depth > 0; depth--) {
    const line = lines.findIndex((one) => {
      const header = /^\s*\[([^[\]]*)\]/.exec(one)?.[1]
      const parts = header?.match(/"[^"]*"|'[^']*'|[^.\s]+/g)?.map((part) => part.replace(/^["']|["']$/g, ''))
      return parts?.length === depth && parts.every((part, i) => part === keys[i])
    })
    if (line >= 0) return { line: line + 1, column: 1 }
  }
  return START
}
