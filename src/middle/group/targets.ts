/** Finds the server that a call to a group is for, and translates the call into that server's names. */

import { Fault } from '../../base/fault/fault.js'
import { memoize } from '../../base/rpc/memoize.js'
import { edit, type Json, objectIn, type Payload, parseObject, stringUnder } from '../../base/rpc/splice.js'
import { ECHOED, printable } from '../../base/texts/printable.js'
import type { Call } from '../../mcp/protocol/call.js'
import { CALL_TOOL, EVENT_LIST, EVENT_USES } from '../../mcp/protocol/methods.js'
import { type NamedItem, unknownFault } from '../policy/unknown.js'
import { whoOf } from '../policy/who.js'
import type { GroupDiscovery } from './group-discovery.js'
import type { Inside } from './inside.js'
import type { Unheard } from './lists.js'
import { activeIn, type GroupPlan, type Member } from './member.js'
import { offersIn } from './merge.js'
import { splitName } from './names.js'
import type { Owners } from './owners.js'
import { type UriClaim, UriClaims } from './uri-claims.js'
import { mayExpandTo, prefixedUri, splitUri } from './uris.js'

/** A server, and the target's name at that server. */
export interface FoundMember {
  member: Member
  id: string
  /** The client's URI, if it has no prefix. Answers show it unchanged. */
  bare?: string | undefined
  /** The client's name or URI, if it is another one. */
  called?: string | undefined
}

/** The server of a call, and the params for it. */
export interface CallTarget extends FoundMember {
  params: Payload
}

/** What the params of a method name: a listed tool, prompt or type of events, a URI, a task, or a prompt or URI in `ref`. */
type Naming = Named | { kind: 'uri' } | { kind: 'task' } | { kind: 'ref' }
interface Named {
  kind: 'name'
  list: string
  what: NamedItem
}
const TOOLS: Named = { kind: 'name', list: 'tools/list', what: 'tool' }
const PROMPTS: Named = { kind: 'name', list: 'prompts/list', what: 'prompt' }
const EVENTS: Named = { kind: 'name', list: EVENT_LIST, what: 'event' }
const NAMING: Readonly<Record<string, Naming>> = {
  [CALL_TOOL]: TOOLS,
  'prompts/get': PROMPTS,
  'resources/read': { kind: 'uri' },
  'resources/directory/read': { kind: 'uri' },
  'skills/get': { kind: 'uri' },
  'completion/complete': { kind: 'ref' },
  'tasks/get': { kind: 'task' },
  'tasks/update': { kind: 'task' },
  'tasks/cancel': { kind: 'task' },
  ...Object.fromEntries([...EVENT_USES].map((method) => [method, EVENTS])),
}
const APPS = 'io.modelcontextprotocol/ui'

export class Targets {
  readonly #inside: Inside
  readonly #discovery: GroupDiscovery
  readonly #owners: Owners
  readonly #claims = new UriClaims()

  constructor(inside: Inside, discovery: GroupDiscovery, owners: Owners) {
    this.#inside = inside
    this.#discovery = discovery
    this.#owners = owners
  }

  /** The server of a call. Undefined if its params name nothing. Throws or rejects with a Fault if no server has it. */
  of(call: Call): CallTarget | Promise<CallTarget> | undefined {
    const { method, params } = call
    const naming = Object.hasOwn(NAMING, method) ? NAMING[method] : undefined
    switch (naming?.kind) {
      case undefined:
        return undefined
      case 'name':
        return this.#named(call, naming, params, (name) => edit(params, { name }))
      case 'uri':
        return this.#addressed(call, params, (uri) => edit(params, { uri }))
      case 'task':
        return this.#ofTask(params)
      case 'ref': {
        const ref = objectIn(params, 'ref')
        if (!ref) throw new Fault('invalidParams', 'params.ref has to be an object')
        const put = (key: string) => (json: Json) => edit(params, { ref: edit(ref, { [key]: json }) })
        return stringUnder(ref, 'type') === 'ref/prompt'
          ? this.#named(call, PROMPTS, ref, put('name'))
          : this.#addressed(call, ref, put('uri'))
      }
    }
  }

  /** Remembers that a server sent or served a caller a URI. */
  claimed(who: string, member: Member, uri: string, claim: UriClaim): void {
    this.#claims.add(who, member, uri, claim)
  }

  /** To be called when the servers of the group have changed. */
  change(members: readonly Member[]): void {
    this.#claims.change(members)
  }

  /** The server of a task, and the task's id there; undefined if there is none. */
  task(taskId: string): FoundMember | undefined {
    const plan = this.#inside.plan()
    const members = activeIn(plan)
    const [only] = members
    if (isAlone(plan)) return only && { member: only, id: taskId }
    const found = splitName(members, taskId)
    return found && { member: found.member, id: found.name }
  }

  /** The server of a URI, and the URI there. Rejects with a Fault if none or several have it. */
  uri(call: Call, uri: string): FoundMember | Promise<FoundMember> {
    const plan = this.#inside.plan()
    const members = activeIn(plan)
    const found = plan.bareUris ? undefined : splitUri(members, uri)
    if (found) return { member: found.member, id: found.uri, called: uri }
    const [only, ...others] = members
    return only && others.length === 0 ? { member: only, id: uri, bare: uri } : this.#ownerOf(call, uri)
  }

  #named(call: Call, named: Named, at: Payload, put: (json: Json) => Payload): CallTarget | Promise<CallTarget> {
    const name = stringUnder(at, 'name')
    if (typeof name !== 'string') throw new Fault('invalidParams', `The name of the ${named.what} has to be a string`)
    const plan = this.#inside.plan()
    const members = activeIn(plan)
    const [only] = members
    if (isAlone(plan) && only) return { member: only, id: name, params: call.params }
    if (plan.bareNames) return this.#owner(call, named, name)
    const found = splitName(members, name)
    if (found) return { member: found.member, id: found.name, called: name, params: put(JSON.stringify(found.name)) }
    // A user interface uses its server's own names of tools, and its host forwards them unchanged.
    if (named !== TOOLS || !hasApps(call.caller.capabilities)) throw unknown(named, name)
    return this.#owner(call, named, name, true)
  }

  /** The first server that lists a name. If `isOnly`, no other may list it. */
  async #owner(call: Call, named: Named, name: string, isOnly = false): Promise<CallTarget> {
    const { owners, unheard } = await this.#owners.of(call, named.list, (ids) => ids.has(name), { isUnique: isOnly })
    const [listing, ...others] = owners
    const member = listing ?? (isOnly || named !== TOOLS ? undefined : await this.#withholding(call))
    if (!member || (isOnly && others.length > 0)) throw unknown(named, name, member ? [] : unheard)
    return { member, id: name, params: call.params }
  }

  /** The first server that lists the tool of a call to other callers: it says which scope this one lacks. */
  async #withholding(call: Call): Promise<Member | undefined> {
    const members = activeIn(this.#inside.plan())
    const withheld = await Promise.all(members.map(({ upstream }) => upstream.withholds?.(call)))
    return members.find((_, i) => withheld[i])
  }

  #addressed(call: Call, at: Payload, put: (json: Json) => Payload): CallTarget | Promise<CallTarget> {
    const uri = stringUnder(at, 'uri')
    if (typeof uri !== 'string') throw new Fault('invalidParams', 'The URI has to be a string')
    const found = this.uri(call, uri)
    const target = (one: FoundMember) => ({
      ...one,
      params: one.bare === undefined ? put(JSON.stringify(one.id)) : call.params,
    })
    return found instanceof Promise ? found.then(target) : target(found)
  }

  /**
   * The owner of a URI without a prefix: the only server that has listed or served it; else the only one with a template for
   * it; else the only one with resources. A server that has merely sent the URI does not replace these: it is one more.
   * Where no URI has a prefix, the first of several counts, as its list says, but for a caller whom only another one has served it.
   */
  async #ownerOf(call: Call, uri: string): Promise<FoundMember> {
    const who = whoOf(call)
    const listed = await this.#owners.of(call, 'resources/list', (ids) => ids.has(uri), { isUnique: true })
    const claiming = new Map(activeIn(this.#inside.plan()).map((member) => [member, this.#claims.of(who, member, uri)]))
    const { bareUris } = this.#inside.plan()
    const isListed = bareUris && listed.owners.length > 0
    const holding = [...claiming].flatMap(([member, claim]) =>
      (claim === 'served' && !isListed) || listed.owners.includes(member) ? member : [],
    )
    const templates =
      holding.length > 0
        ? undefined
        : await this.#owners.of(call, 'resources/templates/list', (ids) =>
            [...ids].some((one) => mayExpandTo(one, uri)),
          )
    const fitting = templates?.owners ?? holding
    const known = fitting.length > 0 ? fitting : await this.#onlyWithResources(call)
    const served = known.filter((member) => claiming.get(member) === 'served')
    const having = bareUris ? (served.length === 1 ? served : known.slice(0, 1)) : known
    const owners = [...claiming].flatMap(([member, claim]) =>
      having.includes(member) || (claim && !known.includes(member)) ? member : [],
    )
    const [owner] = owners
    if (!owner) {
      const unheard = [...listed.unheard, ...(templates?.unheard ?? [])]
      const shown = printable(uri, ECHOED)
      throw (
        mayBeLate(`the resource ${shown}`, unheard) ??
        noResource(uri, `No server of the group is known to have ${shown}`)
      )
    }
    if (owners.length === 1) return { member: owner, id: uri, bare: uri }
    this.#inside.log.ambiguous(uri, owners)
    throw noResource(uri, this.#ambiguous(uri, owners))
  }

  /** The only server with resources, if there is just one. */
  async #onlyWithResources(call: Call): Promise<readonly Member[]> {
    const described = await this.#discovery.describe(call)
    const members = activeIn(this.#inside.plan())
    const offering = new Set(described.flatMap((one) => (offersIn(one, 'resources') ? one.server : [])))
    // A server that has not answered yet may have it.
    const isSure = described.length === members.length
    return isSure && offering.size === 1 ? members.filter(({ server }) => offering.has(server)) : []
  }

  #ambiguous(uri: string, owners: readonly Member[]): string {
    const shown = printable(uri, ECHOED)
    const servers = owners.map(({ server }) => server).join(', ')
    if (this.#inside.plan().bareUris)
      return `Several servers have ${shown}: ${servers}. Only URIs with prefixes tell them apart ("resources": "prefix" of the group)`
    return `Several servers have ${shown}: say which, as ${owners.map((owner) => prefixedUri(owner, shown)).join(' or ')}`
  }

  #ofTask(params: Payload): CallTarget {
    const taskId = stringUnder(params, 'taskId')
    const found = typeof taskId === 'string' ? this.task(taskId) : undefined
    if (!found) throw new Fault('invalidParams', 'Unknown or expired taskId')
    return { ...found, params: edit(params, { taskId: JSON.stringify(found.id) }) }
  }
}

/** Whether a group has a single server and renames nothing. */
export function isAlone({ members, bareNames, bareUris }: GroupPlan): boolean {
  return members.length === 1 && bareNames && bareUris
}

const hasApps = memoize((capabilities): boolean => {
  const extensions = objectIn(parseObject(capabilities), 'extensions')
  return extensions !== undefined && objectIn(extensions, APPS) !== undefined
})

function unknown({ what }: Named, name: string, unheard: readonly Unheard[] = []): Fault {
  return mayBeLate(`the ${what} ${printable(name, ECHOED)}`, unheard) ?? unknownFault(what, name)
}

/** The Fault if a server that is late may have the target; undefined if none is late. */
function mayBeLate(what: string, unheard: readonly Unheard[]): Fault | undefined {
  const late = [...new Set(unheard.flatMap(({ member, isLate }) => (isLate ? member.server : [])))]
  if (late.length === 0) return undefined
  const message = `No server of the group that has answered has ${what}. Not answered yet: ${late.join(', ')}`
  return new Fault('upstreamBusy', message, { retryAfter: 1 })
}

function noResource(uri: string, message: string): Fault {
  return new Fault('invalidParams', message, uri.length > ECHOED ? {} : { data: { uri } })
}
