/**
 * Writes docs/tree.md: each source file, with the first sentence of the comment that it begins with, and the events that it logs.
 *
 * `--check` writes nothing, and fails if the page is not current. A file without such a comment is an error in any case.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { argv, exit } from 'node:process'

const source = new URL('../src/', import.meta.url)
const page = new URL('../docs/tree.md', import.meta.url)

const INTRODUCTION = `# The source files

What each file of \`src\` is: the first sentence of the comment that it begins with, and after *Logs* the events of the log lines that it
writes ([their meanings](operations.md#logs)). [architecture.md](architecture.md) says how they work
together. This page is generated: after you have added, moved or described a file, run \`npm run tree\`.
`

const files = readdirSync(source, { recursive: true, encoding: 'utf8' })
  .map((path) => path.replaceAll('\\', '/'))
  .filter((path) => /\.(ts|js|cjs)$/.test(path))
  .map((path) => ({ path, folder: path.split('/').slice(0, -1).join('/'), name: path.split('/').at(-1) }))

/** The names of LOG_EVENTS. */
const events = new Set(
  /LOG_EVENTS = \{(.*?)\n\}/s
    .exec(readFileSync(new URL('log/events.ts', source), 'utf8'))[1]
    .match(/^ {2}\w+(?=:)/gm)
    .map((name) => name.trim()),
)
const unlogged = new Set(events)

const silent = []
const folders = new Map()
for (const { path, folder, name } of files.sort((a, b) => order(a.folder, b.folder) || order(a.name, b.name))) {
  const content = readFileSync(new URL(path, source), 'utf8')
  const sentence = firstSentence(content)
  if (sentence === undefined) silent.push(path)
  const logged = eventsIn(content)
  for (const event of logged) unlogged.delete(event)
  const logs = logged.length > 0 ? ` Logs ${logged.map((event) => `\`${event}\``).join(', ')}.` : ''
  folders.set(folder, [...(folders.get(folder) ?? []), `- \`${name}\`: ${sentence}${logs}`])
}
if (silent.length > 0) fail(`These files do not begin with a comment that says what they are: ${silent.join(', ')}`)
if (unlogged.size > 0) fail(`No file logs these events of src/log/events.ts: ${[...unlogged].join(', ')}`)

const sections = [...folders].map(([folder, lines]) => `\n## src/${folder}\n\n${lines.join('\n')}\n`)
const text = INTRODUCTION + sections.join('')
if (!argv.includes('--check')) writeFileSync(page, text)
else if (readFileSync(page, 'utf8') !== text)
  fail('docs/tree.md does not list the files of src as they are now. Run: npm run tree')

/** The first sentence of the comment that a file begins with; undefined without one. */
function firstSentence(text) {
  const [, comment] = /^(?:#![^\n]*\n)?\/\*\*(.*?)\*\//s.exec(text) ?? []
  const words = comment
    ?.replace(/\n \* ?/g, ' ')
    .replace(/\s+/g, ' ')
    .trim()
  return words ? words.split(/(?<=[.?!]) (?=[A-Z`*])/)[0] : undefined
}

/** The events of the log lines that a file writes: texts after `event:`, and the last argument of `#line` of a call's log. */
function eventsIn(text) {
  const places = text.matchAll(/\bevent: ([^,}]+)|\.#line\(.*?, ([^)]+)\)/g)
  const names = [...places].flatMap(([, member, argument]) => (member ?? argument).match(/(?<=')\w+(?=')/g) ?? [])
  return [...new Set(names)].filter((name) => events.has(name))
}

/** By code units, so that every machine has the same order. */
function order(a, b) {
  return a < b ? -1 : a > b ? 1 : 0
}

function fail(message) {
  console.error(message)
  exit(1)
}
