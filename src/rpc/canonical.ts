/** One text for all ways to write a JSON value: what two texts have in common that mean the same. */
import { arrayAt, objectAt } from './scan.js'
import { cut, type Source, sourceOf } from './source.js'
import type { Json } from './splice.js'

/**
 * The value without white space, members sorted by name, strings in their shortest spelling. Numbers stay as they are
 * written, because 9007199254740993 is not 9007199254740992. The text has to be JSON.
 */
export function canonical(json: Json): Json {
  return canonicalAt(sourceOf(json.trim()), 0, json.trim().length)
}

function canonicalAt(source: Source, start: number, end: number): Json {
  switch (source.text.charAt(start)) {
    case '{': {
      const members = objectAt(source, start).members.map(
        (member) => [member.key, canonicalAt(source, member.start, member.end)] as const,
      )
      members.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
      return `{${members.map(([key, value]) => `${JSON.stringify(key)}:${value}`).join(',')}}`
    }
    case '[':
      return `[${arrayAt(source, start)
        .elements.map((element) => canonicalAt(source, element.start, element.end))
        .join(',')}]`
    case '"':
      return JSON.stringify(JSON.parse(cut(source, start, end)))
    default:
      return cut(source, start, end)
  }
}
