/** The last of what a child wrote to stderr, kept for the moment when somebody has to be told why it died. */

const MAX_LINES = 100
const MAX_LINE = 1_000

export class Tail {
  readonly #onLine: ((line: string) => void) | undefined
  readonly #decoder = new TextDecoder()
  readonly #lines: string[] = []
  #rest = ''

  constructor(onLine?: (line: string) => void) {
    this.#onLine = onLine
  }

  push(chunk: Uint8Array): void {
    const [rest = '', ...reversed] = (this.#rest + this.#decoder.decode(chunk, { stream: true })).split('\n').reverse()
    this.#rest = rest.slice(-MAX_LINE)
    for (const line of reversed.reverse()) this.#add(line)
  }

  /** At most `count` of the last lines that say something. */
  lines(count: number): string[] {
    const all = this.#rest.trim() === '' ? this.#lines : [...this.#lines, printable(this.#rest)]
    return all.filter((line) => line.trim() !== '').slice(-count)
  }

  #add(text: string): void {
    const line = printable(text)
    this.#lines.push(line)
    if (this.#lines.length > MAX_LINES) this.#lines.shift()
    this.#onLine?.(line)
  }
}

/** Without colours and other commands to a terminal, and not endless. */
function printable(line: string): string {
  return line
    .slice(0, MAX_LINE)
    .replace(/\p{Cc}\[[0-9;?]*[A-Za-z]/gu, '')
    .replace(/\p{Cc}/gu, ' ')
}
