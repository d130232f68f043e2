/**
 * Prints each source file with the first sentence of the comment that it begins with, and the events that it logs: all, or those with
 * a word in their line (`npm run tree -- session`). It fails on a file without such a comment, and on an event that no file logs.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { argv, exit } from 'node:process'

const source = new URL('../src/', import.meta.url)

const files = readdirSync(source, { recursive: true, encoding: 'utf8' })
  .map((path) => path.replaceAll('\\', '/'))
  .filter((path) => /\.(ts|js|cjs)$/.test(path))
  .map((path) => ({ path, folder: path.split('/').slice(0, -1).join('/'), name: path.split('/').at(-1) }))

/** The names of LOG_EVENTS. */
const events = new Set(
  /LOG_EVENTS = \{(.*?)\n\}/s
    .exec(readFileSync(new URL('base/log/events.ts', source), 'utf8'))[1]
    .match(/^ {2}\w+(?=:)/gm)
    .map((name) => name.trim()),
)
const unlogged = new Set(events)

const silent = []
const lines = []
for (const { path } of files.sort((a, b) => order(a.folder, b.folder) || order(a.name, b.name))) {
  const content = readFileSync(new URL(path, source), 'utf8')
  const sentence = firstSentence(content)
  if (sentence === undefined) silent.push(path)
  const logged = eventsIn(content)
  for (const event of logged) unlogged.delete(event)
  const logs = logged.length > 0 ? ` Logs ${logged.join(', ')}.` : ''
  lines.push(`src/${path}: ${sentence}${logs}`)
}
if (silent.length > 0) fail(`These files do not begin with a comment that says what they are: ${silent.join(', ')}`)
if (unlogged.size > 0) fail(`No file logs these events of src/base/log/events.ts: ${[...unlogged].join(', ')}`)

const words = argv.slice(2).map((word) => word.toLowerCase())
for (const line of lines) if (words.every((word) => line.toLowerCase().includes(word))) console.log(line)

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
