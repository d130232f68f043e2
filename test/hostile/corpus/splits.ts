/** Ways to send the same bytes: whole, in many small pieces, and cut where chance has it. */
import { below, type Random } from './random.js'

/** Up to so many bytes are sent one by one. */
const SMALL = 1_024
const PIECE = 1_024
const MOST_CUTS = 8

export const SPLITS = ['whole', 'in pieces', 'cut at random'] as const
export type Split = (typeof SPLITS)[number]

export function split(bytes: Buffer, how: Split, random: Random): Buffer[] {
  if (how === 'whole' || bytes.length < 2) return [bytes]
  if (how === 'in pieces') return every(bytes, bytes.length <= SMALL ? 1 : PIECE)
  const cuts = Array.from({ length: 1 + below(random, MOST_CUTS) }, () => 1 + below(random, bytes.length - 1))
  const edges = [0, ...new Set(cuts.sort((a, b) => a - b)), bytes.length]
  return edges.slice(1).map((end, n) => bytes.subarray(edges[n], end))
}

function every(bytes: Buffer, size: number): Buffer[] {
  return Array.from({ length: Math.ceil(bytes.length / size) }, (_, n) => bytes.subarray(n * size, (n + 1) * size))
}
