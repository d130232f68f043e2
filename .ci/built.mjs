/** Builds the program if it is not built yet, and says so: `node .ci/built.mjs`; with --types also the types, for a package. */
import { spawnSync } from 'node:child_process'
import { argv, execPath, exit, stderr } from 'node:process'
import { isBuilt } from './is-built.mjs'

if (!isBuilt()) {
  stderr.write('Building mcp-bridge: some seconds, more on a busy machine. The next start needs no build.\n')
  run('.ci/build.mjs')
}
if (argv.includes('--types') && !isBuilt('dist/types/app/embed/index.d.ts')) run('.ci/types.mjs')

function run(script) {
  const { status } = spawnSync(execPath, [script], { stdio: ['ignore', 2, 2] })
  if (status !== 0) exit(status ?? 1)
}
