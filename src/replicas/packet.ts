/**
 * The packets between replicas. They are sealed, so that others with access to Redis can neither read nor forge them.
 */
import type { Sealer } from '../seal.js'

/** What a replica sends. */
export type Packet =
  /** Opens a link. It contains nothing of the request yet. */
  | { kind: 'hello'; link: string; from: string }
  /** Accepts the link. Later packets must carry its key, so that a recorded link cannot be replayed. */
  | { kind: 'welcome'; link: string; from: string; key: string }
  | Data
  /** The link is unknown or was ended. */
  | { kind: 'reset'; link: string; from: string }

export interface Data {
  kind: 'data'
  link: string
  from: string
  key: string
  /** The number of the part in this packet; 0 for none. */
  number: number
  /** All parts of the other side up to this one have arrived. */
  acknowledged: number
  /** The other side must not send more for now. */
  full: boolean
  /** An acknowledgement is requested. */
  asks: boolean
}

const NOTHING = new Uint8Array(0)
const LINE_FEED = 10

/** The bytes of a packet. */
export function encodePacket(packet: Packet, part: Uint8Array = NOTHING): Buffer {
  return Buffer.concat([Buffer.from(`${JSON.stringify(packet)}\n`), part])
}

/** Seals a packet for a channel: it cannot be opened for another. */
export function sealPacket(sealer: Sealer, channel: string, packet: Packet, part?: Uint8Array): Buffer {
  return sealer.sealBytes(encodePacket(packet, part), channel)
}

/** The packet in a message; undefined if it was not sealed by a replica for this channel. */
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
