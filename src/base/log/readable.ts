/** Formats log lines for people at a terminal: time, level, message (not the event), and the other fields as key=value. */
import { printableJson } from '../texts/printable.js'
import { type Colour, painter } from './paint.js'

interface Level {
  name: string
  colour: Colour
}

const LEVELS: Readonly<Record<number, Level>> = {
  10: { name: 'TRACE', colour: 'gray' },
  20: { name: 'DEBUG', colour: 'blue' },
  30: { name: 'INFO', colour: 'green' },
  40: { name: 'WARN', colour: 'yellow' },
  50: { name: 'ERROR', colour: 'red' },
  60: { name: 'FATAL', colour: 'red' },
}
/** Values that need no quotes, because they are unambiguous. */
const BARE = /^[\w./:@%+~,-]+$/

/** A JSON line as a line of text. `colours` is for terminals. */
export function readableLine(line: string, colours: boolean): string {
  const { level, time, event: _, msg, ...fields } = JSON.parse(line) as Record<string, unknown>
  const paint = painter(colours)
  const { name, colour } = LEVELS[Number(level)] ?? { name: String(level), colour: 'gray' }
  const rest = Object.entries(fields).map(([key, value]) => `${paint('gray', `${shown(key)}=`)}${shown(value)}`)
  // JSON escapes, which are no longer than those in the original line.
  const said = printableJson(JSON.stringify(String(msg ?? '')).slice(1, -1))
  return `${[timeOf(time), paint(colour, name.padEnd(5)), said, ...rest].join(' ')}\n`
}

function shown(value: unknown): string {
  if (typeof value === 'string' && BARE.test(value)) return value
  return printableJson(JSON.stringify(value))
}

/** The local time of day. */
function timeOf(time: unknown): string {
  const date = new Date(String(time))
  const two = (number: number) => String(number).padStart(2, '0')
  const milliseconds = String(date.getMilliseconds()).padStart(3, '0')
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}.${milliseconds}`
}
