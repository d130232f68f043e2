/** Creates the policies of a mount that depend on the configuration and on discovery. */

import { Fault } from '../base/fault/fault.js'
import { personOf } from '../base/texts/principal.js'
import { isStdio, NOT_READ_ONLY, type ServerSettings } from '../config/settings.js'
import type { Observe } from '../mcp/ports/events.js'
import type { Call, Final, Handler, Policy } from '../mcp/protocol/call.js'
import { callerOf } from '../mcp/protocol/listed.js'
import type { ListedNames } from '../mcp/protocol/listed-names.js'
import { CALL_TOOL, EVENT_LIST } from '../mcp/protocol/methods.js'
import { approval } from '../middle/policy/approval/approval.js'
import { audit, foreignUses } from '../middle/policy/audit.js'
import { Cache } from '../middle/policy/cache/cache.js'
import { choice } from '../middle/policy/choice/choice.js'
import { ChosenList } from '../middle/policy/choice/listed.js'
import { namedAsSeen } from '../middle/policy/choice/seen.js'
import { compose } from '../middle/policy/compose.js'
import { cutting } from '../middle/policy/cut/cutting.js'
import { globs, MAX_MATCHED_NAME } from '../middle/policy/globs.js'
import { type PortableOptions, portable, type Schemas } from '../middle/policy/portable/portable.js'
import { type EventScopes, type RequiredScopes, type Scopes, scopes } from '../middle/policy/scopes.js'
import { toolLimits } from '../middle/policy/tool-limits.js'
import type { ListedTool, ToolNames } from '../middle/policy/tool-names.js'
import type { MountTrust } from '../services/discovery/trust/mount-trust.js'
import type { CommonSettings, MountSettings } from './mount-settings.js'
import { timesOf } from './server-options.js'
import type { Shared } from './shared.js'

/** Most subscriptions that the cache of one server opens. */
const MAX_LISTENED = 256

/** What the policies of a server are made of. */
export interface PolicyParts {
  name: string
  /** The settings of its mount. A reload may change their bounds and times. */
  settings: MountSettings
  shared: Shared
  /** The trust in a discovered server; undefined for configured ones. */
  trust: MountTrust | undefined
  observe: Observe | undefined
}

/** What requires scopes for tools and types of events; undefined if none requires any. */
export function scopesOf(
  { name, settings: { server: own, auth }, shared: { memory } }: PolicyParts,
  required: RequiredScopes | undefined,
  listed: ToolNames,
): Scopes | undefined {
  if (!required) return undefined
  const tokens = Object.entries(auth?.tokens ?? {})
  const known = new Map(tokens.map(([name, { scopes }]) => [name, new Set(scopes)]))
  const hides = (own.unscoped ?? auth?.unscoped) === 'hide'
  const rows = eventRows(own)
  const see = namedAsSeen('events', { deny: [] })
  const events: EventScopes | undefined =
    rows.rows.length === 0
      ? undefined
      : { ...rows, listed: new ChosenList({ server: name, method: EVENT_LIST, see, memory }) }
  return scopes({ required, scopesOf: (principal) => known.get(personOf(principal)), hides, listed, events })
}

/** The scopes that tools require; undefined if none requires any. */
export function requiredScopes(own: ServerSettings, trust: MountTrust | undefined): RequiredScopes | undefined {
  const rules = Object.entries(own.scopes).map(([key, wanted]) => ({ covers: coverOf(key), wanted }))
  const ofEvents = Object.values(own.events?.scopes ?? {})
  if (rules.length === 0 && ofEvents.length === 0 && !trust) return undefined
  const all = [...rules.map(({ wanted }) => wanted), ...ofEvents].flat()
  return {
    of: (tool, listed) => [
      ...rules.flatMap(({ covers, wanted }) => (covers(tool, listed) ? wanted : [])),
      ...(trust?.required(tool) ?? []),
    ],
    all: () => (trust ? [...all, ...trust.requiredByAny()] : all),
  }
}

/** The rows for types of events. */
export function eventRows({ events }: Pick<ServerSettings, 'events'>): Pick<EventScopes, 'of' | 'rows'> {
  const rows = Object.entries(events?.scopes ?? {}).map(([key, wanted]) => ({ covers: coverOfName(key), wanted }))
  return {
    of: (type) => {
      const fitting = rows.filter(({ covers }) => covers(type))
      return fitting.length > 0 ? fitting.flatMap(({ wanted }) => wanted) : undefined
    },
    rows: rows.map(({ wanted }) => wanted),
  }
}

/** Returns a function that tells whether a tool falls under a key of `scopes`. */
function coverOf(key: string): (tool: string, listed: ListedTool) => boolean {
  if (key === NOT_READ_ONLY) return (_tool, { isReadOnly }) => !isReadOnly
  return coverOfName(key)
}

function coverOfName(key: string): (name: string) => boolean {
  const named = globs([key])
  // Globs are not matched with longer names. What has one requires the scopes of all rules.
  return (name) => name.length > MAX_MATCHED_NAME || named(name)
}

/** Returns a function that tells whether one of these policies refuses a call of a tool that the server has. */
export function withheldBy(behind: Handler, ...policies: readonly Policy[]): (call: Call) => Promise<boolean> {
  const passed = new Fault('internal', 'No policy refuses the call')
  const ask = compose((call) => (call.method === CALL_TOOL ? Promise.reject(passed) : behind(call)), ...policies)
  return (call) =>
    ask({ ...call, log: { note() {}, warn() {} } }).then(
      () => true,
      () => false,
    )
}

/** The policy that writes the audit log; none without one. */
export function auditOf({ name: server, settings, shared: { audit: log } }: PolicyParts): Policy[] {
  const { required = false, arguments: named = [] } = settings.audit ?? {}
  return log ? [audit({ server, log, required, named })] : []
}

/** The policy of a group that writes the audit log; the servers write lines of their own. None without one. */
export function auditOfGroup(group: string, settings: CommonSettings, { audit: log }: Shared): Policy[] {
  return log ? [foreignUses({ group, log, named: settings.audit?.arguments ?? [] })] : []
}

/** The policy that limits how often tools are called; none without limits. */
export function toolLimitsOf({ name: server, settings, shared }: PolicyParts, listed: ToolNames): Policy[] {
  if (settings.limits.tools.length === 0) return []
  return [toolLimits({ server, limits: () => settings.limits.tools, count: shared.countCall, listed })]
}

/** What clients may see of a server. */
export type Chosen = Pick<ServerSettings, 'tools' | 'prompts' | 'resources' | 'events'>

/** The policy that shows clients a part of the server; none if it shows all of it. */
export function choiceOf(
  { name: server, shared: { memory } }: PolicyParts,
  { tools, prompts, resources, events }: Chosen,
): Policy[] {
  const isChosen = [tools, prompts, resources, events].some((rules) => rules !== undefined)
  return isChosen ? [choice({ server, tools, prompts, resources, events, memory })] : []
}

/** The policy that makes people approve calls; none if none has to be approved. */
export function approvalOf({ name: server, settings, shared, observe }: PolicyParts): Policy[] {
  const { approvals: owners, pageQuestions: questions, watched, questionExpired, desk, keys, memory } = shared
  const { approve, approveBy, ...rules } = settings.server.tools ?? {}
  if (!approve) return []
  const page =
    approveBy === 'page' ? { questions, addressOf: (name: string) => desk?.approvalAddressOf(name) } : undefined
  const within = () => timesOf(settings, settings.server).answer
  const parts = { owners, keys, memory, watched, questionExpired }
  return [approval({ within, observe, ...rules, server, approve, page, ...parts })]
}

/** The policy that makes schemas and names of tools portable: nothing else to compose if they stay as they are. */
export function portableOf({
  schemas,
  ...options
}: Omit<PortableOptions, 'schemas'> & { schemas: Schemas | undefined }): Policy[] {
  return schemas ? [portable({ ...options, schemas })] : []
}

/** The policy that cuts results of tools; none if they are not cut. */
export function cuttingOf({ name: server, settings, shared: { kept, memory }, observe }: PolicyParts): Policy[] {
  const { results } = settings.server
  if (!results) return []
  const { cut } = results
  const rules = Object.entries(typeof cut === 'number' ? { '*': cut } : cut).map(([key, bytes]) => ({
    covers: coverOfName(key),
    bytes,
  }))
  // The name of a task's tool is not known any more.
  const limitOf = (tool = '') => rules.find(({ covers }) => covers(tool))?.bytes
  return [cutting({ server, limitOf, kept, memory, observe })]
}

/** A policy that reports the identity of a discovered server, and that it is unreachable. */
export function watched({ heard, missed }: MountTrust): Policy {
  return (next) =>
    async function watchedCall(call) {
      try {
        const last = await next(call)
        if (last.server !== undefined) heard(last.server)
        return last
      } catch (error) {
        if (error instanceof Fault && error.fault === 'upstreamUnavailable') missed()
        throw error
      }
    }
}

/** A policy that learns which tools and prompts the server lists. */
export function learning(server: string, names: Pick<ListedNames, 'learn'>): Policy {
  return (next) => {
    async function learningCall(call: Call): Promise<Final> {
      const last = await next(call)
      if (last.kind === 'result') names.learn(server, call.method, last.result)
      return last
    }
    return (call) => (callerOf(call.method) === undefined ? next(call) : learningCall(call))
  }
}

/** The cache of a server; undefined if it is off. */
export function cacheOf({ name, settings, shared, observe }: PolicyParts): Cache | undefined {
  const { server: own } = settings
  if (own.cache === 'off') return undefined
  const { results } = shared
  return new Cache({
    server: name,
    mode: own.cache,
    shared: own.cacheFor === 'public',
    results,
    // Each subscription with a legacy server takes a session that a caller could use. A session per request hears no
    // changes.
    get subscriptions() {
      const { processes, sessions } = settings.limits
      const half = Math.floor((isStdio(own) ? processes : sessions) / 2)
      return own.session === 'per-request' ? 0 : Math.min(MAX_LISTENED, half)
    },
    observe,
  })
}
