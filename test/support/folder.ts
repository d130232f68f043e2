/** Folders and files for one test. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Scope } from './scope.js'

/** Makes an empty folder, which is deleted when the test ends. */
export function temporaryFolder(t: Scope): string {
  const folder = mkdtempSync(join(tmpdir(), 'mcp-bridge-test-'))
  // A program that has just been killed may still be writing here.
  t.teardown(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }))
  return folder
}

/** Writes a file into a folder of its own. What is not text is written as JSON. Gives the path; only the owner may read the file. */
export function temporaryFile(t: Scope, name: string, content: unknown): string {
  const file = join(temporaryFolder(t), name)
  writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content), { mode: 0o600 })
  return file
}
