/** Takes off what servers list, and off results of tasks, what is the bridge's own: names of tools, and keys in `_meta`. */
import { edit, mapElements, objectIn, type Payload, textUnder } from '../../base/rpc/splice.js'
import { hasOwnKeys, unlessEmpty, withoutOwnKeys } from './meta.js'
import { LISTS } from './methods.js'

/** Whether a text may have such a name or key. Letters may be written as escapes, or be others that look the same. */
const MAY_HAVE = /bridge|\\u|[^\s -~]/i

/** A list under `key` of a server's result. */
export function withoutReserved(result: Payload, key: string): Payload {
  if (!MAY_HAVE.test(result.source.text)) return result
  const items = mapElements(result, key, (item) => {
    if (key === 'tools' && isReserved(textUnder(item, 'name'))) return []
    const meta = objectIn(item, '_meta')
    const allowed = meta && withoutOwnKeys(meta)
    return allowed === meta ? item : edit(item, { _meta: allowed && unlessEmpty(allowed) })
  })
  return items === undefined ? result : edit(result, { [key]: items })
}

/** Whether a server's result has something of the bridge's own, which is taken off. */
export function hasReserved(method: string, result: Payload): boolean {
  const list = LISTS.get(method)
  if (list && withoutReserved(result, list.key) !== result) return true
  return hasOwnKeys(result)
}

/** Whether a tool has a name of the bridge, as a group shows it, too, or one that looks the same. Models get other characters as "_". */
function isReserved(name: string): boolean {
  const seen = name
    .replace(/\p{Default_Ignorable_Code_Point}/gu, '')
    .normalize('NFKC')
    .toLowerCase()
  return /(?:^|__)mcp_bridge_/.test(seen.replace(/[^a-z0-9]/g, '_'))
}
