/** Parses configuration files, JSON with comments and trailing commas or TOML, with the positions of their values. */
import { type Node, type ParseError, parseTree, printParseErrorCode } from 'jsonc-parser'
import { parse as parseToml, TomlError } from 'smol-toml'

/** A position; line and column start at 1. */
export interface Position {
  line: number
  column: number
}

/** A parsed file. */
export interface Document {
  value: unknown
  /** The position of the value under these keys, or of the innermost enclosing one that exists. */
  locate(keys: readonly string[]): Position
}

/** Why a text cannot be parsed, and where. It does not quote the text, which may contain secrets. */
export class FormatError extends Error {
  override name = 'FormatError'
  readonly position: Position

  constructor(message: string, position: Position) {
    super(`${message} at line ${position.line}, column ${position.column}`)
    this.position = position
  }
}

const START: Position = { line: 1, column: 1 }

/** Parse errors in words. */
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
  if (plain.trim() === '') throw new FormatError('not valid JSON: the file is empty', START)
  const errors: ParseError[] = []
  try {
    const root = parseTree(plain, errors, { allowTrailingComma: true, disallowComments: false })
    const [first] = errors
    if (first)
      throw new FormatError(
        `not valid JSON: ${EXPECTED[printParseErrorCode(first.error)] ?? 'an error'}`,
        at(plain, first.offset),
      )
    if (!root) throw new FormatError('not valid JSON: a value is missing', START)
    return { value: valueIn(root), locate: (keys) => at(plain, nodeAt(root, keys).offset) }
  } catch (error) {
    if (error instanceof RangeError) throw new FormatError('not valid JSON: nested too deep', START)
    throw error
  }
}

/** Parses TOML. Positions are those of tables: the parser provides no others. Throws a FormatError. */
export function readToml(text: string): Document {
  const plain = text.replace(/^\uFEFF/, '')
  try {
    return { value: parseToml(plain), locate: (keys) => tableAt(plain, keys) }
  } catch (error) {
    // The rest of the message is an excerpt of the text.
    if (error instanceof TomlError) {
      const [message = ''] = error.message.replace(/^Invalid TOML document: /, '').split('\n')
      throw new FormatError(`not valid TOML: ${message}`, { line: error.line, column: error.column })
    }
    if (error instanceof RangeError) throw new FormatError('not valid TOML: nested too deep', START)
    throw error
  }
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
