/** Reads and writes subscriptions to changes, in both eras (MCP 2026-07-28, basic/patterns/subscriptions). */

import { Fault } from '../../base/fault/fault.js'
import { MAX_ADDRESS, MAX_ADDRESSES } from '../../base/limits/constants.js'
import {
  EMPTY,
  edit,
  has,
  type Json,
  NO_ORIGIN,
  objectIn,
  type Payload,
  parseObject,
  stringUnder,
  textUnder,
  value,
  write,
} from '../../base/rpc/splice.js'
import type { Call, ServerNotification } from './call.js'
import { TASKS_EXTENSION } from './meta.js'
import { knowsTasks } from './tasks.js'

/** Lists that can change: the capability that offers them, their name in a subscription, and their notification. */
export const CHANGING_LISTS = [
  { capability: 'tools', filter: 'toolsListChanged', method: 'notifications/tools/list_changed' },
  { capability: 'prompts', filter: 'promptsListChanged', method: 'notifications/prompts/list_changed' },
  { capability: 'resources', filter: 'resourcesListChanged', method: 'notifications/resources/list_changed' },
] as const

/** The list of types of events, which an extension offers. */
const EVENT_TYPES = { filter: 'eventsListChanged', method: 'notifications/events/list_changed' } as const

export type ChangingList = (typeof CHANGING_LISTS)[number] | typeof EVENT_TYPES

/** All lists whose changes a subscription may name. */
const SUBSCRIBED_LISTS: readonly ChangingList[] = [...CHANGING_LISTS, EVENT_TYPES]

/** The notification for a changed resource. */
export const UPDATED = 'notifications/resources/updated'
/** The first notification of a subscription: the part of it that the server accepts. */
export const ACKNOWLEDGED = 'notifications/subscriptions/acknowledged'

const LIST_CHANGED: ReadonlySet<string> = new Set(SUBSCRIBED_LISTS.map(({ method }) => method))

/** A notification of a change. */
type Change = Pick<ServerNotification, 'method' | 'params'>

/** Whether a notification reports a change. */
export function isChange(method: string): boolean {
  return method === UPDATED || LIST_CHANGED.has(method)
}

/** What a change is about. Of several about the same subject, only the last one matters. */
export function subjectOf({ method, params }: Change): string {
  const what =
    method === UPDATED ? textUnder(params, 'uri') : method === 'notifications/tasks' ? textUnder(params, 'taskId') : ''
  return `${method} ${what}`
}

/** The content of a subscription, as requested or as accepted. */
export interface SubscriptionFilter {
  lists: readonly ChangingList[]
  uris: readonly string[]
  /** The client's ids of tasks. */
  tasks: readonly string[]
}

/** The part of a subscription that can be reported as changed. Tasks are not: each notification has their state. */
export type Reportable = Pick<SubscriptionFilter, 'lists' | 'uris'>

/** A subscription to nothing: its server accepts none. */
export const NOTHING: SubscriptionFilter = { lists: [], uris: [], tasks: [] }

/** Notifications that report all of it as changed. */
export function* everythingIn({ lists, uris }: Reportable): Iterable<ServerNotification> {
  for (const { method } of lists) yield { kind: 'notification', method, params: EMPTY }
  for (const uri of uris)
    yield { kind: 'notification', method: UPDATED, params: edit(NO_ORIGIN, { uri: JSON.stringify(uri) }) }
}

/** Whether a subscription includes a change. */
export function wants({ lists, uris }: Reportable, { method, params }: Change): boolean {
  if (method !== UPDATED) return lists.some((one) => one.method === method)
  const uri = stringUnder(params, 'uri')
  return uri !== undefined && uris.some((one) => isAbout(uri, one))
}

/** Whether everything that another subscription reports is reported by this one, too. */
export function includesAll(filter: SubscriptionFilter, other: SubscriptionFilter): boolean {
  return (['lists', 'uris', 'tasks'] as const).every((part) => {
    const known = new Set<unknown>(filter[part])
    return other[part].every((one) => known.has(one))
  })
}

/** What a server of the legacy era offers to report, by its capabilities. That era has no events. */
export function changesIn(capabilities: Payload): { lists: readonly ChangingList[]; subscribes: boolean } {
  const declares = (capability: string, what: string) => {
    const offered = objectIn(capabilities, capability)
    return offered !== undefined && value(offered, what) === true
  }
  return {
    lists: CHANGING_LISTS.filter(({ capability }) => declares(capability, 'listChanged')),
    subscribes: declares('resources', 'subscribe'),
  }
}

/** Throws a Fault if the URIs of a subscription are too long to store. */
export function checkAddresses(addresses: Iterable<string>): void {
  let all = 0
  for (const { length } of addresses) {
    all += length
    if (length > MAX_ADDRESS)
      throw new Fault('invalidParams', `A URI to subscribe to may have at most ${MAX_ADDRESS} characters`)
  }
  if (all > MAX_ADDRESSES)
    throw new Fault('invalidParams', `The URIs of a subscription may have at most ${MAX_ADDRESSES / 1024} KiB in total`)
}

/** As `checkAddresses`, for the URIs in the params of `subscriptions/listen`. */
export function checkFilter(params: Payload): void {
  const { uris, tasks } = filterIn(params)
  for (const named of [uris, tasks]) checkAddresses(named)
}

/** A subscription of a caller to whom events do not exist. */
export function withoutEventTypes(call: Call): Call {
  const { params } = call
  const filter = objectIn(params, 'notifications')
  const notify = (notification: ServerNotification) =>
    notification.method === EVENT_TYPES.method ? undefined : call.notify(notification)
  if (!filter || !has(filter, EVENT_TYPES.filter)) return { ...call, notify }
  const others = edit(filter, { [EVENT_TYPES.filter]: undefined })
  return { ...call, params: edit(params, { notifications: others }), notify }
}

/** Whether an update of `uri` concerns a subscription to `other`: it is the same resource or lies below it. */
export function isAbout(uri: string, other: string): boolean {
  return uri === other || uri.startsWith(other.endsWith('/') ? other : `${other}/`)
}

/** The filter of a `subscriptions/listen`. Throws a Fault if it is invalid, or names more than `most` resources and tasks. */
export function filterOf({ params, caller }: Call, most: number): SubscriptionFilter {
  const filter = objectIn(params, 'notifications')
  if (!filter) throw new Fault('invalidParams', 'params.notifications has to be an object')
  const uris = textsIn(filter, 'resourceSubscriptions')
  const tasks = textsIn(filter, 'taskIds')
  if (tasks.length > 0 && !knowsTasks(caller.capabilities))
    throw new Fault('missingCapability', `taskIds needs the extension ${TASKS_EXTENSION}`, {
      data: { requiredCapabilities: { extensions: { [TASKS_EXTENSION]: {} } } },
    })
  if (uris.length + tasks.length > most)
    throw new Fault('overloaded', `Too many resources and tasks in one subscription (at most ${most})`, {
      status: 200,
    })
  return {
    lists: listsIn(filter),
    uris: [...new Set(uris)],
    tasks: [...new Set(tasks)],
  }
}

/** The filter in the params of a `subscriptions/listen`, or of its acknowledgement. Leaves out what is invalid. */
export function filterIn(params: Payload): SubscriptionFilter {
  const filter = objectIn(params, 'notifications') ?? EMPTY
  const texts = (key: string) => {
    const named = value(filter, key)
    return Array.isArray(named) ? named.filter((one): one is string => typeof one === 'string') : []
  }
  return { lists: listsIn(filter), uris: texts('resourceSubscriptions'), tasks: texts('taskIds') }
}

function listsIn(filter: Payload): readonly ChangingList[] {
  return SUBSCRIBED_LISTS.filter((list) => value(filter, list.filter) === true)
}

function textsIn(filter: Payload, key: string): string[] {
  const texts = value(filter, key) ?? []
  if (!Array.isArray(texts) || !texts.every((text): text is string => typeof text === 'string'))
    throw new Fault('invalidParams', `${key} has to be an array of strings`)
  return texts
}

export function isNothing({ lists, uris, tasks }: SubscriptionFilter): boolean {
  return lists.length === 0 && uris.length === 0 && tasks.length === 0
}

/** The params of a `subscriptions/listen`, or of its acknowledgement, with this content. */
export function paramsOf({ lists, uris, tasks }: SubscriptionFilter): Payload {
  const filter: Record<string, Json> = Object.fromEntries(lists.map((list) => [list.filter, 'true']))
  if (uris.length > 0) filter['resourceSubscriptions'] = JSON.stringify(uris)
  if (tasks.length > 0) filter['taskIds'] = JSON.stringify(tasks)
  return parseObject(`{"notifications":${write(edit(EMPTY, filter))}}`)
}

/** The acknowledgement of a subscription: the part of it that is accepted. */
export function acknowledgement(accepted: SubscriptionFilter): ServerNotification {
  return { kind: 'notification', method: ACKNOWLEDGED, params: paramsOf(accepted) }
}
