/** JSON for people: adds line breaks and indentation, and changes nothing else. */

import { endOfString } from './strings.js'

const STEP = '  '
/** What JSON has outside of its strings, besides brackets, commas, colons and white space. */
const LITERAL = /^[-+.\w]$/
const SPACE = /^\s$/

/** Indents a JSON text, which may be truncated. Numbers, names and strings stay as they are. Other text is returned unchanged. */
export function indented(text: string): string {
  const lines: string[] = []
  let line = ''
  let depth = 0
  const next = () => {
    lines.push(line)
    line = STEP.repeat(depth)
  }
  for (let at = 0; at < text.length; at++) {
    const char = text[at] as string
    if (char === '"') {
      const end = endOfString(text, at)
      line += text.slice(at, end)
      at = end - 1
    } else if (char === '{' || char === '[') {
      line += char
      const closing = nextToken(text, at + 1)
      if (text[closing] === (char === '{' ? '}' : ']')) {
        line += text[closing]
        at = closing
      } else {
        depth++
        next()
      }
    } else if (char === '}' || char === ']') {
      if (depth === 0) return text
      depth--
      next()
      line += char
    } else if (char === ',') {
      line += char
      next()
    } else if (char === ':') line += ': '
    else if (LITERAL.test(char)) line += char
    else if (!SPACE.test(char)) return text
  }
  return [...lines, line].join('\n')
}

function nextToken(text: string, from: number): number {
  let at = from
  while (at < text.length && SPACE.test(text[at] as string)) at++
  return at
}
