/**
 * The names of tools and prompts that servers list: the only ones in metrics and in names of spans, because clients can invent any
 * number of others.
 */

import type { Payload } from '../../base/rpc/splice.js'
import { callerOf, namesOn } from './listed.js'

/** Most servers, and most names of one for each method that calls by them. */
const MAX_LISTED_SERVERS = 200
const MAX_LISTED_NAMES = 1_000
/** Longest name, in characters. The log cuts longer ones, so they could not be told apart. */
const MAX_LISTED_NAME = 119

export class ListedNames {
  /** By server and method. */
  readonly #known = new Map<string, Set<string>>()

  /** Takes a page of a list of the server: the result of `method`. */
  learn(server: string, method: string, page: Payload): void {
    const caller = callerOf(method)
    if (caller === undefined) return
    const names = this.#of(server, caller)
    if (!names || names.size >= MAX_LISTED_NAMES) return
    for (const name of namesOn(page, method)) {
      if (names.size >= MAX_LISTED_NAMES) return
      if (name.length <= MAX_LISTED_NAME) names.add(name)
    }
  }

  /** Whether the server has listed what `method` calls by this name. */
  has(server: string, method: string, name: string): boolean {
    return this.#known.get(keyOf(server, method))?.has(name) ?? false
  }

  #of(server: string, method: string): Set<string> | undefined {
    const key = keyOf(server, method)
    let names = this.#known.get(key)
    if (!names && this.#known.size < 2 * MAX_LISTED_SERVERS) {
      names = new Set()
      this.#known.set(key, names)
    }
    return names
  }
}

function keyOf(server: string, method: string): string {
  return `${method} ${server}`
}
