/**
 * Restricts tools and types of events to callers with the required scopes. Those that a caller may not call are hidden, unless it can get
 * further scopes: it would never request the scopes of what is hidden. Callers whose scopes are unknown count as having
 * none, and may call tools that require none.
 *
 * Only callers with all scopes of the server may use names that the server has not listed, and methods that the bridge
 * does not know. Both could be other spellings. What announces such methods is offered to those who may use them, or can
 * get the scopes.
 */

import { Fault } from '../../base/fault/fault.js'
import { edit, mapElements, type Payload, value } from '../../base/rpc/splice.js'
import { printable } from '../../base/texts/printable.js'
import { withoutEvents, withoutForeign } from '../../mcp/protocol/announced.js'
import {
  type Call,
  canGet,
  type Final,
  type Grant,
  type Handler,
  type Policy,
  type Sender,
  withResult,
} from '../../mcp/protocol/call.js'
import { CALL_TOOL, EVENT_LIST, isOfClients, isOfEvents, LISTEN } from '../../mcp/protocol/methods.js'
import { withoutEventTypes } from '../../mcp/protocol/subscriptions.js'
import type { ChosenList } from './choice/listed.js'
import type { SeenItem } from './choice/seen.js'
import { refuse, toolOf } from './refusal.js'
import { isReadOnly, type ListedTool, type ToolNames } from './tool-names.js'
import { stringIn } from './unambiguous.js'
import { unknownItem } from './unknown.js'

/** The scopes that the tools of a server require, by the configuration or the manifest. */
export interface RequiredScopes {
  /** All that are required to see and call a tool. */
  of(tool: string, listed: ListedTool): readonly string[]
  /** All that are required for any tool or type of events. */
  all(): readonly string[]
}

/** Which scopes tools require and principals have. */
export interface ScopesOptions {
  required: RequiredScopes
  /** The scopes of a principal whose calls carry none; undefined if unknown. */
  scopesOf(principal: string): ReadonlySet<string> | undefined
  /** Hide tools also from callers that can get further scopes. Then they are unknown to all who may not call them. */
  hides: boolean
  /** The tools that the server has listed. */
  listed: Pick<ToolNames, 'find'>
  /** Rows for types of events. Without a row, a type requires what any tool does. */
  events?: EventScopes | undefined
}

/** The scopes that types of events require by the configuration. */
export interface EventScopes {
  /** What the rows for a type require together; undefined if there is none for it. */
  of(type: string): readonly string[] | undefined
  /** What each row requires. */
  rows: readonly (readonly string[])[]
  /** The types of events that the server has listed. */
  listed: Pick<ChosenList<SeenItem>, 'find' | 'learn'>
}

type Caller = Pick<Sender, 'principal' | 'grant'>

/** The policy, and whether a caller has all scopes of the server. */
export interface Scopes {
  policy: Policy
  hasAll(caller: Caller): boolean
}

export function scopes({ required, scopesOf, hides, listed, events }: ScopesOptions): Scopes {
  const lacked = (needed: readonly string[], { principal, grant }: Caller): readonly string[] => {
    const own = grant ? grant.scopes : scopesOf(principal)
    return needed.filter((scope) => !own?.has(scope))
  }
  const hasAll = (caller: Caller) => lacked(required.all(), caller).length === 0

  /** The reply to a call that lacks a scope; undefined if it lacks none. */
  function refusal(call: Call, named: string, needed: readonly string[]): Final | undefined {
    const missing = lacked(needed, call)
    if (missing.length === 0) return undefined
    const { grant } = call
    const scope = missing.join(' ')
    const text = `"${printable(named)}" cannot be called without the scope ${printable(scope, 500)}: this caller does not have it`
    if (grant && canGet(missing, grant) && !grant.inBand) throw insufficient(text, grant.scopes, needed)
    return refuse(call, { reason: 'insufficient_scope', text, data: { scope } })
  }

  async function toolRefusal(call: Call, next: Handler): Promise<Final | undefined> {
    const tool = toolOf(call)
    if (tool === undefined) {
      const text =
        'The call has no valid tool name, so its required scopes are unknown. Send params.name once, in lower case'
      return refuse(call, { reason: 'insufficient_scope', text })
    }
    if (hasAll(call)) return undefined
    const needed = required.of(tool, await listed.find(call, tool, next))
    if (hides && lacked(needed, call).length > 0) unknownItem(call, 'tool', tool)
    return refusal(call, call.called ?? tool, needed)
  }

  /** The sets of scopes with each of which a caller can use some type of events. */
  const forSomeEvents = (): readonly (readonly string[])[] => [...(events?.rows ?? []), required.all()]
  const forEvent = (type: string): readonly string[] => events?.of(type) ?? required.all()

  /** The reply to a call of events that lacks a scope; undefined if it lacks none. */
  async function eventRefusal(call: Call, next: Handler): Promise<Final | undefined> {
    if (hasAll(call)) return undefined
    const maySome = forSomeEvents().some((needed) => lacked(needed, call).length === 0)
    const type = stringIn(call.params, 'name')
    if (!events || !maySome || (type === undefined && call.method !== EVENT_LIST))
      return refusal(call, call.method, required.all())
    if (call.method === EVENT_LIST || type === undefined) return undefined
    if (!(await events.listed.find(call, type, next))) unknownItem(call, 'event', type)
    const needed = forEvent(type)
    if (isUnavailable(lacked(needed, call), call.grant)) unknownItem(call, 'event', type)
    return refusal(call, call.called ?? type, needed)
  }

  /** Whether a caller does not see what requires these scopes, which it lacks. */
  const isUnavailable = (missing: readonly string[], grant: Grant | undefined) =>
    missing.length > 0 && (hides || !grant || !canGet(missing, grant))

  const policy: Policy = (next) =>
    async function scopedCall(call) {
      const { method, grant } = call
      if (method === CALL_TOOL) return (await toolRefusal(call, next)) ?? next(call)
      if (isOfEvents(method)) return (await eventRefusal(call, next)) ?? eventsFor(call, await next(call))
      if (!isOfClients(method)) return refusal(call, method, required.all()) ?? next(call)
      const isHidden = (needed: readonly string[]) => isUnavailable(lacked(needed, call), grant)
      if (method === LISTEN && forSomeEvents().every(isHidden)) return next(withoutEventTypes(call))
      const last = await next(call)
      if (canGetAll(grant) && !hides) return last
      if (method === 'server/discover')
        return withResult(last, (result) => {
          const known = isHidden(required.all()) ? withoutForeign(result) : result
          return forSomeEvents().every(isHidden) ? withoutEvents(known) : known
        })
      if (method !== 'tools/list') return last
      const isHiddenTool = (tool: Payload, name: string) =>
        isHidden(required.of(name, { isReadOnly: isReadOnly(tool) }))
      return withResult(last, (result) => without(result, 'tools', isHiddenTool))
    }

  /** The answer to a call of events as its caller may see it. */
  function eventsFor(call: Call, last: Final): Final {
    if (!events || call.method !== EVENT_LIST) return last
    const isHidden = (_type: Payload, name: string) => isUnavailable(lacked(forEvent(name), call), call.grant)
    return withResult(last, (result) => without(events.listed.learn(call, result), 'events', isHidden))
  }

  return { policy, hasAll }
}

/**
 * The Fault for a caller that can get further scopes. It names those that it has, too: revisions before 2026-07-28
 * request exactly what a challenge names.
 */
function insufficient(text: string, granted: ReadonlySet<string>, needed: readonly string[]): Fault {
  const scope = [...new Set([...granted, ...needed])].join(' ')
  return new Fault('insufficientScope', text, { data: { scope } })
}

function canGetAll(grant: Grant | undefined): boolean {
  return grant?.extensible === true && grant.nameOf === undefined
}

/** A page without hidden items. It may become empty, because further pages may follow. */
function without(page: Payload, key: 'tools' | 'events', isHidden: (item: Payload, name: string) => boolean): Payload {
  const left = mapElements(page, key, (item) => {
    const name = value(item, 'name')
    return typeof name === 'string' && !isHidden(item, name) ? item : []
  })
  return left === undefined ? page : edit(page, { [key]: left })
}
