/** Writes the arguments of a call for a person: a line for each value, with its place, in JSON. */

import { Fault } from '../../../base/fault/fault.js'
import { canonical } from '../../../base/rpc/canonical.js'
import type { Json } from '../../../base/rpc/splice.js'
import { visibleJson } from '../../../base/texts/printable.js'

/** What is not written. */
export interface Unwritten {
  /** Names of members whose values are hidden, wherever they are. */
  secrets: ReadonlySet<string>
  /** Arguments that are left out. */
  omitted: ReadonlySet<string>
}

/** Most lines, most characters of all of them, of a value and of its place. */
const MAX_ARGUMENT_LINES = 40
const MAX_ARGUMENT_TEXT = 4_000
const MAX_ARGUMENT_VALUE = 300
const MAX_PLACE = 120
const PLAIN = /^[a-z_][\w-]*$/i
const HIDDEN = '(hidden)'

/**
 * The lines, and how many more there would be. Throws a Fault if an object has two members of one name: programs disagree about
 * which of them counts.
 */
export function argumentLines(args: Json, unwritten: Unwritten): { lines: string[]; more: number } {
  const reader = new Reader(canonical(args), unwritten)
  reader.value('', true)
  const { lines, count } = reader
  return { lines, more: count - lines.length }
}

/** Reads a canonical text once. */
class Reader {
  readonly lines: string[] = []
  count = 0
  /** Characters that are left for lines. */
  #left = MAX_ARGUMENT_TEXT
  readonly #text: string
  readonly #unwritten: Unwritten
  #at = 0

  constructor(text: string, unwritten: Unwritten) {
    this.#text = text
    this.#unwritten = unwritten
  }

  value(place: string, isWritten: boolean): void {
    const opening = this.#text[this.#at]
    if (opening === '{') this.#object(place, isWritten)
    else if (opening === '[') this.#array(place, isWritten)
    else {
      const token = opening === '"' ? this.#string() : this.#plain()
      if (isWritten) this.#write(place, shown(token))
    }
  }

  #object(place: string, isWritten: boolean): void {
    const { secrets, omitted } = this.#unwritten
    let last: string | undefined
    this.#at++
    for (; this.#text[this.#at] !== '}'; this.#skip(',')) {
      const name = JSON.parse(this.#string()) as string
      if (name === last) throw new Fault('invalidParams', 'An object of the arguments has two members of one name')
      last = name
      this.#at++
      const isOmitted = place === '' && omitted.has(name)
      const isHidden = secrets.has(name)
      const inner = joined(place, PLAIN.test(name) ? name : visibleJson(JSON.stringify(name)))
      if (isWritten && isHidden && !isOmitted) this.#write(inner, HIDDEN)
      this.value(inner, isWritten && !isHidden && !isOmitted)
    }
    this.#at++
    if (isWritten && last === undefined && place !== '') this.#write(place, '{}')
  }

  #array(place: string, isWritten: boolean): void {
    this.#at++
    let index = 0
    for (; this.#text[this.#at] !== ']'; this.#skip(',')) this.value(`${place}[${index++}]`, isWritten)
    this.#at++
    if (isWritten && index === 0) this.#write(place, '[]')
  }

  #string(): string {
    const start = this.#at++
    while (this.#text[this.#at] !== '"') this.#at += this.#text[this.#at] === '\\' ? 2 : 1
    return this.#text.slice(start, ++this.#at)
  }

  #plain(): string {
    const start = this.#at
    while (this.#at < this.#text.length && !',]}'.includes(this.#text[this.#at] as string)) this.#at++
    return this.#text.slice(start, this.#at)
  }

  #skip(character: string): void {
    if (this.#text[this.#at] === character) this.#at++
  }

  #write(place: string, text: string): void {
    const line = `${place}: ${text}`
    this.#left -= line.length
    if (++this.count <= MAX_ARGUMENT_LINES && this.#left >= 0) this.lines.push(line)
  }
}

/** The place of a member. The end of a long one tells more than its beginning. */
function joined(place: string, name: string): string {
  const whole = place === '' ? name : `${place}.${name}`
  return whole.length > MAX_PLACE ? `…${whole.slice(-MAX_PLACE)}` : whole
}

function shown(token: string): string {
  if (token.length <= MAX_ARGUMENT_VALUE) return visibleJson(token)
  return `${visibleJson(token.slice(0, MAX_ARGUMENT_VALUE))}… (${token.length - MAX_ARGUMENT_VALUE} more characters)`
}
