/** Names the sources in the output of bundled tests. `--enable-source-maps` does that too, but delays the start of each file by half. */
import { existsSync, readFileSync } from 'node:fs'
import { SourceMap } from 'node:module'
import { dirname, relative, resolve } from 'node:path'

/** A place in a stack, and one in what tap writes of a failure. */
const PLACE = /(?:file:\/\/)?([\w./\\:-]*\.tap[/\\]run-\d+[/\\]bundle[/\\][\w./\\-]+\.mjs):(\d+)(?::(\d+))?/g
const AT = /fileName: (\S+\.mjs)(\s+lineNumber: )(\d+)(\s+columnNumber: )(\d+)/g

const maps = new Map()

/** The text with places of sources instead of places of bundles. */
export function mapped(text) {
  return text
    .replace(PLACE, (all, file, line, column = '1') => {
      const place = sourceAt(file, Number(line), Number(column))
      return place ? `${place.file}:${place.line}:${place.column}` : all
    })
    .replace(AT, (all, file, before, line, between, column) => {
      const place = sourceAt(file, Number(line), Number(column))
      return place ? `fileName: ${place.file}${before}${place.line}${between}${place.column}` : all
    })
}

function sourceAt(file, line, column) {
  const path = resolve(`${file}.map`)
  if (!maps.has(path))
    maps.set(path, existsSync(path) ? new SourceMap(JSON.parse(readFileSync(path, 'utf8'))) : undefined)
  const entry = maps.get(path)?.findEntry(line - 1, column - 1)
  if (entry?.originalSource === undefined) return undefined
  const source = relative('.', resolve(dirname(path), entry.originalSource))
  return { file: source, line: entry.originalLine + 1, column: entry.originalColumn + 1 }
}
