/** Whether a file of dist is newer than all that it is made of. */
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'

const MADE_OF = [
  'src',
  '.ci/build.mjs',
  '.ci/chunks',
  '.ci/exports.mjs',
  '.ci/file-options.ts',
  '.ci/man-page.ts',
  '.ci/page.mjs',
  '.ci/types.mjs',
  'package.json',
  'package-lock.json',
]

export function isBuilt(file = 'dist/bridge.cjs') {
  const built = statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0
  return MADE_OF.every((path) => newest(path) < built)
}

function newest(path) {
  const state = statSync(path)
  if (!state.isDirectory()) return state.mtimeMs
  return Math.max(state.mtimeMs, ...readdirSync(path).map((name) => newest(join(path, name))))
}
