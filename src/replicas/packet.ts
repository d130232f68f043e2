/** What replicas say to each other: sealed, so that whoever has Redis can neither read nor make it. */
import type { Sealer } from '../seal.js'

export type Packet =
  /** One replica wants to have a request answered by another. Nothing of the request is said yet. */
  | { kind: 'hello'; link: string; from: string }
  /** The other one is there. What follows has to carry its key: what is said once does not hold a second time. */
  | { kind: 'welcome'; link: string; from: string; key: string }
  | Data
  /** A link that is not known, or that has been given up. */
  | { kind: 'reset'; link: string; from: string }

export interface Data {
  kind: 'data'
  link: string
  from: string
  key: string
  /** The number of the part that follows; 0 where none does. */
  number: number
  /** All parts of the other side up to this one have arrived. */
  acknowledged: number
  /** The other side is to wait before it sends more. */
  full: boolean
  /** An answer is wanted, as a sign of life. */
  asks: boolean
}

const NOTHING = new Uint8Array(0)
const LINE_FEED = 10

export function encodePacket(packet: Packet, part: Uint8Array = NOTHING): Buffer {
  return Buffer.concat([Buffer.from(`${JSON.stringify(packet)}\n`), part])
}

/** Seals what is said on a channel: on another it means nothing. */
export function sealPacket(sealer: Sealer, channel: string, packet: Packet, part?: Uint8Array): Buffer {
  return sealer.sealBytes(encodePacket(packet, part), channel)
}

/** What was said, or undefined where it was not said by a replica. */
export function openPacket(
  sealer: Sealer,
  channel: string,
  sealed: Buffer,
): { packet: Packet; part: Buffer } | undefined {
  const bytes = sealer.openBytes(sealed, channel)
  const end = bytes?.indexOf(LINE_FEED) ?? -1
  if (!bytes || end < 0) return undefined
  return { packet: JSON.parse(bytes.toString('utf8', 0, end)) as Packet, part: bytes.subarray(end + 1) }
}
