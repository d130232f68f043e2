/** Changes members of tables in the text of a TOML file. Comments, order and all other tables stay. */
import { type AST, parseTOML } from 'toml-eslint-parser'
import { isObject, valueAt } from '../value.js'
import { readToml } from './document.js'
import { type Editable, type FileChange, Uneditable } from './edit.js'

type Path = readonly string[]
type Members = readonly (readonly [key: string, value: unknown])[]

/** A table or a pair of the file. */
interface Part {
  node: AST.TOMLTable | AST.TOMLKeyValue
  path: Path
  /** The path of the table that it is in; of a table with a header, that of the file. */
  within: Path
}

interface Edit {
  start: number
  end: number
  content: string
}

/** A TOML file, without byte order mark. Throws a FormatError. */
export function editableToml(text: string): Editable {
  const { value } = readToml(text)
  const parts = partsOf(parseTOML(text).body[0])
  const textUnder = (keys: Path) => {
    const range = rangeOf(parts, keys)
    return range && text.slice(...range)
  }
  return {
    value,
    textUnder,
    restored(keys, old) {
      const [range, original] = [rangeOf(parts, keys), old.textUnder(keys)]
      if (!range || original === undefined) return text
      const after = text.slice(0, range[0]) + original + text.slice(range[1])
      return isValue(
        after,
        withValue(value, keys, () => valueAt(old.value, keys)),
      )
        ? after
        : text
    },
    changed(keys, changes) {
      const file = { text, parts, keys }
      const after = applied(
        text,
        changes.flatMap((change) => editsFor(file, change)),
      )
      if (
        isValue(
          after,
          withValue(value, keys, (object) => changes.reduce(valueAfter, object)),
        )
      )
        return after
      throw new Uneditable('it is written in a form of TOML that mcp-bridge cannot change')
    },
  }
}

interface File {
  text: string
  parts: readonly Part[]
  /** The keys of the table that is changed. */
  keys: Path
}

function partsOf({ body }: AST.TOMLTopLevelTable): Part[] {
  return body.flatMap((node) => {
    if (node.type === 'TOMLKeyValue') return pairsOf(node, [])
    const path = node.resolvedKey.map(String)
    return [{ node, path, within: [] }, ...node.body.flatMap((pair) => pairsOf(pair, path))]
  })
}

function pairsOf(node: AST.TOMLKeyValue, within: Path): Part[] {
  const path = [...within, ...node.key.keys.map(nameOf)]
  const { value } = node
  const inside = value.type === 'TOMLInlineTable' ? value.body.flatMap((pair) => pairsOf(pair, path)) : []
  return [{ node, path, within }, ...inside]
}

function nameOf(key: AST.TOMLBare | AST.TOMLQuoted): string {
  return key.type === 'TOMLBare' ? key.name : key.value
}

/** The parts of the value under these keys: one pair, or tables with headers and dotted pairs. */
function partsUnder(parts: readonly Part[], keys: Path): Part[] {
  return parts.filter(({ path, within }) => startsWith(path, keys) && !startsWith(within, keys))
}

function startsWith(path: Path, keys: Path): boolean {
  return keys.every((key, i) => path[i] === key)
}

/** The range of the value under these keys, if nothing else is between its parts. */
function rangeOf(parts: readonly Part[], keys: Path): [start: number, end: number] | undefined {
  const own = partsUnder(parts, keys)
  const [first, last] = [own[0], own.at(-1)]
  if (!first || !last) return undefined
  const range: [number, number] = [first.node.range[0], last.node.range[1]]
  const isBetween = ({ node, path }: Part) =>
    node.range[0] > range[0] && node.range[0] < range[1] && !startsWith(path, keys)
  return parts.some(isBetween) ? undefined : range
}

function editsFor(file: File, change: FileChange): Edit[] {
  const { text, parts, keys } = file
  const own = partsUnder(parts, [...keys, change.key])
  const [first, ...others] = own
  if (!first) throw new Uneditable(`it has no "${change.key}"`)
  if ('before' in change) return [elementsBefore(text, first.node, change.before)]
  const [start, end] = first.node.range
  const edit =
    change.by.length === 0 ? removal(text, first.node) : { start, end, content: rendered(file, first, change.by) }
  return [edit, ...others.map(({ node }) => removal(text, node))]
}

function rendered({ text, keys }: File, { node, within }: Part, by: Members): string {
  const end = text.includes('\r\n') ? '\r\n' : '\n'
  if (node.type === 'TOMLTable')
    return by
      .map(([key, value]) => {
        if (!isObject(value)) throw new Uneditable(`its "${key}" cannot be a table`)
        return [`[${[...keys, key].map(inKey).join('.')}]`, ...Object.entries(value).map(pair)].join(end)
      })
      .join(end + end)
  const own = node.key.keys[keys.length - within.length]
  if (!own) throw new Uneditable('its keys are written together')
  const prefix = text.slice(node.range[0], own.range[0])
  const isInline = node.parent.type === 'TOMLInlineTable'
  const before = text.slice(0, node.range[0])
  const indent = before.slice(Math.max(before.lastIndexOf('\n'), before.lastIndexOf('\r')) + 1)
  return by.map((member) => prefix + pair(member)).join(isInline ? ', ' : end + indent)
}

function elementsBefore(text: string, node: Part['node'], words: readonly string[]): Edit {
  if (node.type === 'TOMLTable' || node.value.type !== 'TOMLArray') throw new Uneditable('its "args" is not a list')
  const { elements, range } = node.value
  const [first] = elements
  const content = words.map(inToml).join(', ')
  if (!first) return { start: range[0] + 1, end: range[0] + 1, content }
  const indent = /(?:^|\r?\n)[ \t]*$/.exec(text.slice(0, first.range[0]))?.[0] ?? ' '
  return { start: first.range[0], end: first.range[0], content: `${content},${indent}` }
}

/** A pair goes with its line or comma, a table with the blank lines before it. */
function removal(text: string, node: Part['node']): Edit {
  const [start, end] = node.range
  if (node.type === 'TOMLKeyValue' && node.parent.type === 'TOMLInlineTable') {
    const { body } = node.parent
    const at = body.indexOf(node)
    const [previous, next] = [body[at - 1], body[at + 1]]
    return { start: next || !previous ? start : previous.range[1], end: next ? next.range[0] : end, content: '' }
  }
  const isTable = node.type === 'TOMLTable'
  const before = isTable ? blankBefore(text, start) : (/(?<=^|\n)[ \t]*$/.exec(text.slice(0, start))?.[0] ?? '')
  const after = (isTable ? /^[ \t]*(?:#[^\n]*)?(?:\n|$)/ : /^[ \t]*\r?(?:\n|$)/).exec(text.slice(end))?.[0] ?? ''
  return { start: start - before.length, end: end + after.length, content: '' }
}

function applied(text: string, edits: readonly Edit[]): string {
  return edits
    .toSorted((one, other) => other.start - one.start)
    .reduce((now, { start, end, content }) => now.slice(0, start) + content + now.slice(end), text)
}

function pair([key, value]: readonly [string, unknown]): string {
  return `${inKey(key)} = ${inToml(value)}`
}

function inKey(key: string): string {
  return /^[\w-]+$/.test(key) ? key : inToml(key)
}

/** A value in one line. */
function inToml(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(inToml).join(', ')}]`
  if (isObject(value)) {
    const members = Object.entries(value).map(pair)
    return members.length === 0 ? '{}' : `{ ${members.join(', ')} }`
  }
  return JSON.stringify(value).replaceAll('\u007f', '\\u007f')
}

function isValue(text: string, expected: unknown): boolean {
  try {
    return plain(readToml(text).value) === plain(expected)
  } catch {
    return false
  }
}

/** A value as canonical text, independent of the order of members. */
function plain(value: unknown): string {
  return JSON.stringify(value, (_key, one: unknown) =>
    isObject(one) ? Object.fromEntries(Object.entries(one).toSorted(([a], [b]) => (a < b ? -1 : 1))) : one,
  )
}

type Table = Readonly<Record<string, unknown>>

function withValue(value: unknown, [key, ...below]: Path, change: (table: Table) => unknown): unknown {
  const table = isObject(value) ? value : {}
  if (key === undefined) return change(table)
  const inside = withValue(Object.hasOwn(table, key) ? table[key] : undefined, below, change)
  return Object.fromEntries([...Object.entries(table).filter(([one]) => one !== key), [key, inside]])
}

function valueAfter(table: Table, change: FileChange): Table {
  const { key } = change
  const others = Object.entries(table).filter(([one]) => one !== key)
  const before = table[key]
  const by: Members =
    'by' in change ? change.by : [[key, [...change.before, ...(Array.isArray(before) ? (before as unknown[]) : [])]]]
  return Object.fromEntries([...others, ...by])
}

/** The white space before a position: in its line, and the empty lines above. */
function blankBefore(text: string, end: number): string {
  const skip = (at: number) => {
    let start = at
    while (start > 0 && (text[start - 1] === ' ' || text[start - 1] === '\t')) start--
    return start
  }
  let start = skip(end)
  while (text[start - 1] === '\n') {
    const above = skip(text[start - 2] === '\r' ? start - 2 : start - 1)
    // A line that is not empty keeps its line break.
    if (text[above - 1] !== '\n') break
    start = above
  }
  return text.slice(start, end)
}
