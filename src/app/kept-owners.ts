/** Remembers owners in this process, or in the store that replicas share. */

import type { KeptOwners } from '../mcp/ports/kept-owners.js'
import type { SharedStore } from '../mcp/ports/replicas.js'

/** Most names in this process, by kind: questions have texts. Beyond that, the oldest are forgotten, and can be taken again. */
const MAX_KEPT_OWNERS = { subscriber: 10_000, approval: 10_000, question: 1_000 } as const

/** `kind` tells the names from others in the store. `now` is in milliseconds. */
export function keptOwners(
  kind: keyof typeof MAX_KEPT_OWNERS,
  records: SharedStore | undefined,
  now: () => number = () => performance.now(),
): KeptOwners {
  return records
    ? { change: (name, ms, edit) => records.change(kind, name, ms, edit) }
    : ownersHere(MAX_KEPT_OWNERS[kind], now)
}

function ownersHere(max: number, now: () => number): KeptOwners {
  const kept = new Map<string, { text: string; until: number }>()
  return {
    async change(name, milliseconds, edit) {
      const before = kept.get(name)
      const known = before && before.until > now() ? before.text : undefined
      const { text, result } = edit(known)
      if (text === known) return result
      kept.delete(name)
      if (text === undefined) return result
      if (kept.size >= max) kept.delete(oldestFor(text))
      kept.set(name, { text, until: now() + milliseconds })
      return result
    },
  }

  /** The oldest of the same owner, so that no caller takes the place of another one; else the oldest of all. */
  function oldestFor(text: string): string {
    const [owner] = text.split(' ')
    for (const [name, one] of kept) if (one.text.startsWith(`${owner} `)) return name
    return kept.keys().next().value as string
  }
}
