/**
 * Makes the options of the upstream side of a server from its entry in the configuration: transport, environment and
 * stderr of its program, headers, the `clientInfo` of the bridge, and default time limits such as those of the probe and of idle sessions.
 */

import {
  type Callers,
  hasSeveral,
  isStdio,
  type ServerSettings,
  type Settings,
  shareOf,
  transportOf,
} from '../config/settings.js'
import { withoutCredentials } from '../credentials/credentials.js'
import { keyOf } from '../crypto/seal.js'
import type { Memory } from '../limits/memory.js'
import type { PemFiles } from '../net/pem-files.js'
import { proxiesOf } from '../net/proxy.js'
import { reachOf } from '../net/server-connect.js'
import type { Replicas } from '../ports/replicas.js'
import type { AccountsByPrincipal } from '../protocol/account.js'
import type { ServerOptions } from '../upstream/options.js'
import { HttpTransport } from '../upstream/transport/http.js'
import { InProcessTransport } from '../upstream/transport/in-process.js'
import type { Connect } from '../upstream/transport/origin.js'
import { SseTransport } from '../upstream/transport/sse.js'
import { StdioTransport } from '../upstream/transport/stdio/stdio.js'
import { type BridgeContext, observerOf } from './context.js'
import type { MountSettings } from './mount-settings.js'

/** The variables that every program inherits from the bridge. */
const INHERITED = [
  'HOME',
  'LOGNAME',
  'PATH',
  'SHELL',
  'TERM',
  'USER',
  'LANG',
  'TMPDIR',
  'APPDATA',
  'COMSPEC',
  'HOMEDRIVE',
  'HOMEPATH',
  'LOCALAPPDATA',
  'PATHEXT',
  'PROCESSOR_ARCHITECTURE',
  'PROGRAMFILES',
  'SYSTEMDRIVE',
  'SYSTEMROOT',
  'TEMP',
  'TMP',
  'USERNAME',
  'USERPROFILE',
  'WINDIR',
  // How programs that download, such as npx, reach the network.
  'HTTPS_PROXY',
  'HTTP_PROXY',
  'NO_PROXY',
  'https_proxy',
  'http_proxy',
  'no_proxy',
  'NODE_EXTRA_CA_CERTS',
  'SSL_CERT_FILE',
  'SSL_CERT_DIR',
]
/** Milliseconds for the answer to the era probe, by default. */
const PROBE_TIMEOUT = { http: 10_000, sse: 10_000, stdio: 15_000 }
/** Idle timeout in milliseconds, by default. None for programs, because ending one loses what it keeps in memory. */
const IDLE = { http: 600_000, sse: 600_000, stdio: undefined }

/** The timeouts of a server: its own, otherwise those of the configuration. */
export function timesOf(settings: Pick<MountSettings, 'timeouts'>, own: ServerSettings): MountSettings['timeouts'] {
  const given = Object.entries(own.timeouts).filter(([, time]) => time !== undefined)
  return { ...settings.timeouts, ...Object.fromEntries(given) }
}

/** How a server is reached: `connect` replaces the way to connect, `accounts` are for signing in, `pem` is for TLS. */
export interface Reaching {
  connect?: Connect | undefined
  accounts?: AccountsByPrincipal | undefined
  pem?: PemFiles | undefined
}

/** Options for the Server of an entry. */
export function serverOptions(
  name: string,
  settings: ServerSettings,
  all: Pick<Settings, 'stateKeys'> & Pick<MountSettings, 'timeouts' | 'limits'> & Callers,
  context: BridgeContext,
  memory: Memory,
  replicas?: Replicas,
  { connect, accounts, pem }: Reaching = {},
): ServerOptions {
  const { limits, auth, stateKeys } = all
  const { log, version, env } = context
  const observe = observerOf(context)
  const timeouts = timesOf(all, settings)
  const common = {
    name,
    era: settings.era,
    isolation: settings.session,
    asksAlone: settings.questions === 'exact',
    single: settings.process === 'single',
    share: shareOf(all),
    several: hasSeveral(all),
    passthrough: auth?.passthrough ?? false,
    accounts,
    tasks: settings.tasks,
    retry: settings.retry,
    roots: settings.roots,
    clientInfo: JSON.stringify({ name: 'mcp-bridge', version }),
    log: log.child({ server: name }),
    observe,
    recorder: context.recorder?.serverOf(name),
    memory,
    replicas,
    parked: {
      ttl: timeouts.answer,
      max: limits.parked,
      maxPerPrincipal: limits.parkedPerPrincipal,
      ...(stateKeys.length > 0 && { keys: stateKeys.map(keyOf) }),
    },
  }
  const times = (kind: 'http' | 'sse' | 'stdio') => ({
    probe: timeouts.probe ?? PROBE_TIMEOUT[kind],
    initialize: timeouts.initialize,
    start: timeouts.start,
    startWait: timeouts.startWait,
    idle: timeouts.idle ?? IDLE[kind],
  })
  const serve = context.inProcess?.(name)
  if (serve) {
    const transport = new InProcessTransport({ serve, lineLimit: limits.lineBytes, memory })
    return { ...common, transport, timeouts: times('stdio'), maxSessions: limits.sessions }
  }
  if (isStdio(settings)) {
    const { command, args, cwd, passEnvironment } = settings
    const names = passEnvironment ? Object.keys(env) : INHERITED
    const inherited = Object.fromEntries(names.flatMap((key) => (env[key] === undefined ? [] : [[key, env[key]]])))
    const transport = new StdioTransport({
      command,
      args,
      cwd,
      env: { ...inherited, ...settings.env },
      lineLimit: limits.lineBytes,
      memory,
      onStderr: (line) => {
        if (common.log.isLevelEnabled('debug'))
          common.log.debug({ event: 'server_stderr', line: withoutCredentials(line) }, 'server wrote to stderr')
        context.recorder?.stderr(name, line)
      },
      onChild: (what, pid, running) => observe?.({ kind: 'child', server: name, what, pid, running }),
    })
    const { processes: maxSessions, startsPerMinute } = limits
    return { ...common, transport, timeouts: times('stdio'), maxSessions, startsPerMinute }
  }
  const headers = Object.fromEntries(Object.entries(settings.headers).map(([key, value]) => [key.toLowerCase(), value]))
  const bounds = {
    bodyLimit: limits.answerBytes,
    streamLimit: limits.streamBytes,
    memory,
    connections: limits.callsPerServer * 2 + limits.subscriptions,
  }
  const url = new URL(settings.url)
  const way = connect
    ? { connect }
    : reachOf(url, {
        proxyOf: proxiesOf(env),
        pem: pem && (() => pem.current),
        socketPath: settings.socket,
      })
  const target = settings.socket === undefined ? undefined : `unix:${settings.socket}:${url.pathname}`
  const reach = { url, target, headers, ...way, ...bounds }
  const kind = transportOf(settings)
  const sse = new SseTransport(reach)
  return {
    ...common,
    transport: kind === 'sse' ? sse : new HttpTransport(reach),
    ...(kind === undefined && { fallback: sse }),
    timeouts: times(kind === 'sse' ? 'sse' : 'http'),
    maxSessions: limits.sessions,
  }
}
