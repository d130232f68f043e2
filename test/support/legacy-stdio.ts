/** A scripted legacy server on stdio, and what it has seen. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { execPath } from 'node:process'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'

const script = fileURLToPath(new URL('../fixtures/legacy-stdio.mjs', import.meta.url))

export interface LegacyStdio {
  /** The entry of `mcpServers` that starts it. */
  server: { command: string; args: string[] }
  /** Every line that any of its processes has seen, with the process that saw it. */
  seen(): { pid: string; line: string }[]
  /** What came in as JSON, in order, from whichever process. */
  messages(): Record<string, unknown>[]
  /** Processes, in the order of their start. */
  pids(): string[]
}

export function legacyStdio(t: Test, plan: object = {}): LegacyStdio {
  const folder = mkdtempSync(join(tmpdir(), 'mcp-bridge-test-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const transcript = join(folder, 'transcript')
  const seen = () => {
    let text = ''
    try {
      text = readFileSync(transcript, 'utf8')
    } catch {
      // Nothing has been started yet.
    }
    return text
      .split('\n')
      .filter(Boolean)
      .map((entry) => {
        const at = entry.indexOf(' ')
        return { pid: entry.slice(0, at), line: entry.slice(at + 1) }
      })
  }
  return {
    server: { command: execPath, args: [script, JSON.stringify({ ...plan, transcript })] },
    seen,
    messages: () =>
      seen()
        .filter(({ line }) => line.startsWith('{'))
        .map(({ line }) => JSON.parse(line) as Record<string, unknown>),
    pids: () => [...new Set(seen().map(({ pid }) => pid))],
  }
}
