/** The store for cached results of all servers. It is bounded; the least recently used result is dropped first. */
import { isUtf8 } from 'node:buffer'
import type { Memory } from '../../../base/limits/memory.js'
import { detach, sourceOfBytes } from '../../../base/rpc/source.js'
import { type Json, type Payload, parseSource, wire } from '../../../base/rpc/splice.js'
import type { CacheHint } from '../../../mcp/protocol/call.js'
import { CountedCache } from '../counted-cache.js'

export interface ResultKey {
  method: string
  /** The resource that was read. */
  uri: string | undefined
}

export interface CachedResult extends ResultKey {
  key: string
  /** The principals that may get it: a digest. */
  scope: string
  result: Payload
  /** The server's Implementation, sent with the result. */
  server: Json | undefined
  /** The server's cache hint. */
  hint: CacheHint | undefined
  /** Milliseconds from storing to expiry. */
  lifetime: number
  bytes: number
  /** Called when it leaves the cache, for any reason. */
  gone(): void
}

const MAX_RESULTS = 4_096
const MAX_CACHE_BYTES = 64 * 1024 * 1024
const MAX_RESULT_BYTES = 1024 * 1024

export type Results = CountedCache<CachedResult>

/** Creates the store. `now` returns milliseconds of a monotonic clock. */
export function keepResults(memory: Memory, now?: () => number): Results {
  return new CountedCache({
    memory,
    max: MAX_RESULTS,
    maxBytes: MAX_CACHE_BYTES,
    ...(now && { now }),
    gone: (kept) => kept.gone(),
  })
}

/**
 * Copies a result and the server's Implementation into memory of their own: a received result may be a slice of a
 * larger buffer, which it would keep alive. Long strings stay bytes. Undefined if the result is too large to cache.
 */
export function copyOf(
  result: Payload,
  server: Json | undefined,
): { result: Payload; server: Json | undefined; bytes: number } | undefined {
  const rendered = wire(result)
  const pieces = typeof rendered === 'string' ? [rendered] : rendered
  // Each character is at least one byte, so this skips most results that are too large without encoding them.
  if (pieces.reduce((sum, piece) => sum + piece.length, 0) > MAX_RESULT_BYTES) return undefined
  const bytes = Buffer.concat(pieces.map((piece) => (typeof piece === 'string' ? Buffer.from(piece) : piece)))
  const all = bytes.length + (server?.length ?? 0)
  if (all > MAX_RESULT_BYTES) return undefined
  return { result: parseSource(sourceOfBytes([bytes], isUtf8)), server: detach(server), bytes: all }
}
