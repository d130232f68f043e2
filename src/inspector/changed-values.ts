/** Finds the values that the bridge changed, in the texts of the two messages. */

import { nameOfToken } from '../base/rpc/pointer.js'
import { JsonError, scanAt } from '../base/rpc/scan.js'
import { sourceOf } from '../base/rpc/source.js'
import { elementsAt, membersAt } from '../base/rpc/table.js'
import { LONGEST } from './paths.js'
import type { Change } from './recorder/events.js'

/** The JSON at a JSON Pointer in a text, as written; undefined if missing or truncated, or if the pointer is very long. */
export function valueAt(text: string, pointer: string): string | undefined {
  if (pointer.length > LONGEST) return undefined
  let json = text.trim()
  for (const token of tokensOf(pointer)) {
    const span = within(json, token)
    if (!span) return undefined
    json = json.slice(span.start, span.end)
  }
  return json
}

/** The string at a JSON Pointer in a text; undefined if there is none. */
export function textAt(text: string, pointer: string): string | undefined {
  const json = valueAt(text, pointer)
  if (!json?.startsWith('"')) return undefined
  try {
    return String(JSON.parse(json))
  } catch {
    return undefined
  }
}

/**
 * The path of a value in the outgoing message, from its path in the incoming one: elements of a list move up if earlier
 * ones were removed.
 */
export function movedTo(at: string, changes: readonly Change[]): string {
  const removals = changes.filter(({ op }) => op === 'remove')
  if (removals.length === 0 || at.length > LONGEST) return at
  let position = 0
  const moved = at.split('/').map((token) => {
    const list = at.slice(0, position)
    position += token.length + 1
    if (!/^\d+$/.test(token)) return token
    const removed = removals.filter((change) => {
      const index = change.at.startsWith(list) ? change.at.slice(list.length) : ''
      return /^\d+$/.test(index) && Number(index) < Number(token)
    })
    return String(Number(token) - removed.length)
  })
  return moved.join('/')
}

/** The names in a JSON Pointer. */
export function tokensOf(pointer: string): string[] {
  return pointer.split('/').slice(1).map(nameOfToken)
}

function within(json: string, token: string): { start: number; end: number } | undefined {
  const source = sourceOf(json)
  try {
    if (json.startsWith('{')) return membersAt(source, scanAt(source, 0)).find(({ key }) => key === token)
    if (json.startsWith('[') && /^\d+$/.test(token)) return elementsAt(scanAt(source, 0))[Number(token)]
  } catch (error) {
    if (!(error instanceof JsonError)) throw error
  }
  return undefined
}
