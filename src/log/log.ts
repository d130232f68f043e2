/** The log on stderr: JSON lines for programs, readable lines on a terminal. Writing never delays or fails a call. */
import serializers from 'pino-std-serializers'
import type { Log, LogFields } from './events.js'
import { jsonLine } from './line.js'
import { readableLine } from './readable.js'

/** Options of the log. */
export interface LogOptions {
  /** Lines below this level are not written. */
  level: 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'silent'
  /** `auto`: for people on a terminal, and JSON elsewhere. */
  format: 'auto' | 'json' | 'pretty'
}

/** The destination of lines. */
export interface LogOutput {
  write(line: string): void
  /** It is a terminal. */
  terminal: boolean
}

/** The levels, with the numbers that pino has for them. */
const LEVELS = { trace: 10, debug: 20, info: 30, warn: 40, error: 50, fatal: 60, silent: Number.POSITIVE_INFINITY }
type Level = keyof typeof LEVELS

/** Whether the log is formatted for people. */
export function isReadable({ format }: Pick<LogOptions, 'format'>, { terminal }: Pick<LogOutput, 'terminal'>): boolean {
  return format === 'pretty' || (format === 'auto' && terminal)
}

/**
 * Creates the logger. Every entry is one line, bounded, and without characters that hide text or control the terminal. Lines
 * have the form of those of pino. They are made here, because there is one for each call, and pino takes three times as long.
 */
export function createLog({ level, format }: LogOptions, output: LogOutput): Log {
  const readable = isReadable({ format }, output)
  const write = readable
    ? (line: string) => output.write(readableLine(jsonLine(line), output.terminal))
    : (line: string) => output.write(jsonLine(line))
  return new LineLog(level, write)
}

class LineLog implements Log {
  readonly #level: Level
  readonly #write: (line: string) => void
  /** Members of all lines, with a comma before each. */
  readonly #members: string

  constructor(level: Level, write: (line: string) => void, members = '') {
    this.#level = level
    this.#write = write
    this.#members = members
  }

  debug(fields: LogFields, message: string): void {
    this.#say('debug', fields, message)
  }

  info(fields: LogFields, message: string): void {
    this.#say('info', fields, message)
  }

  warn(fields: LogFields, message: string): void {
    this.#say('warn', fields, message)
  }

  error(fields: LogFields, message: string): void {
    this.#say('error', fields, message)
  }

  fatal(fields: LogFields, message: string): void {
    this.#say('fatal', fields, message)
  }

  isLevelEnabled(level: string): boolean {
    return Object.hasOwn(LEVELS, level) && LEVELS[level as Level] >= LEVELS[this.#level]
  }

  child(fields: { server: string } | { group: string }): Log {
    return new LineLog(this.#level, this.#write, this.#members + membersOf(fields))
  }

  #say(level: Level, fields: LogFields, message: string): void {
    if (LEVELS[level] < LEVELS[this.#level]) return
    const plain = fields['err'] === undefined ? fields : { ...fields, err: serializers.err(fields['err'] as Error) }
    const head = `{"level":${LEVELS[level]},"time":"${isoTime()}"${this.#members}`
    this.#write(`${head}${membersOf(plain)},"msg":${JSON.stringify(message)}}\n`)
  }
}

/** The fields as members of a JSON object, with a comma before each. */
function membersOf(fields: object): string {
  let text: string
  try {
    text = JSON.stringify(fields)
  } catch {
    text = JSON.stringify(Object.fromEntries(Object.entries(fields).map(([key, value]) => [key, serializable(value)])))
  }
  return text.length === 2 ? '' : `,${text.slice(1, -1)}`
}

/** A value without what JSON cannot say: it may refer to itself, or have large integers. */
function serializable(value: unknown): unknown {
  try {
    JSON.stringify(value)
    return value
  } catch {
    return String(value)
  }
}

let now = 0
let text = ''

/** The time. Lines of the same millisecond share its text. */
function isoTime(): string {
  const at = Date.now()
  if (at !== now) {
    now = at
    text = new Date(at).toISOString()
  }
  return text
}
