/** One name, one thing: an exported type has a name of its own, so that a reader who searches for it finds one place. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'

const root = fileURLToPath(new URL('../src/', import.meta.url))
/** What embedding programs import has the names that suit them. */
const PUBLIC = ['embed/options.ts', 'embed/file-options.ts']
const EXPORTED = /^export (?:declare )?(?:abstract )?(?:interface|type|class|enum) (\w+)/gm

t.test('no two exported types have the same name', async (t) => {
  const places = new Map<string, string[]>()
  for (const path of readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('.ts')))
    if (!PUBLIC.includes(path.replaceAll('\\', '/')))
      for (const [, name = ''] of readFileSync(join(root, path), 'utf8').matchAll(EXPORTED))
        places.set(name, [...(places.get(name) ?? []), path])
  t.ok(places.size > 500, `${places.size} types`)
  t.same(
    [...places].filter(([, paths]) => paths.length > 1),
    [],
  )
})
