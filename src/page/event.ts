/** Reads an event of an exported file. A file may come from anybody, so its values are checked. */
import { CANCELLED } from '../inspect/words.js'
import type { Seen } from '../ports/seen.js'

const KINDS: readonly string[] = [
  'call',
  'message',
  'question',
  'verdict',
  'session',
  'stream',
  'child',
  'refused',
  'config',
  'trust',
  'lost',
]
const NUMBERS = new Set([
  'v',
  'seq',
  'at',
  'ms',
  'upstreamMs',
  'code',
  'bytes',
  'pid',
  'running',
  'status',
  'count',
  'round',
  'more',
  'of',
])
const REASONS: readonly unknown[] = [undefined, ...Object.keys(CANCELLED)]
const OUTCOMES: readonly unknown[] = [undefined, 'ok', 'tool_error', 'asks', 'error', 'cancelled', 'fault']
type Fields = Readonly<Record<string, unknown>>

/** The event in a line; undefined if there is none. */
export function eventIn(line: string): Seen | undefined {
  let seen: unknown
  try {
    seen = JSON.parse(line)
  } catch {
    return undefined
  }
  return isObject(seen) && isEvent(seen) ? (seen as unknown as Seen) : undefined
}

function isEvent(seen: Fields): boolean {
  if (seen['v'] !== 1 || typeof seen['seq'] !== 'number' || typeof seen['at'] !== 'number') return false
  if (!KINDS.includes(seen['kind'] as string) || !OUTCOMES.includes(seen['outcome'])) return false
  if (!REASONS.includes(seen['cancelled'])) return false
  if (seen['kind'] === 'call' && (typeof seen['method'] !== 'string' || !isObject(seen['client']))) return false
  return Object.entries(seen).every(([key, value]) => isValue(key, value))
}

function isValue(key: string, value: unknown): boolean {
  switch (key) {
    case 'id':
      return typeof value === 'string' || typeof value === 'number'
    case 'relayed':
      return typeof value === 'boolean'
    case 'client':
    case 'upstream':
      return isObject(value) && hasTexts(value) && (value['era'] === 'modern' || value['era'] === 'legacy')
    case 'http':
      return isObject(value) && isObject(value['headers']) && hasTexts(value['headers'])
    case 'changes':
      return Array.isArray(value) && value.every((change) => isObject(change) && isChange(change))
    case 'payload':
      return isObject(value) && typeof value['text'] === 'string'
    default:
      return typeof value === (NUMBERS.has(key) ? 'number' : 'string')
  }
}

function isChange(change: Fields): boolean {
  return ['at', 'op', 'rule'].every((key) => typeof change[key] === 'string')
}

function hasTexts(value: Fields): boolean {
  return Object.values(value).every((one) => typeof one === 'string')
}

function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
