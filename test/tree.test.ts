/** docs/tree.md: the list of source files, which .ci/tree.mjs makes. */
import { execFile } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { execPath } from 'node:process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t from 'tap'
import { temporaryFolder } from './support/folder.js'

const run = promisify(execFile)
const root = fileURLToPath(new URL('..', import.meta.url))

t.test('docs/tree.md lists the source files as they are', async () => {
  await run(execPath, ['.ci/tree.mjs', '--check'], { cwd: root })
})

t.test('the tree fails on a file that is missing in it, and on one that does not say what it is', async (t) => {
  const folder = temporaryFolder(t)
  for (const name of ['.ci', 'docs', 'src/net']) mkdirSync(join(folder, name), { recursive: true })
  cpSync(join(root, '.ci/tree.mjs'), join(folder, '.ci/tree.mjs'))
  const tree = (...args: string[]) => run(execPath, ['.ci/tree.mjs', ...args], { cwd: folder })

  writeFileSync(
    join(folder, 'src/main.ts'),
    '#!/usr/bin/env node\n/**\n * Starts all of\n * it. And more.\n */\nstart()\n/** No. */',
  )
  await tree()
  t.match(readFileSync(join(folder, 'docs/tree.md'), 'utf8'), /^## src\/\n\n- `main\.ts`: Starts all of it\.\n$/m)
  await tree('--check')

  writeFileSync(join(folder, 'src/net/proxy.ts'), '/** Finds proxies. */\n')
  await t.rejects(tree('--check'), /docs\/tree\.md .* Run: npm run tree\n$/)
  await tree()
  await tree('--check')

  writeFileSync(join(folder, 'src/net/proxy.ts'), "import './fetch.js'\n")
  await t.rejects(tree(), /do not begin with a comment that says what they are: net\/proxy\.ts\n$/)
})
