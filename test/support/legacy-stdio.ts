/** A scripted legacy server on stdio, and what it has seen. */
import { join } from 'node:path'
import { execPath } from 'node:process'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import { temporaryFolder } from './folder.js'
import { readTranscript, type Transcript } from './transcript.js'

const script = fileURLToPath(new URL('../fixtures/legacy-stdio.mjs', import.meta.url))

export interface LegacyStdio extends Transcript {
  /** The entry of `mcpServers` that starts it. */
  server: { command: string; args: string[] }
}

export function legacyStdio(t: Test, plan: object = {}): LegacyStdio {
  const transcript = join(temporaryFolder(t), 'transcript')
  return {
    server: { command: execPath, args: [script, JSON.stringify({ ...plan, transcript })] },
    ...readTranscript(transcript),
  }
}
