/**
 * The settings of one mount, and what a reload has to make anew when they change: nothing (bounds and times), the mount
 * (what clients may see), or also its server, with its processes and sessions. A mount gets nothing else than its settings,
 * so an option that no list here names makes the server anew.
 */

import { digest } from '../base/crypto/digest.js'
import {
  hasSeveral,
  hasSignInPage,
  isStdio,
  parseListen,
  SERVER_KEYS,
  type ServerSettings,
  type Settings,
} from '../config/settings.js'

/** Options of the bridge as a whole. They can change while a mount stays. */
const AROUND = [
  '$schema',
  'mcpServers',
  'groups',
  'lists',
  'discover',
  'registry',
  'discoverAllow',
  'discoverLoopback',
  'readOnlyTools',
  'trustStore',
  'publish',
  'listen',
  'tls',
  'socketMode',
  'admin',
  'adminToken',
  'metrics',
  'publicUrl',
  'allowedHosts',
  'allowedOrigins',
  'allowUnauthenticated',
  'trustedProxies',
  'log',
  'inspect',
] as const satisfies (keyof Settings)[]
const TIMES_AROUND = ['drainDelay', 'drainTimeout'] as const satisfies (keyof Settings['timeouts'])[]

const LIMITS_AROUND = ['requestsPerMinute', 'wrongTokensPerMinute'] as const satisfies (keyof Settings['limits'])[]

type Auth = NonNullable<Settings['auth']>

/** The settings of every mount. */
export interface CommonSettings extends Omit<Settings, (typeof AROUND)[number] | 'timeouts' | 'limits' | 'auth'> {
  timeouts: Omit<Settings['timeouts'], (typeof TIMES_AROUND)[number]>
  limits: Omit<Settings['limits'], (typeof LIMITS_AROUND)[number]>
  /** The principals and their scopes, without the tokens, and whether identity providers or a proxy sign others in. */
  auth:
    | (Pick<Auth, 'passthrough' | 'unscoped'> & {
        tokens?: Record<string, { scopes: readonly string[] }> | undefined
        issuers?: true | undefined
        forwarded?: true | undefined
      })
    | undefined
  /** Whether people sign in to servers on a page of the bridge. */
  page: boolean
}

/** The settings of the mount of a server. */
export interface MountSettings extends CommonSettings {
  /** The entry of the server, without the path under which it is served. */
  server: ServerSettings
}

export function mountSettings(name: string, settings: Settings): MountSettings {
  const { path: _path, ...server } = settings.mcpServers[name] as ServerSettings
  return { ...commonSettings(settings), server }
}

/** The settings of a mount without what it serves: those of a group, whose servers may change while it stays. */
export function commonSettings(settings: Settings): CommonSettings {
  const { timeouts, limits, auth } = settings
  return {
    ...without(settings, AROUND),
    timeouts: without(timeouts, TIMES_AROUND),
    limits: without(limits, LIMITS_AROUND),
    auth: auth && {
      passthrough: auth.passthrough,
      unscoped: auth.unscoped,
      tokens: auth.tokens && withoutSecrets(auth.tokens),
      issuers: auth.issuers && true,
      forwarded: auth.forwarded && true,
    },
    page: hasSignInPage(settings, parseListen(settings.listen)),
  }
}

/** Options that a mount applies while it goes on. It also applies limits; only the first limit of tools makes it anew. */
const APPLIED = ['timeouts', 'compat', 'stateKeys'] as const satisfies (keyof CommonSettings)[]
const APPLIED_OF_SERVER: readonly string[] = ['timeouts', 'strictRevisions', 'start']
/** Options of the policies around a server: they decide what clients see and may call. */
const POLICIES = ['audit', 'metricsTools'] as const satisfies (keyof CommonSettings)[]
const POLICIES_OF_SERVER: readonly string[] = [
  'scopes',
  'unscoped',
  'tools',
  'prompts',
  'resources',
  'events',
  'schemas',
  'results',
  'cache',
  'cacheFor',
  'paths',
]

/** Texts of what a mount and its server are made of. */
export interface MountPlan {
  /** If it is unchanged by a reload, the server stays, with its processes and sessions. */
  server: string
  /** If this is unchanged too, the mount stays. */
  policies: string
  /** What its lists depend on, as a digest: without values of variables and headers, which may be new at each start. */
  lists: string
}

/** The plan of a mount. `trust` is the plan of a discovered server's TrustContext. */
export function planOf(name: string, { server, ...settings }: MountSettings, trust?: string): MountPlan {
  const { auth, limits, page, ...common } = without(settings, APPLIED)
  // Files of clients have options of theirs in an entry.
  const own = Object.entries(server).filter(([key]) => SERVER_KEYS.has(key) && !APPLIED_OF_SERVER.includes(key))
  const isPolicy = ([key]: [string, unknown]) => POLICIES_OF_SERVER.includes(key)
  const checksScopes = trust !== undefined || Object.keys(server.scopes).length > 0
  const policies = JSON.stringify([
    own.filter(isPolicy),
    POLICIES.map((key) => common[key]),
    checksScopes && [auth?.unscoped, auth?.tokens],
    limits.tools.length > 0,
  ])
  return {
    server: JSON.stringify([
      name,
      own.filter((one) => !isPolicy(one)),
      without(common, POLICIES),
      { passthrough: auth?.passthrough, several: hasSeveral(settings), page: !isStdio(server) && page },
      trust,
    ]),
    policies,
    lists: digest(JSON.stringify([name, reached(server), policies, trust])),
  }
}

/** How a server is reached, with the names of its variables or headers. */
function reached(server: ServerSettings): readonly unknown[] {
  if (isStdio(server)) return [server.command, server.args, server.cwd, namesIn(server.env)]
  return [server.url, server.socket, server.type, namesIn(server.headers)]
}

function namesIn(values: object | undefined): string[] {
  return Object.keys(values ?? {}).sort()
}

/** Whether callers that one configuration accepts are not accepted by the next one. Nothing of them may stay. */
export function losesCallers(before: Settings, now: Settings): boolean {
  const accepted = callersIn(now)
  return [...callersIn(before)].some((one) => !accepted.has(one))
}

/** The principals with tokens, and the other ways to be accepted. */
function callersIn({ auth }: Settings): ReadonlySet<string> {
  if (!auth) return new Set([' everybody'])
  const { passthrough, issuers = [], forwarded, tokens = {} } = auth
  return new Set([
    ...Object.keys(tokens),
    ...issuers.map(({ issuer }) => ` ${issuer}`),
    ...(forwarded ? [' forwarded'] : []),
    ...(passthrough ? [' passthrough'] : []),
  ])
}

function withoutSecrets(tokens: NonNullable<Auth['tokens']>): Record<string, { scopes: readonly string[] }> {
  const entries = Object.entries(tokens)
  return Object.fromEntries(
    entries.map(([name, token]) => [name, { scopes: typeof token === 'string' ? [] : token.scopes }]),
  )
}

function without<T extends object, K extends keyof T>(all: T, keys: readonly K[]): Omit<T, K> {
  const kept = Object.entries(all).filter(([key]) => !(keys as readonly string[]).includes(key))
  return Object.fromEntries(kept) as Omit<T, K>
}
