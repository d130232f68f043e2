/** Finds the lists of a modern server that declares none, because legacy clients request only what `initialize` offers. */

import { edit, type Json } from '../../base/rpc/splice.js'
import type { Final } from '../../mcp/protocol/call.js'
import { askForLists, declaredBy, declaresNoList } from '../../mcp/protocol/offered.js'

/** The DiscoverResult. If it declares no lists, with capabilities for the lists that the server answers; `list` requests one. */
export async function withUndeclaredLists<T extends Final & { kind: 'result' }>(
  discovered: T,
  list: (method: string) => Promise<Final>,
): Promise<T> {
  const declared = declaredBy(discovered.result)
  if (!declaresNoList(declared)) return discovered
  const found: Record<string, Json> = {}
  await askForLists(
    async (method) => {
      const page = await list(method)
      return page.kind === 'result' ? page.result : undefined
    },
    (capability) => {
      found[capability] = '{}'
    },
  )
  return { ...discovered, result: edit(discovered.result, { capabilities: edit(declared, found) }) }
}
