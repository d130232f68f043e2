/**
 * Writes the types of what the package exports into dist/types: the declarations of src/app/embed/index.ts and src/app/embed/plugin.ts, and
 * of what they refer to, which are types alone. Those of a configuration file are written out, so that they need no zod. Each is there for ES
 * modules and once more for CommonJS, because TypeScript takes the ending of a declaration for that of its module.
 */
import { spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { chdir, execPath, exit } from 'node:process'
import { fileURLToPath } from 'node:url'
import { exportsOf } from './exports.mjs'

const DECLARATIONS = '.tap/declarations'
const IMPORT = / from '(\.[^']+)\.js'/g
const ENTRIES = ['app/embed/index.d.ts', 'app/embed/plugin.d.ts']

chdir(fileURLToPath(new URL('..', import.meta.url)))
rmSync(DECLARATIONS, { recursive: true, force: true })
const { status } = spawnSync(execPath, ['node_modules/typescript/bin/tsc', '-p', '.ci/types.tsconfig.json'], {
  stdio: 'inherit',
})
if (status !== 0) exit(1)

const { fileOptionsModule } = await exportsOf('.ci/file-options.ts')
writeFileSync(join(DECLARATIONS, 'app/embed/file-options.d.ts'), fileOptionsModule())

const files = new Set(ENTRIES)
for (const file of files)
  for (const [, path] of readFileSync(join(DECLARATIONS, file), 'utf8').matchAll(IMPORT))
    files.add(`${join(dirname(file), path)}.d.ts`)
rmSync('dist/types', { recursive: true, force: true })
for (const file of files) {
  const text = readFileSync(join(DECLARATIONS, file), 'utf8')
  const target = join('dist/types', file)
  mkdirSync(dirname(target), { recursive: true })
  writeFileSync(target, text)
  writeFileSync(target.replace(/ts$/, 'cts'), text.replaceAll(IMPORT, " from '$1.cjs'"))
}
