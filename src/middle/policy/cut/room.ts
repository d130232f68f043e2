/** Decides which kept results make room for a further one. Each caller has a share, and all together have a bound. */

/** A kept result. */
export interface KeptEntry {
  readonly id: string
  /** Whose it is: a digest. */
  readonly owner: string
  /** The server that it is of. */
  readonly server: string
  readonly bytes: number
  /** When it expires, in milliseconds since 1970. */
  readonly until: number
}

interface Room {
  entries: number
  bytes: number
}

const MEBIBYTE = 1024 * 1024
/** The bounds of all results together, and of those of one caller. */
export const ROOM: { readonly all: Room; readonly owner: Room } = {
  all: { entries: 512, bytes: 256 * MEBIBYTE },
  owner: { entries: 32, bytes: 32 * MEBIBYTE },
}

/**
 * The results with a further one, the oldest first, and those that make room for it: the oldest of the same caller, so that
 * nobody takes the place of another one, or else the oldest of all. Undefined if it is too large for its caller's share.
 */
export function withRoomFor(
  before: readonly KeptEntry[],
  entry: KeptEntry,
  now: number,
  { all, owner }: typeof ROOM = ROOM,
): { entries: readonly KeptEntry[]; dropped: readonly KeptEntry[] } | undefined {
  if (entry.bytes > owner.bytes) return undefined
  const entries = before.filter(({ id, until }) => until > now && id !== entry.id)
  const dropped: KeptEntry[] = []
  const isOwn = (one: KeptEntry) => one.owner === entry.owner
  for (;;) {
    const isFull = exceeds(entries, entry, all) || exceeds(entries.filter(isOwn), entry, owner)
    if (!isFull) return { entries: [...entries, entry], dropped }
    const own = entries.findIndex(isOwn)
    dropped.push(...entries.splice(Math.max(0, own), 1))
  }
}

function exceeds(entries: readonly KeptEntry[], { bytes }: KeptEntry, room: Room): boolean {
  return entries.length >= room.entries || entries.reduce((sum, one) => sum + one.bytes, bytes) > room.bytes
}
