/** Puts members into objects of the text of a JSON file, and takes them out. Every other byte stays, comments too. */
import { applyEdits, type Edit, type Node, parseTree } from 'jsonc-parser'
import { readJson } from './document.js'
import { endOf, indentOf, memberOf, nodeUnder, STEP } from './edit.js'

/** Puts a member at the end of the object under a key of the file, which is made if it is not there. Throws a FormatError. */
export function withMember(text: string, under: string, name: string, value: unknown): string {
  const [mark, plain] = unmarked(text)
  const root = treeOf(plain)
  const inside = nodeUnder(root, [under])
  return mark + (inside ? added(plain, inside, name, value) : added(plain, root, under, { [name]: value }))
}

/** Takes a member out of the object under a key, with the comment beside it. Throws a FormatError. */
export function withoutMember(text: string, under: string, name: string): string {
  const [mark, plain] = unmarked(text)
  const object = nodeUnder(treeOf(plain), [under])
  const member = object && memberOf(object, name)
  return mark + (object && member ? applyEdits(plain, removals(plain, object, member)) : plain)
}

function unmarked(text: string): [mark: string, plain: string] {
  return text.startsWith('\uFEFF') ? ['\uFEFF', text.slice(1)] : ['', text]
}

function treeOf(text: string): Node {
  readJson(text)
  return parseTree(text, [], { allowTrailingComma: true }) as Node
}

function added(text: string, object: Node, name: string, value: unknown): string {
  const last = object.children?.at(-1)
  const lineBreak = text.includes('\r\n') ? '\r\n' : '\n'
  const outer = lineIndent(text, object.offset)
  const isOpen = last ? indentOf({ text }, last) !== undefined : true
  const own = (last && indentOf({ text }, last)) ?? outer + stepIn(text)
  const lines = JSON.stringify(value, null, stepIn(text)).split('\n')
  const written = isOpen ? lines.join(lineBreak + own) : JSON.stringify(value)
  const member = `${JSON.stringify(name)}: ${written}`
  if (!last) {
    const content = `{${lineBreak}${own}${member}${lineBreak}${outer}}`
    return applyEdits(text, [{ offset: object.offset, length: object.length, content }])
  }
  const { comma, end } = after(text, last)
  const before: Edit[] = comma === undefined ? [{ offset: endOf(last), length: 0, content: ',' }] : []
  const gap = isOpen ? lineBreak + own : ' '
  const content = gap + member + (comma === undefined ? '' : ',')
  return applyEdits(text, [...before, { offset: isOpen ? end : (comma ?? endOf(last) - 1) + 1, length: 0, content }])
}

function removals(text: string, { children = [] }: Node, member: Node): Edit[] {
  const at = children.indexOf(member)
  const [previous, next] = [children[at - 1], children[at + 1]]
  const { comma, end } = after(text, member)
  const isAlone = indentOf({ text }, member) !== undefined && !(next && next.offset < end)
  const start = isAlone ? breakBefore(text, member.offset) : member.offset
  const own: Edit = isAlone
    ? { offset: start, length: end - start, content: '' }
    : next
      ? { offset: start, length: next.offset - start, content: '' }
      : {
          offset: previous ? endOf(previous) : start,
          length: endOf(member) - (previous ? endOf(previous) : start),
          content: '',
        }
  if (!isAlone || next || !previous || comma !== undefined) return [own]
  // What was before the last member is the last one now.
  const { comma: earlier } = after(text, previous)
  return earlier === undefined ? [own] : [{ offset: earlier, length: 1, content: '' }, own]
}

/** The comma after a member, and the end of what else is in its line: comments. */
function after(text: string, member: Node): { comma: number | undefined; end: number } {
  let comma: number | undefined
  let end = endOf(member)
  for (let at = end; at < text.length; ) {
    const next = partEnd(text, at)
    if (next === undefined || (text[at] === ',' && comma !== undefined)) break
    if (text[at] === ',') comma = at
    if (text[at] !== ' ' && text[at] !== '\t') end = next
    at = next
  }
  return { comma, end }
}

/** The end of a space, comma or comment; undefined if it is something else. */
function partEnd(text: string, at: number): number | undefined {
  const begins = text.slice(at, at + 2)
  if (/^[ \t,]/.test(begins)) return at + 1
  if (begins === '/*') return text.indexOf('*/', at + 2) + 2
  if (begins !== '//') return undefined
  const ends = ['\r', '\n'].map((lineBreak) => text.indexOf(lineBreak, at)).filter((end) => end >= 0)
  return Math.min(text.length, ...ends)
}

/** The white space with which the line of a position begins. */
function lineIndent(text: string, offset: number): string {
  return /^[ \t]*/.exec(text.slice(lineStart(text, offset)))?.[0] ?? ''
}

function lineStart(text: string, offset: number): number {
  return text.lastIndexOf('\n', offset - 1) + 1
}

/** The position of the line break before a line; 0 for the first one. */
function breakBefore(text: string, offset: number): number {
  const start = lineStart(text, offset)
  return Math.max(0, text[start - 2] === '\r' ? start - 2 : start - 1)
}

/** One level of indentation: that of the first indented line. */
function stepIn(text: string): string {
  return /[\r\n]([ \t]+)\S/.exec(text)?.[1] ?? STEP
}
