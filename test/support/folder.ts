/** A folder that is there until the test ends, and another one each time. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'

export function ownFolder(t: Test): string {
  const folder = mkdtempSync(join(tmpdir(), 'mcp-bridge-test-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}
