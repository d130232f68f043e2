/** One name, one thing: who searches for an exported type or for a bound finds one place. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'

const root = fileURLToPath(new URL('../src/', import.meta.url))
/** What embedding programs import has the names that suit them. */
const PUBLIC = ['embed/options.ts', 'embed/file-options.ts']
const EXPORTED = /^export (?:declare )?(?:abstract )?(?:interface|type|class|enum) (\w+)/gm

/** A bound: a constant of a file, or one that rooms share (src/limits/constants.ts). */
const BOUND = /^(?:export )?const ((?:MAX|MOST)_\w+)/gm

t.test('no two exported types have the same name', async (t) => {
  const places = placesOf(EXPORTED, (path) => !PUBLIC.includes(path))
  t.ok(places.size > 500, `${places.size} types`)
  t.same(repeated(places), [])
})

t.test('no two bounds have the same name', async (t) => {
  const places = placesOf(BOUND)
  t.ok(places.size > 150, `${places.size} bounds`)
  t.same(repeated(places), [])
})

/** The files with each name that the pattern finds. */
function placesOf(pattern: RegExp, counts: (path: string) => boolean = () => true): ReadonlyMap<string, string[]> {
  const places = new Map<string, string[]>()
  for (const name of readdirSync(root, { recursive: true, encoding: 'utf8' })) {
    const path = name.replaceAll('\\', '/')
    if (!path.endsWith('.ts') || !counts(path)) continue
    for (const [, found = ''] of readFileSync(join(root, path), 'utf8').matchAll(pattern))
      places.set(found, [...(places.get(found) ?? []), path])
  }
  return places
}

function repeated(places: ReadonlyMap<string, string[]>): [name: string, paths: string[]][] {
  return [...places].filter(([, paths]) => paths.length > 1)
}
