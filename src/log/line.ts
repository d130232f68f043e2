/** Lines of the log as they may be shown: bounded, and without characters that break lines, drive terminals or hide text. */
import { DECEPTIVE } from '../printable.js'

/** Bytes of one line. */
export const MAX_LINE = 16 * 1024
/** Bytes of one value of a line that would be longer, and of all its values. */
const MAX_VALUE = 2 * 1024
const MAX_VALUES = MAX_LINE - MAX_VALUE

const PLAIN = /^[\x20-\x7e]*$/
const ALL_DECEPTIVE = new RegExp(DECEPTIVE, 'gu')

/** A line of pino, with its line break, as it may be written: the same JSON with escapes, cut where it is too long. */
export function jsonLine(line: string): string {
  const text = line.slice(0, -1)
  if (PLAIN.test(text) && text.length < MAX_LINE) return line
  const plain = escaped(text)
  return `${Buffer.byteLength(plain) < MAX_LINE ? plain : shortened(text)}\n`
}

/** The same JSON, or the same words, with escapes for what cannot be seen. Harmless text comes back as it is. */
export function escaped(text: string): string {
  return DECEPTIVE.test(text) ? text.replace(ALL_DECEPTIVE, escapeCharacter) : text
}

function escapeCharacter(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
}

/** The beginning of each value, for as many as there is room; `truncated` says that it is not all. */
function shortened(text: string): string {
  const members: string[] = []
  let size = 0
  for (const [key, value] of Object.entries(JSON.parse(text) as Record<string, unknown>)) {
    const member = `${escaped(JSON.stringify(beginning(key, 64)))}:${shortenedValue(value)}`
    size += Buffer.byteLength(member)
    if (size > MAX_VALUES) break
    members.push(member)
  }
  return `{${members.join(',')},"truncated":true}`
}

function shortenedValue(value: unknown): string {
  const json = escaped(JSON.stringify(value))
  if (Buffer.byteLength(json) <= MAX_VALUE) return json
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  // No character takes more than six bytes when it is escaped.
  return escaped(JSON.stringify(beginning(text, Math.floor(MAX_VALUE / 6) - 8)))
}

function beginning(text: string, max: number): string {
  return text.length <= max ? text : `${text.slice(0, max)}… (${text.length} characters)`
}
