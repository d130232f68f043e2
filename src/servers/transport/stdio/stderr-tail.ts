/** Keeps the first and last lines that a child wrote to stderr, to explain why it ended. */

/** Lines that are kept from the beginning and from the end. */
const KEPT = { first: 40, last: 100 }
const MAX_STDERR_LINE = 1_000
/** Lines of an excerpt, from the beginning and from the end. */
const SHOWN = { first: 4, last: 6 }

/** Lines of npm that state no reason: a code alone, or where to read more. */
const NO_REASON = /^npm (?:notice|(?:error|ERR!)\s*(?:\d+|(?:code|errno|syscall|path) .*|A complete log .*)?$)/

/**
 * Patterns of lines that say why a program ended, the most certain first: npm about a package; an exception or a panic;
 * "error" or "fatal" at the beginning; something missing or refused. The last matching line counts, because a Python
 * traceback ends with the exception. Lines of a stack trace are indented, so they match none of the first patterns.
 */
const REASONS: readonly RegExp[] = [
  /^npm (?:error|ERR!) +(?:404 .*(?:could not be found|is not in this registry)|notarget No matching|could not determine executable|\w*Error: )/,
  /^(?:Uncaught |Exception in thread \S+ |thread '.*' panicked|panic: |(?:[\w$]+[.:]+)*[A-Z][\w$]*(?:Error|Exception)\b)/,
  /^(?:[\w./-]+: )?(?:\w+ )?(?:error|err!|fatal)\b/i,
  /\b(?:not found|cannot|can't|could not|no such|denied|unauthorized|missing|required|must be|invalid|failed|refused|in use|EADDRINUSE)\b/i,
]

export class StderrTail {
  readonly #onLine: ((line: string) => void) | undefined
  readonly #decoder = new TextDecoder()
  readonly #first: string[] = []
  readonly #last: string[] = []
  #left = 0
  #rest = ''

  constructor(onLine?: (line: string) => void) {
    this.#onLine = onLine
  }

  push(chunk: Uint8Array): void {
    const [first = '', ...others] = this.#decoder.decode(chunk, { stream: true }).split('\n')
    const rest = others.pop()
    if (rest === undefined) {
      this.#rest = (this.#rest + first).slice(-MAX_STDERR_LINE)
      return
    }
    this.#add(this.#rest + first)
    for (const line of others) this.#add(line)
    this.#rest = rest.slice(-MAX_STDERR_LINE)
  }

  /** The first and last lines that are not blank, with the number of omitted lines between them. */
  get lines(): string[] {
    const rest = this.#rest.trim() === '' ? [] : [printable(this.#rest)]
    const left = this.#left === 0 ? [] : [leftOut(this.#left)]
    return [...this.#first, ...left, ...this.#last, ...rest]
  }

  #add(text: string): void {
    const line = printable(text)
    this.#onLine?.(line)
    if (line.trim() === '') return
    if (this.#first.length < KEPT.first) this.#first.push(line)
    else if (this.#last.push(line) > KEPT.last) {
      this.#last.shift()
      this.#left++
    }
  }
}

/** A few of the lines: the one that looks most like the reason, then some from the beginning and the end. */
export function excerpt(lines: readonly string[]): string[] {
  const reason = reasonIn(lines)
  const others = lines.filter((line) => line !== reason)
  const most = SHOWN.first + SHOWN.last
  const shown =
    others.length <= most
      ? others
      : [...others.slice(0, SHOWN.first), leftOut(others.length - most), ...others.slice(-SHOWN.last)]
  return reason === undefined ? shown : [reason, ...shown]
}

/** The line that looks most like the reason why a program ended; undefined if none does. */
export function reasonIn(lines: readonly string[]): string | undefined {
  for (const pattern of REASONS) {
    const line = lines.findLast((one) => pattern.test(one) && !NO_REASON.test(one))
    if (line !== undefined) return line
  }
  return undefined
}

/** The line that looks most like the reason, or else the last one that is no part of a stack trace. */
export function lastWordsIn(lines: readonly string[]): string | undefined {
  return reasonIn(lines) ?? lines.findLast((line) => !/^(?:\s|Node\.js v\d|npm notice)/.test(line))
}

function leftOut(count: number): string {
  return `… (${count} lines left out)`
}

/** Removes terminal sequences and control characters, and cuts long lines. */
function printable(line: string): string {
  return line
    .slice(0, MAX_STDERR_LINE)
    .replace(/\p{Cc}\[[0-9;?]*[A-Za-z]/gu, '')
    .replace(/\p{Cc}/gu, ' ')
}
