/** Remembers digests of the lists that a client has received, to find those that differ in another session. */

import { digest } from '../../base/crypto/digest.js'
import { MAX_PAGES } from '../../base/limits/constants.js'
import type { Response } from '../../base/rpc/message.js'
import { type Json, type Payload, raw } from '../../base/rpc/splice.js'
import { nextCursor } from '../../mcp/protocol/listed.js'
import { LISTS, type ListTraits } from '../../mcp/protocol/methods.js'
import { CHANGING_LISTS, type ChangingList } from '../../mcp/protocol/subscriptions.js'
import { resultIn } from './handshake.js'

/** The maximum number of characters in a cursor. */
const MAX_CURSOR = 4 * 1024

export class SeenLists {
  /** By method: the digests of pages by their cursors, in the order of the pages. */
  readonly #seen = new Map<string, Map<Json, string>>()

  /** Notes a page that the client receives. Ignores results of other methods. */
  saw(method: string, cursor: Json | undefined, result: Payload): void {
    const list = LISTS.get(method)
    if (!list) return
    const pages = cursor === undefined ? new Map<Json, string>() : this.#seen.get(method)
    if (!pages || pages.size >= MAX_PAGES || (cursor?.length ?? 0) > MAX_CURSOR) return
    pages.set(cursor ?? '', digestOf(result, list.key))
    this.#seen.set(method, pages)
  }

  /**
   * Returns the lists that differ from what the client has received. `ask` sends a request. A list that the server
   * refuses counts as changed. Rejects if `ask` rejects.
   */
  async changed(ask: (method: string, params: Json | undefined) => Promise<Response>): Promise<ChangingList[]> {
    const changed = new Set<string>()
    for (const [method, pages] of this.#seen) {
      const { key, capability } = LISTS.get(method) as ListTraits
      let cursor: Json | undefined
      for (const before of pages.values()) {
        const params = cursor === undefined ? undefined : `{"cursor":${cursor}}`
        const result = resultIn(await ask(method, params))
        if (!result || digestOf(result, key) !== before) changed.add(capability)
        cursor = result && nextCursor(result)
        if (cursor === undefined) break
      }
    }
    return CHANGING_LISTS.filter(({ capability }) => changed.has(capability))
  }
}

/** A digest of a page's items and of whether a page follows. The cursor itself may differ between sessions. */
function digestOf(result: Payload, key: string): string {
  const follows = nextCursor(result) !== undefined
  return digest(`${follows} ${raw(result, key) ?? ''}`)
}
