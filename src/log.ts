/** The log, on stderr: lines of JSON for programs, readable ones on a terminal. Writing never holds up or fails a call. */
import { pino, stdTimeFunctions } from 'pino'
import type { Settings } from './config/settings.js'
import { jsonLine } from './log/line.js'
import { readableLine } from './log/readable.js'
import type { Log } from './logging.js'

/** Where lines go. */
export interface Output {
  write(line: string): void
  /** Somebody is looking. */
  terminal: boolean
}

/** Whether the log is for people rather than for programs. */
export function isReadable(
  { format }: Pick<Settings['log'], 'format'>,
  { terminal }: Pick<Output, 'terminal'>,
): boolean {
  return format === 'pretty' || (format === 'auto' && terminal)
}

/** Builds the logger. Every line is one line, bounded, and has no character that hides or drives anything. */
export function createLog({ level, format }: Settings['log'], output: Output): Log {
  const readable = isReadable({ format }, output)
  const write = readable
    ? (line: string) => output.write(readableLine(jsonLine(line), output.terminal))
    : (line: string) => output.write(jsonLine(line))
  return pino({ level, base: null, timestamp: stdTimeFunctions.isoTime }, { write })
}
