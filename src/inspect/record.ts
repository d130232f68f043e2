/** Whether a value of JSON is an object. */
import type { JsonRecord } from './try/types.js'

export function isRecord(value: unknown): value is JsonRecord {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
