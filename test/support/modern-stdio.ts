/** A scripted modern server on stdio, and what it has seen. */
import { join } from 'node:path'
import { execPath } from 'node:process'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import { temporaryFolder } from './folder.js'
import { type ModernPlan, type Violation, withSchema } from './modern-plan.js'
import { linesOf, readTranscript, type Transcript } from './transcript.js'

const script = fileURLToPath(new URL('../fixtures/modern-stdio.mjs', import.meta.url))
const CLAIM = 'io.modelcontextprotocol/protocolVersion'

/** What test/fixtures/lines.mjs knows, too. */
export interface StdioPlan extends ModernPlan {
  banner?: string
  prompt?: string | string[]
  stderr?: string
  exit?: number
  stubborn?: boolean
  startFile?: string
  writes?: string
}

export interface ModernStdio extends Transcript {
  /** The entry of `mcpServers` that starts it. */
  server: { command: string; args: string[] }
  /** Everything that was not as it has to be, for tests to say that there is nothing. */
  violations(): Violation[]
  /** Ids of requests that were cancelled. */
  cancelled(): unknown[]
}

export function modernStdio(t: Test, plan: StdioPlan = {}): ModernStdio {
  const folder = temporaryFolder(t)
  const files = { transcript: join(folder, 'transcript'), notes: join(folder, 'notes') }
  const transcript = readTranscript(files.transcript)
  const notes = () =>
    linesOf(files.notes).map((line) => JSON.parse(line) as { violation?: Violation; cancelled?: unknown })
  const modernMessages = () =>
    transcript.messages().filter((message) => {
      const params = message['params'] as { _meta?: Record<string, unknown> } | undefined
      return !plan.dual || params?._meta?.[CLAIM] !== undefined
    })
  return {
    server: { command: execPath, args: [script, JSON.stringify({ ...plan, ...files })] },
    ...transcript,
    violations: () =>
      withSchema(
        notes().flatMap(({ violation }) => violation ?? []),
        modernMessages(),
      ),
    cancelled: () => notes().flatMap((note) => ('cancelled' in note ? [note.cancelled] : [])),
  }
}
