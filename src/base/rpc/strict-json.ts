/**
 * Reads JSON only if all programs read it alike, for signed documents and decisions about trust. Beyond the grammar, names
 * must be unique in their object regardless of case and escapes, and must not have a special meaning in JavaScript.
 */
import { JsonError, scan, scanAt } from './scan.js'
import { type JsonSource, sourceOf, startsWithMark } from './source.js'
import { elementsAt, membersAt, START } from './table.js'

/** Bounds of a document. */
export interface JsonBounds {
  maxBytes: number
  maxDepth: number
}

/** Why bytes are refused, and where. */
export class StrictJsonError extends Error {
  override name = 'StrictJsonError'
  /** As in `servers.0.name`; empty for the whole. */
  readonly path: string

  constructor(path: string, message: string) {
    super(path === '' ? message : `${path}: ${message}`)
    this.path = path
  }
}

/** Names with a special meaning in JavaScript objects. */
const TREACHEROUS: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype'])
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** The parsed value. Throws a StrictJsonError. */
export function readStrictly(bytes: Uint8Array, { maxBytes, maxDepth }: JsonBounds): unknown {
  if (bytes.length > maxBytes) throw new StrictJsonError('', `is larger than ${maxBytes} bytes`)
  if (startsWithMark(bytes)) throw new StrictJsonError('', 'starts with a byte order mark')
  const text = decode(bytes)
  try {
    const source = sourceOf(text)
    checkNames(source, scan(source, { maxDepth, strict: true })[START] as number, [])
  } catch (error) {
    if (error instanceof JsonError) throw new StrictJsonError('', `is not valid JSON: ${error.message}`)
    throw error
  }
  return JSON.parse(text)
}

function decode(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes)
  } catch {
    throw new StrictJsonError('', 'is not UTF-8')
  }
}

function checkNames(source: JsonSource, start: number, path: readonly (string | number)[]): void {
  const opens = source.text.charAt(start)
  if (opens === '[') {
    for (const [at, element] of elementsAt(scanAt(source, start)).entries())
      checkNames(source, element.start, [...path, at])
  }
  if (opens !== '{') return
  const seen = new Map<string, string>()
  for (const { key, start: value } of membersAt(source, scanAt(source, start))) {
    const place = [...path, key]
    const twin = seen.get(key.toLowerCase())
    if (twin === key) throw new StrictJsonError(place.join('.'), 'appears twice in its object')
    if (twin !== undefined) throw new StrictJsonError(place.join('.'), `differs from "${twin}" only in case`)
    if (TREACHEROUS.has(key)) throw new StrictJsonError(place.join('.'), 'is a reserved name')
    seen.set(key.toLowerCase(), key)
    checkNames(source, value, place)
  }
}
