/**
 * Makes the options of the upstream side of a server from its entry in the configuration: transport, environment and
 * stderr of its program, headers, the `clientInfo` of the bridge, and default time limits such as those of the probe and of idle sessions.
 */

import { withoutCredentials } from '../base/credentials/credentials.js'
import type { SealKey } from '../base/crypto/seal.js'
import { lookupOf } from '../base/net/connect.js'
import type { PemFiles } from '../base/net/pem-files.js'
import { proxiesOf } from '../base/net/proxy.js'
import { reachOf } from '../base/net/server-connect.js'
import {
  addressesOf,
  type Callers,
  forwardedTo,
  hasSeveral,
  isStdio,
  type ServerSettings,
  shareOf,
  transportOf,
} from '../config/settings.js'
import type { AccountsByPrincipal } from '../mcp/protocol/account.js'
import type { ServerBounds, ServerOptions } from '../servers/options.js'
import { HttpTransport } from '../servers/transport/http.js'
import { InProcessTransport } from '../servers/transport/in-process.js'
import { SseTransport } from '../servers/transport/sse.js'
import { StdioTransport } from '../servers/transport/stdio/stdio.js'
import type { Connect } from '../servers/transport/undici-pool.js'
import { type BridgeContext, observerOf } from './context.js'
import type { MountSettings } from './mount-settings.js'
import { programStart } from './program-start.js'
import type { OneAddress } from './several.js'
import type { Shared } from './shared.js'

/** Milliseconds for the answer to the era probe, by default. */
const PROBE_TIMEOUT = { http: 10_000, sse: 10_000, stdio: 15_000 }
/** Idle timeout over HTTP in milliseconds, by default. Programs have that of clients, because ending one loses what it keeps in memory. */
const IDLE = 600_000

/** The timeouts of a server: its own, otherwise those of the configuration. */
export function timesOf(settings: Pick<MountSettings, 'timeouts'>, own: ServerSettings): MountSettings['timeouts'] {
  const given = Object.entries(own.timeouts).filter(([, time]) => time !== undefined)
  return { ...settings.timeouts, ...Object.fromEntries(given) }
}

/**
 * How a server is reached: `connect` replaces the way to connect, `accounts` are for signing in, `pem` is for TLS, and
 * `claimed` is the era that its card claims.
 */
export interface Reaching {
  connect?: Connect | undefined
  accounts?: AccountsByPrincipal | undefined
  pem?: PemFiles | undefined
  claimed?: ServerOptions['claimed']
  /** One of several addresses; by default the first one. `shown` is what people see in its place. */
  address?: OneAddress | undefined
  shown?: string | undefined
  /** What concerns all addresses. */
  several?: Pick<ServerOptions, 'isOneOfSeveral' | 'reached'> | undefined
}

/** Settings of bounds and times. */
type BoundingSettings = Pick<MountSettings, 'timeouts' | 'limits'> & Callers

/** What a server is in, or on: it decides about some bounds and times. */
type Kind = 'http' | 'sse' | 'stdio' | 'in-process'

/** The bounds and times of the Server of an entry. `keys` seal the states of parked calls. */
export function serverBounds(
  own: ServerSettings,
  all: BoundingSettings,
  { kind = kindOf(own), keys }: { kind?: Kind | undefined; keys: readonly SealKey[] },
): ServerBounds {
  const { limits } = all
  const { lineBytes: line, answerBytes: answer, streamBytes: stream } = limits
  const times = timesOf(all, own)
  const { probe, initialize, start, startWait, answer: ttl, clientIdle, clientGone, reuse } = times
  const isProgram = kind === 'stdio'
  const isOwn = own.process === 'own' || own.session === 'per-request'
  const usual = kind === 'in-process' ? 'stdio' : kind
  return {
    share: shareOf(all),
    several: hasSeveral(all),
    timeouts: {
      probe: probe ?? PROBE_TIMEOUT[usual],
      initialize,
      start,
      startWait,
      idle: times.idle ?? (usual === 'stdio' ? clientIdle : IDLE),
      reuse: isOwn ? 0 : Math.min(reuse, clientGone),
    },
    maxSessions: isProgram ? limits.processes : limits.sessions,
    startsPerMinute: isProgram ? limits.startsPerMinute : undefined,
    parked: { ttl, max: limits.parked, maxPerPrincipal: limits.parkedPerPrincipal, keys },
    lengths: { line, answer, stream },
  }
}

function kindOf(own: ServerSettings): Kind {
  if (isStdio(own)) return 'stdio'
  return transportOf(own) === 'sse' ? 'sse' : 'http'
}

/** Options for the Server of an entry. */
export function serverOptions(
  name: string,
  settings: ServerSettings,
  all: BoundingSettings,
  context: BridgeContext,
  {
    memory,
    keys,
    replicas,
    isShared = false,
  }: Pick<Shared, 'memory' | 'keys' | 'replicas'> & Partial<Pick<Shared, 'isShared'>>,
  { connect, accounts, pem, claimed, address, shown, several }: Reaching = {},
): ServerOptions {
  const { limits, auth } = all
  const { log, version, env } = context
  const observe = observerOf(context)
  const serve = context.inProcess?.(name)
  const bounds = serverBounds(settings, all, { kind: serve && 'in-process', keys })
  const common = {
    ...bounds,
    ...several,
    name,
    era: settings.era,
    claimed,
    isolation: settings.session,
    asksAlone: settings.questions === 'exact',
    single: settings.process === 'single',
    passthrough: auth?.passthrough ?? false,
    forwards: forwardedTo(settings).length > 0,
    accounts,
    tasks: settings.tasks,
    retry: settings.retry,
    roots: settings.roots,
    ping: isStdio(settings) ? undefined : settings.ping,
    clientInfo: JSON.stringify({ name: 'mcp-bridge', version }),
    log: log.child({ server: name, ...(address && { address: address.name }) }),
    observe,
    recorder: context.recorder?.serverOf(name),
    memory,
    replicas,
  }
  if (serve)
    return { ...common, transport: new InProcessTransport({ serve, lineLimit: limits.lineBytes, memory, isShared }) }
  if (isStdio(settings)) {
    const transport = new StdioTransport({
      ...programStart(settings, env),
      lineLimit: limits.lineBytes,
      memory,
      isShared,
      onStderr: (line) => {
        if (common.log.isLevelEnabled('debug'))
          common.log.debug({ event: 'server_stderr', line: withoutCredentials(line) }, 'server wrote to stderr')
        context.recorder?.stderr(name, line)
      },
      onChild: (what, pid, running) => observe?.({ kind: 'child', server: name, what, pid, running }),
    })
    return { ...common, transport }
  }
  const headers = Object.fromEntries(Object.entries(settings.headers).map(([key, value]) => [key.toLowerCase(), value]))
  const url = address?.url ?? new URL(addressesOf(settings)[0])
  const way = connect
    ? { connect }
    : reachOf(url, {
        proxyOf: proxiesOf(env),
        pem: pem && (() => pem.current),
        socketPath: settings.socket,
        ipv4: settings.ipv4,
        lookup: address?.ip === undefined ? undefined : lookupOf([address.ip]),
      })
  const socket = settings.socket === undefined ? undefined : `unix:${settings.socket}:${url.pathname}`
  const target = socket ?? address?.name ?? shown
  const { answerBytes: bodyLimit, streamBytes: streamLimit } = limits
  const reach = { url, target, headers, ...way, bodyLimit, streamLimit, memory, isShared, address: address?.name }
  const sse = new SseTransport(reach)
  if (kindOf(settings) === 'sse') return { ...common, transport: sse }
  return {
    ...common,
    transport: new HttpTransport(reach),
    ...(transportOf(settings) === undefined && { fallback: sse }),
  }
}
