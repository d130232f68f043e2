/** One name, one thing: who searches for an exported type or for a bound finds one place. Names of tests are claims. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'

const root = fileURLToPath(new URL('../src/', import.meta.url))
const tests = fileURLToPath(new URL('.//', import.meta.url))
/** What embedding programs import has the names that suit them. */
const PUBLIC = ['app/embed/options.ts', 'app/embed/file-options.ts']
const EXPORTED = /^export (?:declare )?(?:abstract )?(?:interface|type|class|enum) (\w+)/gm

/** A bound: a constant of a file, or one that rooms share (src/base/limits/constants.ts). */
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

t.test('the halves have one name on both sides and in both eras', async (t) => {
  const halves = readdirSync(root, { recursive: true, encoding: 'utf8' }).map((name) => name.replaceAll('\\', '/'))
  t.same(
    halves.filter((name) => /^(?:clients|servers)\/[^/]+\/half\.ts$/.test(name)).sort(),
    ['clients', 'servers'].flatMap((side) => ['legacy', 'modern'].map((era) => `${side}/${era}/half.ts`)),
  )
})

/** What labels of tests look like: `A5 `, `R20: `, `11.22 `, `4: `. */
const LABELLED = /\b(?:t\.)?test\(\s*['"`](?:[A-Z]{1,2}\d{1,3}[:, ]|\d{1,2}\.\d{1,2}[:, ]|\d{1,3}: ).*/g

t.test('no name of a test begins with a label', async (t) => {
  const files = testFiles()
  t.ok(files.size > 300, `${files.size} files`)
  t.same(
    [...files].flatMap(([path, text]) => (text.match(LABELLED) ?? []).map((found) => `${path}: ${found}`)),
    [],
  )
})

t.test('each invariant has tests, which exist under the listed names', async (t) => {
  const listed: Record<string, string[]> = JSON.parse(readFileSync(join(tests, 'invariants.json'), 'utf8'))
  const page = readFileSync(join(tests, 'invariants.md'), 'utf8')
  t.same(
    Object.keys(listed),
    [...page.matchAll(/^\| (\d+) \|/gm)].map(([, number]) => number),
  )
  const files = testFiles()
  const missing = Object.values(listed)
    .flat()
    .filter((entry) => {
      const [path = '', ...name] = entry.split(': ')
      return !files.get(path.replace('test/', ''))?.includes(name.join(': '))
    })
  t.same(missing, [])
  t.same(
    Object.keys(listed).filter((number) => listed[number]?.length === 0),
    [],
  )
})

/** The text of each file of tests. */
function testFiles(): ReadonlyMap<string, string> {
  const names = readdirSync(tests, { recursive: true, encoding: 'utf8' }).map((name) => name.replaceAll('\\', '/'))
  return new Map(
    names.filter((name) => name.endsWith('.ts')).map((name) => [name, readFileSync(join(tests, name), 'utf8')]),
  )
}

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
