/**
 * The settings of one mount, the part of the configuration that it depends on: on a reload, a mount whose settings are
 * the same stays. A mount gets nothing else, and its plan contains all of it. So any change of these settings changes
 * the plan.
 */
import { hasSignInPage, parseListen, type ServerSettings, type Settings } from '../config/settings.js'

/** Options of the bridge as a whole. They can change while a mount stays. */
const AROUND = [
  '$schema',
  'mcpServers',
  'groups',
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

/**
 * The plan of a mount: a text of everything that it depends on. If it is unchanged by a reload, the mount stays.
 * `trust` is the plan of a discovered server's TrustContext.
 */
export function planOf(name: string, settings: CommonSettings, trust?: string): string {
  return JSON.stringify([name, settings, trust])
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
