/** Finds the lists of a modern server that declares none, because legacy clients request only what `initialize` offers. */

import { edit, type Json } from '../../base/rpc/splice.js'
import { within } from '../../base/time/time.js'
import type { Final } from '../../mcp/protocol/call.js'
import { askForLists, declaredBy, declaresNoList } from '../../mcp/protocol/offered.js'

/** Milliseconds to wait for other lists after the list of tools. */
const OTHER_LISTS = 1_000

/** The DiscoverResult. If it declares no lists, with capabilities for the lists that the server answers; `list` requests one. */
export async function withUndeclaredLists<T extends Final & { kind: 'result' }>(
  discovered: T,
  list: (method: string) => Promise<Final>,
): Promise<T> {
  const declared = declaredBy(discovered.result)
  if (!declaresNoList(declared)) return discovered
  const found: Record<string, Json> = {}
  const { all } = await askForLists(
    async (method) => {
      const page = await list(method)
      return page.kind === 'result' ? page.result : undefined
    },
    (capability) => {
      found[capability] = '{}'
    },
  )
  await within(all, OTHER_LISTS)
  return { ...discovered, result: edit(discovered.result, { capabilities: edit(declared, found) }) }
}
