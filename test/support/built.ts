/** The bridge as it is published, built once for a file of tests: without the helpers that run it from its sources. */
import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { execPath } from 'node:process'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'

const root = fileURLToPath(new URL('../../', import.meta.url))

/** Builds it into a folder that goes with the test. Gives the path of the file to start. */
export function build(t: Pick<Test, 'teardown'>): string {
  const folder = mkdtempSync(join(tmpdir(), 'mcp-bridge-built-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  copyFileSync(join(root, 'package.json'), join(folder, 'package.json'))
  execFileSync(execPath, ['.ci/build.mjs', join(folder, 'dist')], { cwd: root })
  return join(folder, 'dist', 'main.js')
}
