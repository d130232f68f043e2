/** JSON objects: whether a value is one, and the one in a text. */
import type { JsonRecord } from './try/types.js'

export function isRecord(value: unknown): value is JsonRecord {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The object in a text of JSON; undefined if the text is anything else. */
export function recordIn(text: string): JsonRecord | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return isRecord(value) ? value : undefined
  } catch {
    return undefined
  }
}
