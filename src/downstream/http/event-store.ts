/**
 * Bounds the memory of the events that all sessions store for resuming. If others need memory, the sessions that store
 * most drop events.
 */
import type { Memory } from '../../limits/memory.js'

/** A session that stores events. */
export interface Keeper {
  readonly principal: string
  /** Bytes of its stored events. */
  readonly kept: number
  /** Drops its oldest event. */
  forgetOldest(): void
}

/** Least part of the ledger that is freed at once, because finding the largest keepers takes time. */
const AT_ONCE = 1 / 64

/** All sessions that store events. */
export class EventStore {
  readonly memory: Memory
  readonly #keepers = new Set<Keeper>()

  constructor(memory: Memory) {
    this.memory = memory
    memory.addKeeper((bytes, principal) => this.#giveUp(bytes, principal))
  }

  /** Adds a session that stores events. */
  add(keeper: Keeper): void {
    this.#keepers.add(keeper)
  }

  /** Removes a session that stores no events any more. */
  remove(keeper: Keeper): void {
    this.#keepers.delete(keeper)
  }

  #giveUp(bytes: number, principal: string | undefined): void {
    const enough = Math.max(bytes, this.memory.max * AT_ONCE)
    let given = 0
    while (given < bytes) {
      const keepers = [...this.#keepers].filter((one) => principal === undefined || one.principal === principal)
      keepers.sort((a, b) => b.kept - a.kept)
      const [largest] = keepers
      if (!largest || largest.kept === 0) return
      // Large keepers are reduced to the median, or to half of the largest if that is less.
      const target = Math.min(keepers[Math.floor(keepers.length / 2)]?.kept ?? 0, largest.kept / 2)
      for (const keeper of keepers) {
        const before = keeper.kept
        while (keeper.kept > target && given + before - keeper.kept < enough) keeper.forgetOldest()
        given += before - keeper.kept
        if (given >= enough) return
      }
    }
  }
}
