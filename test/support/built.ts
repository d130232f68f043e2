/** The bridge as it is published, for tests that what runs it from its sources would disturb. */
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { execPath } from 'node:process'
import type { Test } from 'tap'
import { copyOfSource } from './source.js'

/** Builds it into a folder that goes with the test. Gives the path of the file to start. */
export function build(t: Test): string {
  const source = copyOfSource(t)
  execFileSync(execPath, ['.ci/build.mjs'], { cwd: source })
  return join(source, 'dist', 'main.js')
}
