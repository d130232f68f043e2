/** What operators see of a bridge: whether it is ready, its servers, and the usage of its bounds. */

import type { BridgeStatus, ProcessNow, Readiness } from '../mcp/ports/bridge-status.js'
import type { AddressInUse, Certificate, Gauge, IssuerState } from '../mcp/ports/events.js'
import type { ServerStatus } from '../mcp/ports/server-status.js'
import { memoryOf } from '../servers/transport/stdio/memory.js'
import { runningPrograms } from '../servers/transport/stdio/process-group.js'
import type { GroupMount } from './group-mount.js'
import type { Mount } from './mount.js'
import type { Served } from './served.js'
import type { Shared } from './shared.js'

/** The mounts of a bridge, by name of their server. */
type Mounts = ReadonlyMap<string, Mount>

/** The readiness of a bridge: not while it shuts down, and not while no server is reachable. */
export function readinessOf(
  mounts: Mounts,
  groups: ReadonlyMap<string, GroupMount>,
  {
    isStopping,
    redisUp,
    issuers,
    piped,
  }: {
    isStopping: boolean
    redisUp: boolean | undefined
    issuers: readonly IssuerState[]
    /** What the client on stdio is served. */
    piped: Served | undefined
  },
): Readiness & { ready: boolean } {
  const sessionsOf = (served: Served) => served.clients.sessions + (served === piped ? 1 : 0)
  const healths = [...mounts].map(
    ([name, mount]) => [name, { ...mount.health, sessions: sessionsOf(mount), ...mount.busy }] as const,
  )
  const together = [...groups].map(
    ([name, group]) => [name, { ...group.health, sessions: sessionsOf(group), calls: group.busy.calls }] as const,
  )
  const states = {
    // A bridge without its Redis is ready: it serves what needs no other replica.
    ...(redisUp !== undefined && { redis: redisUp ? ('up' as const) : ('down' as const) }),
    // So is one that cannot check tokens: it may have other ways to know callers.
    ...(issuers.length > 0 && { issuers: Object.fromEntries(issuers.map(({ issuer, ...state }) => [issuer, state])) }),
    servers: Object.fromEntries(healths),
    ...(together.length > 0 && { groups: Object.fromEntries(together) }),
  }
  if (isStopping) return { ready: false, status: 'draining', ...states }
  const reachable = healths.some(([, { state }]) => state === 'ready')
  const unknown = healths.some(([, { state }]) => state === 'unknown')
  // A request for the readiness makes the bridge try the servers again.
  if (!reachable) for (const mount of mounts.values()) mount.server.warmUp().catch(() => {})
  return {
    ready: reachable,
    status: reachable ? 'ready' : unknown ? 'starting' : 'no server can be reached',
    ...states,
  }
}

/** The state of the process that serves, with that of its servers and groups. */
export function statusOf(
  version: string,
  { ready: _, ...readiness }: Readiness & { ready: boolean },
  mounts: Mounts,
): BridgeStatus {
  const servers = Object.entries(readiness.servers).map(([name, state]) => [
    name,
    { ...state, ...inOperation(mounts.get(name)) },
  ])
  return { ...processNow(version), ...readiness, servers: Object.fromEntries(servers) }
}

/** The state of the process that serves. */
export function processNow(version: string): ProcessNow {
  const since = Math.round(Date.now() / 1_000 - process.uptime()) * 1_000
  return {
    version,
    pid: process.pid,
    since: new Date(since).toISOString(),
    memory: process.memoryUsage.rss(),
    programs: runningPrograms(),
  }
}

/** The programs of a server that run, their memory, and its last failure. */
function inOperation(mount: Mount | undefined): Pick<ServerStatus, 'programs' | 'memory' | 'lastError'> {
  if (!mount) return {}
  const { isProgram, programs = [], lastFailure } = mount.server
  return {
    ...(isProgram && { programs: programs.length, memory: memoryOf(programs) }),
    ...(lastFailure && { lastError: { at: new Date(lastFailure.at).toISOString(), why: lastFailure.why } }),
  }
}

/** What the inspector shows of the servers now. */
export function serversNow(mounts: Mounts): ServerStatus[] {
  return [...mounts].map(([name, mount]) => ({
    name,
    ...mount.health,
    ...mount.busy,
    ...inOperation(mount),
    pause: mount.pause,
    ...(mount.policies.simplified.all.length > 0 && { simplified: mount.policies.simplified.all }),
  }))
}

/** The certificates of the bridge that can expire: for its own addresses, and for servers that require one. */
export function certificatesOf(mounts: Mounts, own: readonly (Certificate | undefined)[]): Certificate[] {
  const ofServers = [...mounts].map(([server, { certificateExpiresAt: expiresAt }]) =>
    expiresAt === undefined ? undefined : { use: 'server' as const, server, expiresAt },
  )
  return [...own, ...ofServers].filter((one) => one !== undefined)
}

/** The addresses of servers that have several, without those that have left. */
export function addressesInUse(mounts: Mounts): AddressInUse[] {
  return [...mounts].flatMap(([server, mount]) =>
    (mount.server.addresses ?? [])
      .filter(({ leaves }) => !leaves)
      .map(({ address, state, calls }) => ({ server, address, isUp: state !== 'down', calls })),
  )
}

/** The usage of all bounds that can be read cheaply. `connections` are those of clients. */
export function gaugesOf(
  { calls, subscriptions, memory, results }: Shared,
  connections: Pick<Gauge, 'used' | 'limit'>,
  served: readonly Served[],
): Gauge[] {
  return [
    { bound: 'memory', used: memory.used, limit: memory.max },
    { bound: 'calls', used: calls.used, limit: calls.max },
    { bound: 'subscriptions', used: subscriptions.used, limit: subscriptions.max },
    { bound: 'connections', ...connections },
    { bound: 'cached_results', used: results.size, limit: results.max },
    { bound: 'cached_bytes', used: results.calculatedSize, limit: results.maxSize },
    ...served.flatMap(({ gauges }) => gauges),
  ]
}
