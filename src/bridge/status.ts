/** What operators see of a bridge: whether it is ready, its servers, and the usage of its bounds. */

import type { ServerNow } from '../inspect/views.js'
import type { HealthOptions } from '../plugins/health.js'
import type { Gauge } from '../ports/events.js'
import type { Mount } from './mount.js'
import type { Shared } from './shared.js'

/** The mounts of a bridge, by name of their server. */
type Mounts = ReadonlyMap<string, Mount>

/** The readiness of a bridge: not while it shuts down, and not while no server is reachable. */
export function readinessOf(mounts: Mounts, isStopping: boolean): ReturnType<HealthOptions['state']> {
  const healths = [...mounts].map(([name, mount]) => [name, { ...mount.health, ...mount.busy }] as const)
  const servers = Object.fromEntries(healths)
  if (isStopping) return { ready: false, status: 'draining', servers }
  const reachable = healths.some(([, { state }]) => state === 'ready')
  const unknown = healths.some(([, { state }]) => state === 'unknown')
  // A request for the readiness makes the bridge try the servers again.
  if (!reachable) for (const mount of mounts.values()) mount.server.warmUp().catch(() => {})
  return {
    ready: reachable,
    status: reachable ? 'ready' : unknown ? 'starting' : 'no server can be reached',
    servers,
  }
}

/** What the inspector shows of the servers now. */
export function serversNow(mounts: Mounts): ServerNow[] {
  return [...mounts].map(([name, mount]) => ({ name, ...mount.health, ...mount.busy, pause: mount.pause }))
}

/** The usage of all bounds that can be read cheaply. `connections` are those of clients. */
export function gaugesOf(
  { calls, subscriptions, memory, results }: Shared,
  connections: Pick<Gauge, 'used' | 'limit'>,
  mounts: Mounts,
): Gauge[] {
  return [
    { bound: 'memory', used: memory.used, limit: memory.max },
    { bound: 'calls', used: calls.used, limit: calls.max },
    { bound: 'subscriptions', used: subscriptions.used, limit: subscriptions.max },
    { bound: 'connections', ...connections },
    { bound: 'cached_results', used: results.size, limit: results.max },
    { bound: 'cached_bytes', used: results.calculatedSize, limit: results.maxSize },
    ...[...mounts.values()].flatMap(({ gauges }) => gauges),
  ]
}
