/** Results that are kept, of all servers together: there is a bound, and the one that nobody has asked for longest goes first. */
import { isAscii } from 'node:buffer'
import type { CacheHint } from '../../protocol/call.js'
import type { Memory } from '../../protocol/memory.js'
import { own } from '../../rpc/own.js'
import { sourceOfBytes } from '../../rpc/source.js'
import { type Json, type Payload, parseSource, wire } from '../../rpc/splice.js'
import { LentCache } from '../lent-cache.js'

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

const MAX_RESULTS = 4_096
const MAX_BYTES = 64 * 1024 * 1024
const MAX_RESULT_BYTES = 1024 * 1024

export type Results = LentCache<Kept>

/** Makes a place for results. `now` gives milliseconds, as a clock has them that is never set. */
export function keepResults(memory: Memory, now?: () => number): Results {
  return new LentCache({
    memory,
    max: MAX_RESULTS,
    maxBytes: MAX_BYTES,
    ...(now && { now }),
    gone: (kept) => kept.gone(),
  })
}

/**
 * A result as it would go out, and what the server said of itself with it, in memory of their own: what came in may be a slice of something much larger, which would be
 * held with it. Long strings stay the bytes that they are. Undefined where it is too large to be kept.
 */
export function copyOf(
  result: Payload,
  server: Json | undefined,
): { result: Payload; server: Json | undefined; bytes: number } | undefined {
  const rendered = wire(result)
  const pieces = typeof rendered === 'string' ? [rendered] : rendered
  // No character is less than a byte, so that most of what is too large is not looked at.
  if (pieces.reduce((sum, piece) => sum + piece.length, 0) > MAX_RESULT_BYTES) return undefined
  const bytes = Buffer.concat(pieces.map((piece) => (typeof piece === 'string' ? Buffer.from(piece) : piece)))
  const all = bytes.length + (server?.length ?? 0)
  if (all > MAX_RESULT_BYTES) return undefined
  return { result: parseSource(sourceOfBytes([bytes], isAscii)), server: own(server), bytes: all }
}
