/** A server on stdio that is as unkind as programs of users are (test/fixtures/unkind.mjs), and what it has seen. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { execPath } from 'node:process'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import { temporaryFolder } from './folder.js'
import { readTranscript, type Transcript } from './transcript.js'

const script = fileURLToPath(new URL('../fixtures/unkind.mjs', import.meta.url))

export interface Unkind extends Transcript {
  /** The entry of `mcpServers` that starts it. */
  server: { command: string; args: string[] }
  /** The processes that it has started itself. */
  grandchildren(): number[]
}

export function unkind(t: Test, plan: object = {}): Unkind {
  const transcript = join(temporaryFolder(t), 'transcript')
  const read = readTranscript(transcript)
  const grandchildren = () =>
    read.seen().flatMap(({ line }) => (line.startsWith('grandchild ') ? [Number(line.split(' ')[1])] : []))
  // Whatever becomes of the test, nothing of this is left.
  t.teardown(() => {
    for (const pid of [...read.pids().map(Number), ...grandchildren()]) end(pid)
  })
  return {
    server: { command: execPath, args: [script, JSON.stringify({ ...plan, transcript })] },
    ...read,
    grandchildren,
  }
}

/** Whether a process runs. One that has ended and was not waited for does not. */
export function runs(pid: number): boolean {
  try {
    process.kill(pid, 0)
  } catch {
    return false
  }
  return !isZombie(pid)
}

/** On Linux, where a process without a parent may stay in the list until somebody waits for it. */
function isZombie(pid: number): boolean {
  try {
    return /^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return false
  }
}

function end(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It is gone already.
  }
}
