/** Finds out which request an invalid message was meant to answer. */
import type { JsonSource } from './source.js'
import type { Json } from './splice.js'

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COLON = 0x3a
const SPACE = /[ \t\r\n]*/y
const SCALAR = /[^\s,}\]]{1,300}/y
const KEYS: ReadonlySet<string> = new Set(['jsonrpc', 'id', 'method', 'result', 'error'])

/**
 * The id of the request that an invalid text answers; the text may contain NaN or NUL, be nested too deeply, or lack its
 * result. Undefined if it has no readable id, or may be a request or a line of a log. Reads each character once.
 */
export function brokenAnswerTo({ text }: JsonSource): Json | undefined {
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
  const isAnswer = (found.get('method') ?? 'null') === 'null'
  return found.has('jsonrpc') && isAnswer && complete ? found.get('id') : undefined
}

/** Index after the closing quote of the string at `start`; the length of the text if it does not end. */
function endOfString(text: string, start: number): number {
  for (let i = start + 1; i < text.length; i++) {
    const c = text.charCodeAt(i)
    if (c === QUOTE) return i + 1
    if (c === BACKSLASH) i++
  }
  return text.length
}

/** Index after the match of `pattern` at `start`. */
function at(text: string, start: number, pattern: RegExp): number {
  pattern.lastIndex = start
  return pattern.test(text) ? pattern.lastIndex : start
}

/** The string, number or word at `start`. */
function scalarAt(text: string, start: number): Json {
  const end = text.charCodeAt(start) === QUOTE ? endOfString(text, start) : at(text, start, SCALAR)
  return text.slice(start, end)
}
