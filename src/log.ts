/** The log on stderr: JSON lines for programs, readable lines on a terminal. Writing never delays or fails a call. */
import { pino, stdTimeFunctions } from 'pino'
import type { Settings } from './config/settings.js'
import { jsonLine } from './log/line.js'
import { readableLine } from './log/readable.js'
import type { Log } from './logging.js'

/** The destination of lines. */
export interface LogOutput {
  write(line: string): void
  /** It is a terminal. */
  terminal: boolean
}

/** Whether the log is formatted for people. */
export function isReadable(
  { format }: Pick<Settings['log'], 'format'>,
  { terminal }: Pick<LogOutput, 'terminal'>,
): boolean {
  return format === 'pretty' || (format === 'auto' && terminal)
}

/**
 * Creates the logger. Every entry is one line, bounded, and without characters that hide text or control the terminal.
 */
export function createLog({ level, format }: Pick<Settings['log'], 'level' | 'format'>, output: LogOutput): Log {
  const readable = isReadable({ format }, output)
  const write = readable
    ? (line: string) => output.write(readableLine(jsonLine(line), output.terminal))
    : (line: string) => output.write(jsonLine(line))
  return pino({ level, base: null, timestamp: stdTimeFunctions.isoTime }, { write })
}
