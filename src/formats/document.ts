/** The text of a configuration file: JSON with comments and trailing commas, or TOML; and where everything stands in it. */
import { type Node, type ParseError, parseTree, printParseErrorCode } from 'jsonc-parser'
import { parse as parseToml, TomlError } from 'smol-toml'

/** Counted from 1. */
export interface Position {
  line: number
  column: number
}

export interface Document {
  value: unknown
  /** Where the value under these keys stands, or the last on the way to it that there is. */
  locate(keys: readonly string[]): Position
}

/** Why a text cannot be read, and where. It quotes nothing of the text: secrets may stand there. */
export class FormatError extends Error {
  override name = 'FormatError'
  readonly position: Position

  constructor(message: string, position: Position) {
    super(`${message} at line ${position.line}, column ${position.column}`)
    this.position = position
  }
}

const START: Position = { line: 1, column: 1 }

/** What a parser expects, in words. */
const EXPECTED: Readonly<Record<string, string>> = {
  InvalidSymbol: 'a word that is no JSON',
  InvalidNumberFormat: 'a number that is no JSON',
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
  InvalidUnicode: 'an escape that is no JSON',
  InvalidEscapeCharacter: 'an escape that is no JSON (a backslash is written twice)',
  InvalidCharacter: 'a character that has to be escaped',
}

/** Reads JSON as editors take it. Throws a FormatError. */
export function readJson(text: string): Document {
  // A byte order mark, as editors of Windows write it.
  const plain = text.replace(/^\uFEFF/, '')
  if (plain.trim() === '') throw new FormatError('not valid JSON: the file is empty', START)
  const errors: ParseError[] = []
  try {
    const root = parseTree(plain, errors, { allowTrailingComma: true, disallowComments: false })
    const [first] = errors
    if (first)
      throw new FormatError(
        `not valid JSON: ${EXPECTED[printParseErrorCode(first.error)] ?? 'a mistake'}`,
        at(plain, first.offset),
      )
    if (!root) throw new FormatError('not valid JSON: a value is missing', START)
    return { value: valueIn(root), locate: (keys) => at(plain, nodeAt(root, keys).offset) }
  } catch (error) {
    if (error instanceof RangeError) throw new FormatError('not valid JSON: nested too deep', START)
    throw error
  }
}

/** Reads TOML. Positions are those of tables: the parser knows no others. Throws a FormatError. */
export function readToml(text: string): Document {
  const plain = text.replace(/^\uFEFF/, '')
  try {
    return { value: parseToml(plain), locate: (keys) => tableAt(plain, keys) }
  } catch (error) {
    // What it says goes on with an excerpt of the text.
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

/** Not with the library's own function: a key may be one that objects have from birth. */
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

/** The header of the innermost table with these keys. */
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
