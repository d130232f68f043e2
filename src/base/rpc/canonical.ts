/** Computes the canonical text of a JSON value: texts with equal meanings have the same one. */
import { JsonError } from './scan.js'
import type { Json } from './splice.js'

/**
 * The value without white space, with members sorted by name and strings in their shortest form. Numbers are unchanged,
 * because JSON.parse would round 9007199254740993. Each character is read once, at any depth. Expects valid JSON; only
 * some invalid texts throw a JsonError.
 */
export function canonical(json: Json): Json {
  return new Reader(json).value()
}

const QUOTE = 0x22
const COMMA = 0x2c
const BACKSLASH = 0x5c

class Reader {
  readonly #text: string
  #at = 0

  constructor(text: string) {
    this.#text = text
  }

  /** Reads the next value. */
  value(): Json {
    switch (this.#peek()) {
      case 0x7b:
        return this.#object()
      case 0x5b:
        return this.#array()
      case QUOTE:
        return this.#string()
      default:
        return this.#plain()
    }
  }

  #object(): Json {
    const members: { name: string; key: Json; value: Json }[] = []
    this.#at++
    while (this.#peek() !== 0x7d) {
      const key = this.#string()
      this.#skip(0x3a)
      members.push({
        name: key.includes('\\') ? (JSON.parse(key) as string) : key.slice(1, -1),
        key,
        value: this.value(),
      })
      this.#skip(COMMA)
    }
    this.#at++
    members.sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0))
    // Concatenated, not joined: joining would copy inner texts once for each level.
    let out = '{'
    for (const [at, { key, value }] of members.entries()) out += `${at === 0 ? '' : ','}${key}:${value}`
    return `${out}}`
  }

  #array(): Json {
    let out = '['
    this.#at++
    for (let elements = 0; this.#peek() !== 0x5d; elements++) {
      out += (elements === 0 ? '' : ',') + this.value()
      this.#skip(COMMA)
    }
    this.#at++
    return `${out}]`
  }

  #string(): Json {
    const start = this.#at++
    let plain = true
    for (let c = this.#read(); c !== QUOTE; c = this.#read()) {
      if (c === BACKSLASH) plain = false
      this.#at += c === BACKSLASH ? 2 : 1
    }
    const text = this.#text.slice(start, ++this.#at)
    return plain ? text : JSON.stringify(JSON.parse(text))
  }

  /** A number, `true`, `false` or `null`. */
  #plain(): Json {
    const start = this.#at
    while (this.#at < this.#text.length && !ENDS.has(this.#text.charCodeAt(this.#at))) this.#at++
    if (this.#at === start) throw new JsonError('Unexpected character', start)
    return this.#text.slice(start, this.#at)
  }

  /** The next character that is not white space. */
  #peek(): number {
    let c = this.#read()
    while (c === 0x20 || c === 0x0a || c === 0x0d || c === 0x09) {
      this.#at++
      c = this.#read()
    }
    return c
  }

  #read(): number {
    if (this.#at >= this.#text.length) throw new JsonError('Unexpected end of text', this.#at)
    return this.#text.charCodeAt(this.#at)
  }

  /** Skips a character, if it is the next one. */
  #skip(character: number): void {
    if (this.#peek() === character) this.#at++
  }
}

/** Characters that end a number or a word. */
const ENDS: ReadonlySet<number> = new Set(Array.from(' \n\r\t,]}', (character) => character.charCodeAt(0)))
