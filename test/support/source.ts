/** A copy of the sources that the package is built from, for tests that build or pack: nothing in the repository changes. */
import { cpSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import { temporaryFolder } from './folder.js'

const root = fileURLToPath(new URL('../../', import.meta.url))
const FILES = [
  '.npmrc',
  'CHANGELOG.md',
  'LICENSE',
  'README.md',
  'config',
  'docs',
  'package-lock.json',
  'package.json',
  'src',
  'tsconfig.json',
]
const SCRIPTS = [
  'audit.mjs',
  'build.mjs',
  'built.mjs',
  'exports.mjs',
  'file-options.ts',
  'is-built.mjs',
  'man-page.ts',
  'manifest.mjs',
  'page.mjs',
  'types.mjs',
  'types.tsconfig.json',
  'chunks',
]

/** The folder of the copy, which shares the installed packages with the repository. */
export function copyOfSource(t: Test): string {
  const folder = temporaryFolder(t)
  for (const path of [...FILES, ...SCRIPTS.map((name) => `.ci/${name}`)])
    cpSync(join(root, path), join(folder, path), { recursive: true })
  // A junction, because Windows lets only administrators make other links.
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'), 'junction')
  return folder
}
