/** Keeps the parts of cut results in this process, or in the store that replicas share. */
import type { Memory, Reservation } from '../base/limits/memory.js'
import { lookEvery } from '../base/time/time.js'
import type { SharedStore } from '../mcp/ports/replicas.js'
import type { PartStore } from '../middle/policy/cut/kept-results.js'
import { type KeptEntry, withRoomFor } from '../middle/policy/cut/room.js'

const KIND = 'result'
/** The name of the list of all kept results in the shared store. No id is so short. */
const INDEX = 'all'
/** Milliseconds between two looks for results that have expired. */
const LOOK_FOR_EXPIRED = 30_000

/** Is told whose result is not kept any more, to make room for another one. */
type PushedOut = (entry: KeptEntry) => void

/** `now` is in milliseconds since 1970. */
export function keptParts(
  records: SharedStore | undefined,
  memory: Memory,
  pushedOut: PushedOut,
  now: () => number = Date.now,
): PartStore {
  return records ? partsInStore(records, pushedOut, now) : new PartsHere(memory, pushedOut, now)
}

interface KeptHere {
  entry: KeptEntry
  parts: readonly string[]
  principal: string
  reservation: Reservation
}

class PartsHere implements PartStore {
  readonly #memory: Memory
  readonly #pushedOut: PushedOut
  readonly #now: () => number
  /** The oldest first. */
  readonly #kept = new Map<string, KeptHere>()
  #looking: NodeJS.Timeout | undefined

  constructor(memory: Memory, pushedOut: PushedOut, now: () => number) {
    this.#memory = memory
    this.#pushedOut = pushedOut
    this.#now = now
    memory.addKeeper((bytes, principal) => this.#giveUp(bytes, principal))
  }

  async keep(entry: KeptEntry, principal: string, parts: readonly string[]): Promise<number | undefined> {
    const room = withRoomFor(
      [...this.#kept.values()].map((one) => one.entry),
      entry,
      this.#now(),
    )
    if (!room) return undefined
    const stays = new Set(room.entries.map(({ id }) => id))
    for (const id of this.#kept.keys()) if (!stays.has(id) || id === entry.id) this.#drop(id)
    const reservation = this.#memory.reserve(principal)
    if (reservation.resize(entry.bytes)) return undefined
    this.#kept.set(entry.id, { entry, parts, principal, reservation })
    this.#looking ??= lookEvery(LOOK_FOR_EXPIRED, () => this.#dropExpired())
    room.dropped.forEach(this.#pushedOut)
    return room.dropped.length
  }

  async part({ id }: Pick<KeptEntry, 'id'>, number: number): Promise<string | undefined> {
    const kept = this.#kept.get(id)
    return kept && kept.entry.until > this.#now() ? kept.parts[number] : undefined
  }

  #dropExpired(): void {
    const now = this.#now()
    for (const { entry } of this.#kept.values()) if (entry.until <= now) this.#drop(entry.id)
  }

  #giveUp(bytes: number, principal: string | undefined): void {
    let given = 0
    for (const one of this.#kept.values()) {
      if (given >= bytes) return
      if (principal !== undefined && one.principal !== principal) continue
      given += one.entry.bytes
      this.#drop(one.entry.id)
      this.#pushedOut(one.entry)
    }
  }

  #drop(id: string): void {
    this.#kept.get(id)?.reservation.end()
    this.#kept.delete(id)
    if (this.#kept.size > 0) return
    clearInterval(this.#looking)
    this.#looking = undefined
  }
}

function partsInStore(records: SharedStore, pushedOut: PushedOut, now: () => number): PartStore {
  const nameOf = (id: string, number: number) => `${id}/${number}`
  return {
    async keep(entry, _principal, parts) {
      const milliseconds = entry.until - now()
      type Indexed = KeptEntry & { parts: number }
      const room = await records.change(KIND, INDEX, milliseconds, (text) => {
        const before = text === undefined ? [] : (JSON.parse(text) as Indexed[])
        const made = withRoomFor(before, { ...entry, parts: parts.length } as Indexed, now())
        return { text: made ? JSON.stringify(made.entries) : text, result: made }
      })
      if (!room) return undefined
      for (const one of room.dropped as Indexed[]) {
        const { id, parts: count } = one
        pushedOut(one)
        for (let number = 0; number < count; number++) records.forget(KIND, nameOf(id, number))
      }
      const written = await Promise.all(
        parts.map((part, number) => records.remember(KIND, nameOf(entry.id, number), part, milliseconds)),
      )
      return written.every(Boolean) ? room.dropped.length : undefined
    },
    part: ({ id }, number) => records.recall(KIND, nameOf(id, number)),
  }
}
