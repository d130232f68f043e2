/**
 * Reads the kind, method and id of a message from as few of its bytes as possible. It validates nothing, so it is for
 * messages that the receiver validates.
 */

import { MARK_LENGTH, startsWithMark } from './source.js'

/** What kind of message it is. The id is undefined in a notification, and in an error without one. */
export interface Head {
  form: 'request' | 'notification' | 'result' | 'error'
  method: string | undefined
  id: string | number | undefined
}

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COMMA = 0x2c
const COLON = 0x3a
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d
/** The first letter of null. */
const LETTER_N = 0x6e
const ZERO = 0x30
const NINE = 0x39
/** Most bytes of an id or a method. */
const LONGEST = 1_024
/** Most digits of an integer that a number always represents exactly. */
const EXACT = 15
const KEYS = ['id', 'method', 'result', 'error'].map((key) => new TextEncoder().encode(key))
const [ID, METHOD, RESULT, ERROR] = [0, 1, 2, 3]
const decoder = new TextDecoder()

/** The head of a message; undefined for a batch, and for bytes that are not a message. */
export function headIn(bytes: Uint8Array): Head | undefined {
  let at = space(bytes, startsWithMark(bytes) ? MARK_LENGTH : 0)
  if (bytes[at] !== OPEN_BRACE) return undefined
  let form: 'result' | 'error' | undefined
  let method: string | undefined
  let id: string | number | undefined
  let hasId = false
  let isIdNull = false
  let isResultNull = false
  while (at < bytes.length) {
    const key = space(bytes, at + 1)
    if (bytes[key] !== QUOTE) break
    const end = endOfString(bytes, key)
    const colon = space(bytes, end)
    if (bytes[colon] !== COLON) return undefined
    const start = space(bytes, colon + 1)
    const name = keyAt(bytes, key + 1, end - 1)
    const isNull = bytes[start] === LETTER_N
    if (name === RESULT && isNull) isResultNull = true
    else if (name === RESULT) form ??= 'result'
    else if (name === ERROR && !isNull) form = 'error'
    if (form && hasId) break
    at = endOfValue(bytes, start)
    if (name === ID) {
      id = idAt(bytes, start, at)
      hasId = true
      isIdNull = isNull
    } else if (name === METHOD && bytes[start] === QUOTE) method = stringAt(bytes, start, at)
    if (hasId && (method !== undefined || form)) break
    at = space(bytes, at)
    if (bytes[at] !== COMMA) break
  }
  if (method !== undefined) return { form: hasId && !isIdNull ? 'request' : 'notification', method, id }
  if (isResultNull) form ??= 'result'
  return form && { form, method: undefined, id }
}

/** The index in KEYS of the key between two positions; -1 for another key. */
function keyAt(bytes: Uint8Array, start: number, end: number): number {
  const length = end - start
  for (let number = 0; number < KEYS.length; number++) {
    const key = KEYS[number] as Uint8Array
    if (key.length !== length) continue
    let same = 0
    while (same < length && bytes[start + same] === key[same]) same++
    if (same === length) return number
  }
  return -1
}

/** The id between two positions: undefined for null; an integer that a number cannot represent stays a text. */
function idAt(bytes: Uint8Array, start: number, end: number): string | number | undefined {
  if (bytes[start] === QUOTE) return stringAt(bytes, start, end)
  let number = 0
  for (let at = start; at < end; at++) {
    const digit = (bytes[at] as number) - ZERO
    if (digit < 0 || digit > NINE - ZERO || end - start > EXACT)
      return other(decoder.decode(bytes.subarray(start, end)))
    number = 10 * number + digit
  }
  return number
}

function other(text: string): string | number | undefined {
  if (text === 'null') return undefined
  const number = Number(text)
  return Number.isSafeInteger(number) ? number : text.slice(0, LONGEST)
}

function stringAt(bytes: Uint8Array, start: number, end: number): string | undefined {
  if (end - start > LONGEST) return undefined
  const text = decoder.decode(bytes.subarray(start + 1, end - 1))
  if (!text.includes('\\')) return text
  try {
    return JSON.parse(`"${text}"`) as string
  } catch {
    return undefined
  }
}

function space(bytes: Uint8Array, from: number): number {
  let at = from
  while (bytes[at] === 0x20 || bytes[at] === 0x0a || bytes[at] === 0x0d || bytes[at] === 0x09) at++
  return at
}

/** The position after a string. */
function endOfString(bytes: Uint8Array, start: number): number {
  for (let at = start + 1; at < bytes.length; at++) {
    const byte = bytes[at]
    if (byte === QUOTE) return at + 1
    if (byte === BACKSLASH) at++
  }
  return bytes.length
}

/** The position after a value. */
function endOfValue(bytes: Uint8Array, start: number): number {
  let depth = 0
  let at = start
  while (at < bytes.length) {
    const byte = bytes[at]
    if (byte === QUOTE) {
      at = endOfString(bytes, at)
      if (depth === 0) return at
      continue
    }
    if (byte === OPEN_BRACE || byte === OPEN_BRACKET) depth++
    else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) {
      if (depth === 0) return at
      if (--depth === 0) return at + 1
    } else if (depth === 0 && (byte === COMMA || byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09))
      return at
    at++
  }
  return at
}
