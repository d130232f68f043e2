/** The log on stderr: JSON lines for programs, readable lines on a terminal. Writing never delays or fails a call. */
import { pino } from 'pino'
import type { Log } from './events.js'
import { jsonLine } from './line.js'
import { readableLine } from './readable.js'

/** Options of the log. */
export interface LogOptions {
  /** Lines below this level are not written. */
  level: 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'silent'
  /** `auto`: for people on a terminal, and JSON otherwise. */
  format: 'auto' | 'json' | 'pretty'
}

/** The destination of lines. */
export interface LogOutput {
  write(line: string): void
  /** It is a terminal. */
  terminal: boolean
}

/** Whether the log is formatted for people. */
export function isReadable({ format }: Pick<LogOptions, 'format'>, { terminal }: Pick<LogOutput, 'terminal'>): boolean {
  return format === 'pretty' || (format === 'auto' && terminal)
}

/** Creates the logger. Every entry is one line, bounded, and without characters that hide text or control the terminal. */
export function createLog({ level, format }: LogOptions, output: LogOutput): Log {
  const readable = isReadable({ format }, output)
  const write = readable
    ? (line: string) => output.write(readableLine(jsonLine(line), output.terminal))
    : (line: string) => output.write(jsonLine(line))
  return pino({ level, base: null, timestamp: isoTime }, { write })
}

let now = 0
let text = ''

/** The time of a line, as pino's `isoTime`. Lines of the same millisecond share its text, which is a third of a line's cost. */
function isoTime(): string {
  const at = Date.now()
  if (at !== now) {
    now = at
    text = `,"time":"${new Date(at).toISOString()}"`
  }
  return text
}
