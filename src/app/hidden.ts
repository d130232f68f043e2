/** Lists what clients do not see of a server or group, and why, for the inspector. */

import { Fault } from '../base/fault/fault.js'
import { value } from '../base/rpc/splice.js'
import type { ServerSettings } from '../config/settings.js'
import type { HiddenItem, HiddenItems } from '../mcp/ports/inspected-bridge.js'
import type { Call, Handler } from '../mcp/protocol/call.js'
import { EVENT_LIST, LISTS } from '../mcp/protocol/methods.js'
import { ownCall } from '../middle/describe/server.js'
import { whyHidden } from '../middle/policy/choice/hidden.js'
import { reading } from '../middle/policy/pages.js'
import type { RequiredScopes } from '../middle/policy/scopes.js'
import { eventRows } from './pipeline.js'

/** What may be hidden, by the method that lists it. */
const HIDEABLE: ReadonlyMap<string, Hideable> = new Map<string, Hideable>([
  ...LISTS,
  [EVENT_LIST, { item: 'event', capability: 'events', key: 'events', id: 'name' }],
])

interface Hideable {
  item: HiddenItem['kind']
  /** The option that chooses from it. */
  capability: keyof HidingServer['own']
  key: string
  id: string
}

/** Most items, and characters of the name of one. */
const MAX_HIDDEN_ITEMS = 5_000
const MAX_HIDDEN_NAME = 2_000

/** The parts of a server that decide what is hidden. */
export interface HidingServer {
  name: string
  own: Pick<ServerSettings, 'tools' | 'prompts' | 'resources' | 'events'>
  /** The scopes that a tool requires; undefined if none requires any. */
  required: RequiredScopes | undefined
  /** The server without what hides. */
  behind: Handler
}

/** What is hidden of a server from the principal of the calls, who has no scopes. Only reads lists that something hides of. */
export async function hiddenOf(server: HidingServer, principal: string): Promise<HiddenItems> {
  const { name, own, behind } = server
  const hidden: HiddenItem[] = []
  const problems: string[] = []
  for (const [method, { item: kind, capability: option, key, id: named }] of HIDEABLE) {
    const rules = own[option]
    const scopesFor = scopesOf(kind, server)
    if (!rules && !scopesFor) continue
    const whyNotChosen = rules && whyHidden({ option, rules })
    try {
      const call: Call = { ...ownCall(method), principal }
      await reading(call, method, behind, name, async (pages) => {
        for await (const page of pages) {
          const items = value(page, key)
          for (const item of Array.isArray(items) ? items : []) {
            const id: unknown = (item as Record<string, unknown> | null)?.[named]
            const why = typeof id === 'string' ? (whyNotChosen?.(id) ?? lackedBy(scopesFor?.(id, item))) : undefined
            if (why !== undefined) hidden.push({ kind, name: String(id).slice(0, MAX_HIDDEN_NAME), server: name, why })
          }
        }
      })
    } catch (error) {
      problems.push(`${name} did not answer ${method}: ${Fault.from(error).message.slice(0, 500)}.`)
    }
  }
  return joinedHidden([{ hidden, ...(problems.length > 0 && { problem: problems.join(' ') }) }])
}

/** Returns a function that tells which scopes an item requires; undefined if items of this kind require none. */
function scopesOf(
  kind: HiddenItem['kind'],
  { own, required }: HidingServer,
): ((id: string, item: unknown) => readonly string[]) | undefined {
  if (!required) return undefined
  if (kind === 'tool') return (id, item) => required.of(id, { isReadOnly: saysReadOnly(item) })
  if (kind !== 'event') return undefined
  const rows = eventRows(own)
  return (id) => rows.of(id) ?? required.all()
}

function saysReadOnly(item: unknown): boolean {
  return (item as { annotations?: { readOnlyHint?: unknown } }).annotations?.readOnlyHint === true
}

function lackedBy(scopes: readonly string[] = []): string | undefined {
  return scopes.length === 0
    ? undefined
    : `Callers need the ${scopes.length === 1 ? 'scope' : 'scopes'} ${scopes.join(', ')}. Calls from this page have no scopes.`
}

/** A group whose servers hide. */
interface HidingGroup {
  servers: readonly { name: string; isTrusted: boolean; policies: { hiding: HidingServer } }[]
  /** What is left out of its lists, because an earlier server has the same name. */
  hidden: readonly { server: string; name: string; method: string }[]
  /** Set if its tools are searched. */
  withoutSearch: unknown
}

export async function hiddenOfGroup(
  { servers, hidden, withoutSearch }: HidingGroup,
  principal: string,
): Promise<HiddenItems> {
  const members = servers.map(({ name, isTrusted, policies }) =>
    isTrusted
      ? hiddenOf(policies.hiding, principal)
      : { hidden: [], problem: `${name} is hidden: it is not trusted yet.` },
  )
  const taken = hidden.map(({ server, name, method }): HiddenItem => {
    const kind = HIDEABLE.get(method)?.item ?? 'tool'
    return { kind, name, server, why: 'An earlier server of the group has one of the same name.' }
  })
  const searched = 'Its tools are not listed, but found by search_tools: "search" of the group.'
  return joinedHidden([
    ...(await Promise.all(members)),
    { hidden: taken, ...(withoutSearch !== undefined && { problem: searched }) },
  ])
}

/** All of several answers, up to the most. */
function joinedHidden(parts: readonly HiddenItems[]): HiddenItems {
  const all = parts.flatMap(({ hidden }) => hidden)
  const problems = parts.flatMap(({ problem = [] }) => problem)
  if (all.length > MAX_HIDDEN_ITEMS) problems.push(`${all.length - MAX_HIDDEN_ITEMS} more items are hidden.`)
  return {
    hidden: all.slice(0, MAX_HIDDEN_ITEMS),
    ...(problems.length > 0 && { problem: problems.join(' ') }),
  }
}
