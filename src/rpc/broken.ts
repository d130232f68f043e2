/** Text that was meant to be a message and cannot be read as one: whom it was meant for can often be told all the same. */
import type { Source } from './source.js'
import type { Json } from './splice.js'

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COLON = 0x3a
const SPACE = /[ \t\r\n]*/y
const SCALAR = /[^\s,}\]]{1,300}/y
const KEYS: ReadonlySet<string> = new Set(['jsonrpc', 'id', 'method', 'result', 'error'])

/**
 * The id of the request that a broken text answers: one that has NaN or NUL in it, is nested too deep, or lacks its result.
 * Undefined where no id can be read, and where the text may be something else: a request, or a line of a log. Every
 * character is looked at once.
 */
export function brokenAnswerTo({ text }: Source): Json | undefined {
  if (at(text, 0, SPACE) === text.length || text.charAt(at(text, 0, SPACE)) !== '{') return undefined
  const found = new Map<string, Json>()
  let depth = 0
  for (let i = 0; i < text.length; i++) {
    switch (text.charAt(i)) {
      case '{':
      case '[':
        depth++
        break
      case '}':
      case ']':
        depth--
        break
      case '"': {
        const end = endOfString(text, i)
        const colon = at(text, end, SPACE)
        if (depth === 1 && text.charCodeAt(colon) === COLON) {
          const key = text.slice(i + 1, end - 1)
          if (KEYS.has(key)) found.set(key, scalarAt(text, at(text, colon + 1, SPACE)))
        }
        i = end - 1
        break
      }
      default:
    }
  }
  const complete = depth === 0 || found.has('result') || found.has('error')
  return found.has('jsonrpc') && !found.has('method') && complete ? found.get('id') : undefined
}

/** Where the string ends that begins at `start`: behind its closing quote, or where the text ends. */
function endOfString(text: string, start: number): number {
  for (let i = start + 1; i < text.length; i++) {
    const c = text.charCodeAt(i)
    if (c === QUOTE) return i + 1
    if (c === BACKSLASH) i++
  }
  return text.length
}

/** Where something ends that is matched from `start` on. */
function at(text: string, start: number, pattern: RegExp): number {
  pattern.lastIndex = start
  return pattern.test(text) ? pattern.lastIndex : start
}

/** The string, number or word at `start`. */
function scalarAt(text: string, start: number): Json {
  const end = text.charCodeAt(start) === QUOTE ? endOfString(text, start) : at(text, start, SCALAR)
  return text.slice(start, end)
}
