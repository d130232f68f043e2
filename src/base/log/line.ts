/**
 * Makes log lines safe to display: bounded, and without characters that break lines, control terminals or hide text.
 */
import { printableJson } from '../texts/printable.js'

/** Most bytes of a line. */
export const MAX_LINE = 16 * 1024
/** Most bytes of a value in a line that is too long, and of all its values. */
const MAX_VALUE = 2 * 1024
const MAX_LINE_VALUES = MAX_LINE - MAX_VALUE

const PLAIN = /^[\x20-\x7e]*\n$/

/** A line of pino, including its line break, made safe: the same JSON with escapes, cut if it is too long. */
export function jsonLine(line: string): string {
  if (line.length <= MAX_LINE && PLAIN.test(line)) return line
  const text = line.slice(0, -1)
  const plain = printableJson(text)
  return `${Buffer.byteLength(plain) < MAX_LINE ? plain : shortened(text)}\n`
}

/** The beginning of each value, as long as there is room. `truncated` marks such a line. */
function shortened(text: string): string {
  const members: string[] = []
  let size = 0
  for (const [key, value] of Object.entries(JSON.parse(text) as Record<string, unknown>)) {
    const member = `${printableJson(JSON.stringify(beginning(key, 64)))}:${shortenedValue(value)}`
    size += Buffer.byteLength(member)
    if (size > MAX_LINE_VALUES) break
    members.push(member)
  }
  return `{${members.join(',')},"truncated":true}`
}

function shortenedValue(value: unknown): string {
  const json = printableJson(JSON.stringify(value))
  if (Buffer.byteLength(json) <= MAX_VALUE) return json
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  // An escaped character has at most six bytes.
  return printableJson(JSON.stringify(beginning(text, Math.floor(MAX_VALUE / 6) - 8)))
}

function beginning(text: string, max: number): string {
  return text.length <= max ? text : `${text.slice(0, max)}… (${text.length} characters)`
}
