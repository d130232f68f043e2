/** Results that are kept, of all servers together: there is a bound, and the one that nobody has asked for longest goes first. */
import { isAscii } from 'node:buffer'
import { LRUCache } from 'lru-cache'
import type { CacheHint } from '../../protocol/call.js'
import { sourceOfBytes } from '../../rpc/source.js'
import { type Json, type Payload, parseSource, wire } from '../../rpc/splice.js'

/** What a result is about. */
export interface About {
  method: string
  /** The resource that was read. */
  uri: string | undefined
}

export interface Kept extends About {
  key: string
  /** Whom it is kept for. */
  scope: string
  result: Payload
  /** What the server said of itself with it. */
  server: Json | undefined
  /** What the server said of how long it holds, and for whom. */
  hint: CacheHint | undefined
  /** Milliseconds for which it is kept. */
  lifetime: number
  bytes: number
  /** Called when it is kept no longer, for whatever reason. */
  gone(): void
}

export type Results = LRUCache<string, Kept>

const MAX_RESULTS = 4_096
const MAX_BYTES = 64 * 1024 * 1024
const MAX_RESULT_BYTES = 1024 * 1024

/** Makes a place for results. `now` gives milliseconds, as a clock has them that is never set. */
export function keepResults(now = () => performance.now()): Results {
  return new LRUCache({
    max: MAX_RESULTS,
    maxSize: MAX_BYTES,
    sizeCalculation: ({ bytes }) => bytes,
    // Those who listen for what has expired are to know then, and not when somebody looks.
    ttlAutopurge: true,
    ttlResolution: 0,
    perf: { now },
    dispose: (kept) => kept.gone(),
  })
}

/**
 * A result as it would go out, in memory of its own: what came in may be a slice of something much larger, which would be
 * held with it. Long strings stay the bytes that they are. Undefined where it is too large to be kept.
 */
export function copyOf(result: Payload): { result: Payload; bytes: number } | undefined {
  const rendered = wire(result)
  const pieces = typeof rendered === 'string' ? [rendered] : rendered
  // No character is less than a byte, so that most of what is too large is not looked at.
  if (pieces.reduce((sum, piece) => sum + piece.length, 0) > MAX_RESULT_BYTES) return undefined
  const bytes = Buffer.concat(pieces.map((piece) => (typeof piece === 'string' ? Buffer.from(piece) : piece)))
  if (bytes.length > MAX_RESULT_BYTES) return undefined
  return { result: parseSource(sourceOfBytes([bytes], isAscii)), bytes: bytes.length }
}

/** A text in memory of its own, for the same reason. */
export function ownText(text: string): string
export function ownText(text: string | undefined): string | undefined
export function ownText(text: string | undefined): string | undefined {
  return text === undefined ? undefined : Buffer.from(text).toString()
}
