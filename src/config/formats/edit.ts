/** Changes members of objects in the text of a JSON file. Every other byte stays: comments, order, indentation. */
import { applyEdits, type Edit, type Node, parseTree } from 'jsonc-parser'
import { readJson } from './document.js'

/** The text of a file whose members can be changed. Each change gives the text after it. */
export interface Editable {
  value: unknown
  /** The text of the value under these keys; undefined if there is none. */
  textUnder(keys: readonly string[]): string | undefined
  /** Copies the text of the value under these keys from another file; unchanged if either has none. */
  restored(keys: readonly string[], old: Editable): string
  /** Applies changes to the object under these keys. The named members must exist. Throws an Uneditable. */
  changed(keys: readonly string[], changes: readonly FileChange[]): string
}

/** Why a text cannot be changed. */
export class Uneditable extends Error {
  override name = 'Uneditable'
}

interface JsonText {
  text: string
  root: Node
}

/** A change of one object: a member is replaced by others, or strings are put before the elements of an array. */
export type FileChange = { key: string; by: readonly (readonly [key: string, value: unknown])[] } | Before

interface Before {
  key: string
  before: readonly string[]
}

/** A level of indentation, if the file has none. */
export const STEP = '  '

/** A JSON file, without byte order mark. Throws a FormatError. */
export function editableJson(text: string): Editable {
  const { value } = readJson(text)
  const root = parseTree(text, [], { allowTrailingComma: true }) as Node
  return {
    value,
    textUnder: (keys) => {
      const node = nodeUnder(root, keys)
      return node && text.slice(node.offset, node.offset + node.length)
    },
    restored: (keys, old) => {
      const [node, content] = [nodeUnder(root, keys), old.textUnder(keys)]
      if (!node || content === undefined) return text
      return applyEdits(text, [{ offset: node.offset, length: node.length, content }])
    },
    changed: (keys, changes) => applyEdits(text, editsFor({ text, root }, keys, changes)),
  }
}

function editsFor(json: JsonText, keys: readonly string[], changes: readonly FileChange[]): Edit[] {
  const object = nodeUnder(json.root, keys) as Node
  return changes.map((change) => {
    const member = memberOf(object, change.key) as Node
    if ('before' in change) return elementsBefore(json, member, change)
    return change.by.length === 0 ? removal(object, member) : inPlaceOf(json, object, member, change.by)
  })
}

/** Of duplicate keys the last one counts, as for all programs. */
export function memberOf(object: Node, key: string): Node | undefined {
  return object.type === 'object'
    ? object.children?.findLast(({ children }) => children?.[0]?.value === key)
    : undefined
}

export function nodeUnder(root: Node, keys: readonly string[]): Node | undefined {
  return keys.reduce<Node | undefined>((node, key) => node && memberOf(node, key)?.children?.[1], root)
}

function inPlaceOf(json: JsonText, object: Node, member: Node, by: readonly (readonly [string, unknown])[]): Edit {
  const indent = indentOf(json, member)
  const step = stepOf(json, object, indent)
  const members = by.map(([key, value]) => `${JSON.stringify(key)}: ${rendered(json, value, indent, step)}`)
  const content = members.join(indent === undefined ? ', ' : `,${lineBreakOf(json)}${indent}`)
  return { offset: member.offset, length: member.length, content }
}

function elementsBefore(json: JsonText, member: Node, { before }: Before): Edit {
  const array = member.children?.[1] as Node
  const [first] = array.children ?? []
  const words = before.map((word) => JSON.stringify(word)).join(', ')
  if (!first) return { offset: array.offset + 1, length: 0, content: words }
  const indent = indentOf(json, first)
  const gap = indent === undefined ? ' ' : `${lineBreakOf(json)}${indent}`
  return { offset: first.offset, length: 0, content: `${words},${gap}` }
}

/** Removes the member with the comma before or after it. */
function removal({ children = [] }: Node, member: Node): Edit {
  const at = children.indexOf(member)
  const [previous, next] = [children[at - 1], children[at + 1]]
  const start = next || !previous ? member.offset : endOf(previous)
  const end = next ? next.offset : endOf(member)
  return { offset: start, length: end - start, content: '' }
}

export function endOf({ offset, length }: Node): number {
  return offset + length
}

/** The text before a node in its line, if that is only white space. */
export function indentOf({ text }: Pick<JsonText, 'text'>, { offset }: Node): string | undefined {
  return /(?:^|[\r\n])([ \t]*)$/.exec(text.slice(Math.max(0, offset - 1_000), offset))?.[1]
}

/** One level of indentation: that of a member, relative to the line where its object begins. */
function stepOf({ text }: JsonText, object: Node, indent: string | undefined): string {
  const line =
    text
      .slice(0, object.offset)
      .split(/[\r\n]/)
      .at(-1) ?? ''
  const outer = /^[ \t]*/.exec(line)?.[0] ?? ''
  return indent?.startsWith(outer) && indent.length > outer.length ? indent.slice(outer.length) : STEP
}

/** Objects have a line for each member if they are on a line of their own. Everything else is one line. */
function rendered(json: JsonText, value: unknown, indent: string | undefined, step: string): string {
  if (Array.isArray(value)) return `[${value.map((item) => JSON.stringify(item)).join(', ')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const members = Object.entries(value).map(([key, item]) => `${JSON.stringify(key)}: ${JSON.stringify(item)}`)
  if (members.length === 0) return '{}'
  if (indent === undefined) return `{ ${members.join(', ')} }`
  const end = lineBreakOf(json)
  return `{${end}${members.map((member) => indent + step + member).join(`,${end}`)}${end}${indent}}`
}

function lineBreakOf({ text }: JsonText): string {
  return text.includes('\r\n') ? '\r\n' : '\n'
}
