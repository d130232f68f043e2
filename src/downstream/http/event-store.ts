/** What is kept of all sessions for clients that come back: it is given up for what others need more, the most of who has most. */
import type { Memory } from '../../protocol/memory.js'

/** A session that keeps events. */
export interface Keeper {
  readonly principal: string
  /** Bytes that it keeps. */
  readonly kept: number
  forgetOldest(): void
}

/** Part of the ledger that is given up at once, at least: to look for who has most takes time. */
const AT_ONCE = 1 / 64

export class EventStore {
  readonly memory: Memory
  readonly #keepers = new Set<Keeper>()

  constructor(memory: Memory) {
    this.memory = memory
    memory.addKeeper((bytes, principal) => this.#giveUp(bytes, principal))
  }

  /** Takes a session that keeps something to those that may have to give something up. */
  add(keeper: Keeper): void {
    this.#keepers.add(keeper)
  }

  /** The session keeps nothing any more. */
  remove(keeper: Keeper): void {
    this.#keepers.delete(keeper)
  }

  #giveUp(bytes: number, principal: string | undefined): void {
    const enough = Math.max(bytes, this.memory.max * AT_ONCE)
    let given = 0
    while (given < bytes) {
      const keepers = [...this.#keepers].filter((one) => principal === undefined || one.principal === principal)
      keepers.sort((a, b) => b.kept - a.kept)
      const [greediest] = keepers
      if (!greediest || greediest.kept === 0) return
      // As much as makes the greediest as modest as most, and at least half of what they have.
      const modest = Math.min(keepers[Math.floor(keepers.length / 2)]?.kept ?? 0, greediest.kept / 2)
      for (const keeper of keepers) {
        const before = keeper.kept
        while (keeper.kept > modest && given + before - keeper.kept < enough) keeper.forgetOldest()
        given += before - keeper.kept
        if (given >= enough) return
      }
    }
  }
}
