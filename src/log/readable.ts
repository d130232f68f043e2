/** Formats log lines for people at a terminal: time, level, message (not the event), and the other fields as key=value. */
import { escaped } from './line.js'

interface Level {
  name: string
  colour: number
}

const LEVELS: Readonly<Record<number, Level>> = {
  10: { name: 'TRACE', colour: 90 },
  20: { name: 'DEBUG', colour: 34 },
  30: { name: 'INFO', colour: 32 },
  40: { name: 'WARN', colour: 33 },
  50: { name: 'ERROR', colour: 31 },
  60: { name: 'FATAL', colour: 31 },
}
const GREY = 90
/** Values that need no quotes, because they are unambiguous. */
const BARE = /^[\w./:@%+~,-]+$/

/** A JSON line as a line of text. `colours` is for terminals. */
export function readableLine(line: string, colours: boolean): string {
  const { level, time, event: _, msg, ...fields } = JSON.parse(line) as Record<string, unknown>
  const paint = (text: string, colour: number) => (colours ? `\u001b[${colour}m${text}\u001b[39m` : text)
  const { name, colour } = LEVELS[Number(level)] ?? { name: String(level), colour: GREY }
  const rest = Object.entries(fields).map(([key, value]) => `${paint(`${shown(key)}=`, GREY)}${shown(value)}`)
  // JSON escapes, which are no longer than those in the original line.
  const said = escaped(JSON.stringify(String(msg ?? '')).slice(1, -1))
  return `${[timeOf(time), paint(name.padEnd(5), colour), said, ...rest].join(' ')}\n`
}

function shown(value: unknown): string {
  if (typeof value === 'string' && BARE.test(value)) return value
  return escaped(JSON.stringify(value))
}

/** The local time of day. */
function timeOf(time: unknown): string {
  const date = new Date(String(time))
  const two = (number: number) => String(number).padStart(2, '0')
  const milliseconds = String(date.getMilliseconds()).padStart(3, '0')
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}.${milliseconds}`
}
