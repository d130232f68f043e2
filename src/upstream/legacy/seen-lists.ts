/** What a client has seen of a server's lists, so that it can be told where they are different in another session. */
import { createHash } from 'node:crypto'
import { CHANGING_LISTS, type ChangingList } from '../../protocol/subscriptions.js'
import type { Response } from '../../rpc/message.js'
import { type Json, type Payload, payloadAt, raw, value } from '../../rpc/splice.js'

/** Where the items of a list are in its result, and what its changes are told with. */
const LISTS: Readonly<Record<string, { member: string; capability: ChangingList['capability'] }>> = {
  'tools/list': { member: 'tools', capability: 'tools' },
  'prompts/list': { member: 'prompts', capability: 'prompts' },
  'resources/list': { member: 'resources', capability: 'resources' },
  'resources/templates/list': { member: 'resourceTemplates', capability: 'resources' },
}
/** Pages of one list that are compared. What follows counts as the same. */
const MAX_PAGES = 100
/** Characters of a cursor. */
const MAX_CURSOR = 4 * 1024

export class SeenLists {
  /** Digests of pages by their cursors, in the order of the pages; by method. */
  readonly #seen = new Map<string, Map<Json, string>>()

  /** Notes a page that the client gets. Results of other methods are passed over. */
  saw(method: string, cursor: Json | undefined, result: Payload): void {
    const list = LISTS[method]
    if (!list) return
    const pages = cursor === undefined ? new Map<Json, string>() : this.#seen.get(method)
    if (!pages || pages.size >= MAX_PAGES || (cursor?.length ?? 0) > MAX_CURSOR) return
    pages.set(cursor ?? '', digest(result, list.member))
    this.#seen.set(method, pages)
  }

  /**
   * The lists that are not what the client has seen of them. `ask` sends a request; a list that the server does not give
   * counts as changed. Rejects as `ask` does.
   */
  async changed(ask: (method: string, params: Json | undefined) => Promise<Response>): Promise<ChangingList[]> {
    const changed = new Set<string>()
    for (const [method, pages] of this.#seen) {
      const { member, capability } = LISTS[method] as (typeof LISTS)[string]
      let cursor: Json | undefined
      for (const before of pages.values()) {
        const params = cursor === undefined ? undefined : `{"cursor":${cursor}}`
        const result = resultIn(await ask(method, params))
        if (!result || digest(result, member) !== before) changed.add(capability)
        cursor = result && nextCursor(result)
        if (cursor === undefined) break
      }
    }
    return CHANGING_LISTS.filter(({ capability }) => changed.has(capability))
  }
}

/** The items of a page, and whether another one follows. Cursors may be different in each session. */
function digest(result: Payload, member: string): string {
  const follows = nextCursor(result) !== undefined
  return createHash('sha256')
    .update(`${follows} ${raw(result, member) ?? ''}`)
    .digest('base64url')
}

function nextCursor(result: Payload): Json | undefined {
  return typeof value(result, 'nextCursor') === 'string' ? raw(result, 'nextCursor') : undefined
}

function resultIn({ outcome: { kind, source, member } }: Response): Payload | undefined {
  return kind === 'result' ? payloadAt(source, member) : undefined
}
