/** JSON objects: whether a value is one, and the one in a text. */
import { isObject as isRecord } from '../config/value.js'
import type { JsonRecord } from './try/types.js'

export { isRecord }

/** The object in a text of JSON; undefined if the text is anything else. */
export function recordIn(text: string): JsonRecord | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return isRecord(value) ? value : undefined
  } catch {
    return undefined
  }
}
