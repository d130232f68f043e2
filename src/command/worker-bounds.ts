/** Divides the bounds of a bridge among its workers, so that all together keep them. */
import { ConfigError, type Settings } from '../config/settings.js'

/** The bounds that each process counts for itself. */
const COUNTED = [
  'memory',
  'connections',
  'calls',
  'callsPerServer',
  'subscriptions',
  'clientSessions',
  'parked',
  'parkedPerPrincipal',
  'sessions',
  'processes',
  'startsPerMinute',
] as const satisfies readonly (keyof Settings['limits'])[]

/** The settings of one of so many workers. `key` is for a configuration without `stateKeys`. */
export function partOf(settings: Settings, count: number, key: string): Settings {
  const { limits, stateKeys } = settings
  const parts = COUNTED.flatMap((name) => {
    const bound = limits[name]
    return bound === undefined ? [] : [[name, Math.max(1, Math.floor(bound / count))] as const]
  })
  return {
    ...settings,
    limits: { ...limits, ...Object.fromEntries(parts) },
    stateKeys: stateKeys.length > 0 ? stateKeys : [key],
  }
}

/** Throws a ConfigError if a bound cannot be divided among so many workers. */
export function checkParts({ limits }: Settings, count: number): void {
  const issues = COUNTED.filter((name) => (limits[name] ?? count) < count).map((name) => ({
    path: `limits.${name}`,
    message: `is divided among ${count} workers, so it has to be at least ${count}: raise it, or set "workers" to at most ${limits[name]}`,
  }))
  if (issues.length > 0) throw new ConfigError(issues)
}
