/** What scripted servers on stdio write down: every line that comes in, after the process that it came to. */
import { readFileSync } from 'node:fs'

export interface Transcript {
  /** Every line that any of the processes has seen, with the process that saw it. */
  seen(): { pid: string; line: string }[]
  /** What came in as JSON, in order, from whichever process. */
  messages(): Record<string, unknown>[]
  /** Processes, in the order of their start. */
  pids(): string[]
}

/** Lines of a file; none as long as nobody has written it. */
export function linesOf(file: string): string[] {
  try {
    return readFileSync(file, 'utf8').split('\n').filter(Boolean)
  } catch {
    return []
  }
}

export function readTranscript(file: string): Transcript {
  const seen = () =>
    linesOf(file).map((entry) => {
      const at = entry.indexOf(' ')
      return { pid: entry.slice(0, at), line: entry.slice(at + 1) }
    })
  return {
    seen,
    messages: () =>
      seen()
        .map(({ line }) => parse(line))
        .filter((message) => message !== undefined),
    pids: () => [...new Set(seen().map(({ pid }) => pid))],
  }
}

/** An object from its text; undefined where it is none. */
function parse(line: string): Record<string, unknown> | undefined {
  if (!line.startsWith('{')) return undefined
  try {
    return JSON.parse(line) as Record<string, unknown>
  } catch {
    return undefined
  }
}
