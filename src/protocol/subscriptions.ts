/** What can be heard of changes, in the words of both eras (MCP 2026-07-28, basic/patterns/subscriptions). */
import { objectIn, type Payload, value } from '../rpc/splice.js'
import { Fault } from './fault.js'
import { MAX_ADDRESS, MAX_ADDRESSES } from './lengths.js'

/** Lists that can change: the capability that offers them, what a subscription calls them, and how a change is told. */
export const CHANGING_LISTS = [
  { capability: 'tools', filter: 'toolsListChanged', method: 'notifications/tools/list_changed' },
  { capability: 'prompts', filter: 'promptsListChanged', method: 'notifications/prompts/list_changed' },
  { capability: 'resources', filter: 'resourcesListChanged', method: 'notifications/resources/list_changed' },
] as const

export type ChangingList = (typeof CHANGING_LISTS)[number]

/** Tells of a resource. */
export const UPDATED = 'notifications/resources/updated'
/** The first thing that is said of a subscription: as much of it as the server agrees to. */
export const ACKNOWLEDGED = 'notifications/subscriptions/acknowledged'

const LIST_CHANGED: ReadonlySet<string> = new Set(CHANGING_LISTS.map(({ method }) => method))

/** Whether a notification tells of a change. */
export function isChange(method: string): boolean {
  return method === UPDATED || LIST_CHANGED.has(method)
}

/** Whether who has asked for this in `subscriptions/listen` wants to hear of a change. */
export function wants(filter: Payload, method: string, params: Payload): boolean {
  if (method !== UPDATED)
    return CHANGING_LISTS.some((one) => one.method === method && value(filter, one.filter) === true)
  const uri = value(params, 'uri')
  const uris = value(filter, 'resourceSubscriptions')
  return (
    typeof uri === 'string' && Array.isArray(uris) && uris.some((one) => typeof one === 'string' && isAbout(uri, one))
  )
}

/** Throws a Fault where addresses that somebody subscribes to are longer than what is kept of them. */
export function checkAddresses(addresses: Iterable<unknown>): void {
  let all = 0
  for (const address of addresses) {
    if (typeof address !== 'string') continue
    all += address.length
    if (address.length > MAX_ADDRESS)
      throw new Fault('invalidParams', `An address to subscribe to may have ${MAX_ADDRESS} characters`)
  }
  if (all > MAX_ADDRESSES)
    throw new Fault('invalidParams', `The addresses of a subscription may have ${MAX_ADDRESSES / 1024} KiB together`)
}

/** The same for all that the params of `subscriptions/listen` name. */
export function checkFilter(params: Payload): void {
  const filter = objectIn(params, 'notifications')
  for (const key of ['resourceSubscriptions', 'taskIds']) {
    const named = filter && value(filter, key)
    if (Array.isArray(named)) checkAddresses(named)
  }
}

/** Whether a notice about a resource is about another as well: it is the same, or lies below it. */
export function isAbout(uri: string, other: string): boolean {
  return uri === other || uri.startsWith(other.endsWith('/') ? other : `${other}/`)
}
