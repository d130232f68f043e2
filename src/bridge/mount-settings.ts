/**
 * The part of the configuration that one mount is made of. A mount sees nothing else, and its plan is all of it: when anything
 * changes that a mount is made of, so does its plan.
 */
import type { ServerSettings, Settings } from '../config/settings.js'

/** Options of the bridge as a whole, which can change around a mount. */
const AROUND = [
  '$schema',
  'mcpServers',
  'discover',
  'registry',
  'discoverAllow',
  'discoverLoopback',
  'readOnlyTools',
  'trustStore',
  'publish',
  'listen',
  'admin',
  'metrics',
  'publicUrl',
  'allowedHosts',
  'allowedOrigins',
  'allowUnauthenticated',
  'log',
] as const satisfies (keyof Settings)[]
const TIMES_AROUND = ['drainDelay', 'drainTimeout'] as const satisfies (keyof Settings['timeouts'])[]

type Auth = NonNullable<Settings['auth']>

export interface MountSettings extends Omit<Settings, (typeof AROUND)[number] | 'timeouts' | 'auth'> {
  /** The entry of the server, without where it is served. */
  server: ServerSettings
  timeouts: Omit<Settings['timeouts'], (typeof TIMES_AROUND)[number]>
  /** Who may call: their scopes, without the secrets that show who it is. */
  auth: (Omit<Auth, 'tokens'> & { tokens?: Record<string, { scopes: readonly string[] }> | undefined }) | undefined
}

/** What the mount of a server is made of: all of the configuration but what is named above. */
export function mountSettings(name: string, settings: Settings): MountSettings {
  const { timeouts, auth, mcpServers } = settings
  const { path: _path, ...server } = mcpServers[name] as ServerSettings
  return {
    ...without(settings, AROUND),
    server,
    timeouts: without(timeouts, TIMES_AROUND),
    auth: auth && { ...auth, tokens: auth.tokens && withoutSecrets(auth.tokens) },
  }
}

/**
 * Stands for all that a mount is made of: while it is the same, the mount can stay. `found` stands for what the connections to
 * a server that has been found are made under.
 */
export function planOf(name: string, settings: MountSettings, found?: string): string {
  return JSON.stringify([name, settings, found])
}

function withoutSecrets(tokens: NonNullable<Auth['tokens']>): Record<string, { scopes: readonly string[] }> {
  const entries = Object.entries(tokens)
  return Object.fromEntries(
    entries.map(([name, token]) => [name, { scopes: typeof token === 'string' ? [] : token.scopes }]),
  )
}

function without<T extends object, K extends keyof T>(all: T, keys: readonly K[]): Omit<T, K> {
  const left = Object.entries(all).filter(([key]) => !(keys as readonly string[]).includes(key))
  return Object.fromEntries(left) as Omit<T, K>
}
