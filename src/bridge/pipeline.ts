/** Policies of a mount that are made of several things which the configuration and discovery know. */
import { isStdio, type ServerSettings } from '../config/settings.js'
import type { Results } from '../policy/cache/results.js'
import { Cache } from '../policy/cache.js'
import { globs, MAX_NAME } from '../policy/quarantine.js'
import { scopes } from '../policy/scopes.js'
import type { UnavailableOptions } from '../policy/unavailable.js'
import type { Observe } from '../ports/events.js'
import type { Standing, ToolList } from '../ports/trust-status.js'
import type { Policy } from '../protocol/call.js'
import { Fault } from '../protocol/fault.js'
import type { Json } from '../rpc/splice.js'
import type { Connect } from '../upstream/transport/origin.js'
import type { MountSettings } from './mount-settings.js'

/** What is known of a server that has been found, and that it is kept on a lead for. */
export interface TrustContext {
  /** What its connections are made under: while it is the same, they can stay. */
  plan: string
  connect: Connect
  standing(tools: ToolList | undefined): Standing
  /** Globs of tools that may be called in quarantine. */
  readOnly: readonly string[]
  /** Whether it is left alone at this moment. */
  state: UnavailableOptions['state']
  /** Scopes that its manifest asks for. */
  required(tool: string): readonly string[]
  /** It has said again who it is. */
  heard(serverInfo: Json): void
  /** It could not be reached. */
  missed(): void
}

/** Subscriptions with which changes are heard of what is kept of one server. */
const MAX_LISTENED = 256

/** Keeps tools from those who do not have the scopes for them, where any tool asks for some. */
export function scopesOf(
  own: ServerSettings,
  { auth }: MountSettings,
  lead: TrustContext | undefined,
): Policy | undefined {
  const rules = Object.entries(own.scopes).map(([glob, wanted]) => ({ named: globs([glob]), wanted }))
  if (rules.length === 0 && !lead) return undefined
  const tokens = Object.entries(auth?.tokens ?? {})
  const known = new Map(tokens.map(([name, { scopes }]) => [name, new Set(scopes)]))
  return scopes({
    required: (tool) => [
      // Of a name that no glob is compared with, nobody can tell that it takes less than any other.
      ...rules.flatMap(({ named, wanted }) => (named(tool) || tool.length > MAX_NAME ? wanted : [])),
      ...(lead?.required(tool) ?? []),
    ],
    scopesOf: (principal) => known.get(principal),
  })
}

/** Hears what a server that was found says of itself, and that it cannot be reached. */
export function watched({ heard, missed }: TrustContext): Policy {
  return (next) =>
    async function* watchedCall(call) {
      try {
        for await (const reply of next(call)) {
          if (reply.kind !== 'notification' && reply.server !== undefined) heard(reply.server)
          yield reply
        }
      } catch (error) {
        if (error instanceof Fault && error.fault === 'upstreamUnavailable') missed()
        throw error
      }
    }
}

/** What keeps results of a server, if they are to be kept. */
export function cacheOf(
  name: string,
  own: ServerSettings,
  { limits }: MountSettings,
  results: Results,
  observe: Observe | undefined,
): Cache | undefined {
  if (own.cache === 'off') return undefined
  // What listens to a legacy server holds a session that a caller could have; and one that is a single call's hears nothing.
  const sessions = isStdio(own) ? limits.processes : limits.sessions
  const subscriptions = own.session === 'per-request' ? 0 : Math.min(MAX_LISTENED, Math.floor(sessions / 2))
  const shared = own.cacheFor === 'public'
  return new Cache({ server: name, mode: own.cache, shared, results, subscriptions, observe })
}
