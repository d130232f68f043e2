/** Builds the program if it is not built yet, and says so: `node .ci/built.mjs`. */
import { spawnSync } from 'node:child_process'
import { execPath, exit, stderr } from 'node:process'
import { isBuilt } from './is-built.mjs'

if (!isBuilt()) {
  stderr.write('Building mcp-bridge: some seconds, more on a busy machine. The next start needs no build.\n')
  const { status } = spawnSync(execPath, ['.ci/build.mjs'], { stdio: ['ignore', 2, 2] })
  if (status !== 0) exit(status ?? 1)
}
