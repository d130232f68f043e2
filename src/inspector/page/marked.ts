/** The text of a message, with the values marked that the bridge has changed. */
import { html } from 'htm/preact'
import { indentOf, type JsonLine, type JsonText, jsonLines, prefixOf } from '../json-lines.js'
import { plainOf } from '../markdown.js'
import type { KeptText } from '../recorder/events.js'
import { pathOf, ruleWords, shown } from '../words.js'
import { kindOf, type Mark } from './changes.js'
import { explain, stopExplaining } from './tip.js'

/** A text, divided for a width. */
export interface Laid extends JsonText {
  marks: readonly Mark[]
  /** Characters of a line on the screen. */
  width: number
  /** Lines on the screen. */
  height: number
}

const known = new WeakMap<KeptText, Laid>()

/** Divides a text into lines of at most `width` characters. */
export function lay(payload: KeptText, width: number, marks: readonly Mark[]): Laid {
  const before = known.get(payload)
  const isSame = (one: Mark, i: number) => one.change === before?.marks[i]?.change
  if (before?.width === width && before.marks.length === marks.length && marks.every(isSame)) return before
  const text = jsonLines(
    payload.text,
    width,
    marks.map(({ pointer }) => pointer),
  )
  const height = text.lines.reduce((sum, line) => sum + heightOf(line, width), 0)
  const laid = { ...text, marks, width, height }
  known.set(payload, laid)
  return laid
}

/** Lines on the screen that a line takes. Those after the first one are indented more. */
function heightOf(line: JsonLine, width: number): number {
  const indent = indentOf(line)
  const length = indent + prefixOf(line).length + line.text.length
  return length <= width ? 1 : 1 + Math.ceil((length - width) / roomAfter(indent, width))
}

function roomAfter(indent: number, width: number): number {
  return Math.max(8, width - indent - 2)
}

/** With fewer lines, the head of a message is left out. */
const SMALL = 6
const BODIES: ReadonlySet<string> = new Set(['"params"', '"result"', '"error"'])

/** Whether the parameters or the result of a message begin in this line. */
function isBody({ depth, name }: JsonLine): boolean {
  return depth === 1 && BODIES.has(name)
}

/** Whether the first so many lines have one of these words, which are in lower case. */
export function isAmong(words: readonly string[], { lines }: Laid, most: number): boolean {
  const has = (text: string) => words.some((word) => text.includes(word))
  return lines.slice(0, most).some((line) => has(`${line.name}${line.text}`.toLowerCase()))
}

/** `most`: lines on the screen. `words`: the searched words, in lower case. */
export function MarkedJson({ laid, most, words }: { laid: Laid; most: number; words: readonly string[] }) {
  const sought = words.length === 0 ? undefined : new RegExp(`(${words.map(escaped).join('|')})`, 'i')
  let left = most
  let isTab = true
  const lines = []
  // The version and the id, which every message has, are left out.
  const body = most < laid.height && most < SMALL ? laid.lines.findIndex(isBody) : -1
  const from = Math.max(0, laid.lines[body]?.text === '{' ? body + 1 : body)
  for (const [i, line] of laid.lines.slice(from).entries()) {
    if (left <= 0) break
    const height = heightOf(line, laid.width)
    const isSigned = line.isFirst === true || (i === 0 && line.mark !== undefined)
    lines.push(
      drawn(height > left ? cutOff(line, laid.width, left) : line, { marks: laid.marks, sought, isSigned, isTab }),
    )
    if (isSigned) isTab = false
    left -= height
  }
  return html`<pre class="json">${lines}</pre>`
}

/** A line that goes on for longer than there is room. */
function cutOff(line: JsonLine, width: number, most: number): JsonLine {
  const indent = indentOf(line)
  const room = width + (most - 1) * roomAfter(indent, width) - indent - prefixOf(line).length - 1
  return { ...line, text: `${line.text.slice(0, Math.max(1, room))}…` }
}

/** The kinds of changes. The style sheet has a sign for each, because colour alone is not enough. */
const WORDS = { added: 'Added', removed: 'Removed', replaced: 'Rewritten' } as const

interface Drawing {
  marks: readonly Mark[]
  sought: RegExp | undefined
  /** The line has the sign of its mark. */
  isSigned: boolean
  /** The tab key stops at the sign. */
  isTab: boolean
}

function drawn(line: JsonLine, { marks, sought, isSigned, isTab }: Drawing) {
  const mark = line.mark === undefined ? undefined : marks[line.mark]
  const indent = indentOf(line)
  const style = { '--indent': `${indent + 2}ch` }
  const content = html`${' '.repeat(indent)}${line.name !== '' && html`<span class="name">${withFound(line.name, sought)}</span>: `}${withFound(line.text, sought)}${'\n'}`
  if (!mark) return html`<span class="line" style=${style}>${content}</span>`
  const kind = kindOf(mark)
  const { rule } = mark.change
  const sentence = plainOf(ruleWords(rule) ?? shown(rule))
  const show = ({ currentTarget }: Event) => explain(currentTarget as Element, `${WORDS[kind]}. ${sentence}`)
  return html`<span class=${`line ${kind}`} style=${style} onPointerEnter=${show} onPointerLeave=${stopExplaining}>${
    isSigned &&
    html`<button type="button" class="sign" tabindex=${isTab ? 0 : -1} aria-label=${`${WORDS[kind]}: ${pathOf(mark.change)}. ${sentence}`}
      onFocus=${show} onBlur=${stopExplaining} onClick=${show} onKeyDown=${turn}></button>`
  }${content}</span>`
}

/** A text with the searched words highlighted. */
function withFound(text: string, sought: RegExp | undefined) {
  if (!sought?.test(text)) return text
  // Every second part of the split is a word.
  return text.split(sought).map((part, i) => (i % 2 === 0 ? part : html`<mark>${part}</mark>`))
}

function escaped(word: string): string {
  return word.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&')
}

/** Arrow keys move between the marks of the panel. */
function turn(event: KeyboardEvent): void {
  const by = { ArrowDown: 1, ArrowUp: -1 }[event.key]
  if (by === undefined) return
  const signs = [...document.querySelectorAll<HTMLElement>('#panel .sign')]
  const next = signs[signs.indexOf(event.currentTarget as HTMLElement) + by]
  event.preventDefault()
  next?.focus()
}
