/** What the program gives to a bridge when it creates one: environment, log, metrics and traces. */

import type { FastifyInstance } from 'fastify'
import type { Log } from '../base/log/events.js'
import type { Logger, Telemetry } from '../clients/logger.js'
import type { PrincipalOf } from '../clients/plugins/auth.js'
import type { Observe } from '../mcp/ports/events.js'
import type { InspectedBridge } from '../mcp/ports/inspected-bridge.js'
import type { ListStore } from '../mcp/ports/list-store.js'
import type { ManagedServers } from '../mcp/ports/managed-servers.js'
import type { Recorder } from '../mcp/ports/recorder.js'
import type { Serve } from '../mcp/ports/transport.js'
import type { ListedNames } from '../mcp/protocol/listed-names.js'
import type { Tracer } from '../mcp/protocol/trace.js'
import { adviceOn } from '../servers/advice.js'
import type { MountTrust } from '../services/discovery/trust/mount-trust.js'
import type { SignInParts } from '../services/oauth/sign-in-parts.js'
import type { HttpReplicas } from '../services/replicas/replicas.js'
import type { Metrics } from '../services/telemetry/metrics.js'
import type { Services } from './services.js'
import type { Shared } from './shared.js'
import type { Workers } from './workers.js'

export interface BridgeContext {
  log: Log
  version: string
  /** The environment of the process. Programs inherit a part of it. */
  env: Readonly<Record<string, string | undefined>>
  /** The code of services that the settings need; none by default. */
  services?: Services | undefined
  /** Metrics and traces; none by default. */
  metrics?: Metrics | undefined
  tracer?: Tracer | undefined
  /** Learns the names of tools and prompts for metrics and traces; none if these have no names. */
  names?: Pick<ListedNames, 'learn' | 'has'> | undefined
  /** Where lists of servers are kept beyond a restart; nowhere by default. */
  lists?: ListStore | undefined
  /** The other replicas; none by default. */
  replicas?: HttpReplicas | undefined
  /** The other workers of the bridge, if this process is one; by default it is not. */
  workers?: Workers | undefined
  /** Records calls and messages; none by default. */
  recorder?: Recorder | undefined
  /** Shows what `recorder` records; none by default. */
  inspector?: BridgeInspector | undefined
  /** The parts for signing in to servers; none by default: then the bridge does not sign in. */
  signIn?: SignInParts | undefined
  /** Makes them when a reload brings the first server that may need them; not by default. */
  loadSignIn?: (() => Promise<SignInParts>) | undefined
  /** The trust in a discovered server; undefined for configured ones. */
  lead?: ((name: string) => MountTrust | undefined) | undefined
  /** Returns the function that connects to a server in this process; undefined for programs and addresses. */
  inProcess?: ((name: string) => Serve | undefined) | undefined
  /** Resolves the hosts of callbacks for events; by default the resolver of the system. */
  resolve?: ((host: string) => Promise<readonly string[]>) | undefined
  /** Servers that operators change at the address for operators; none by default. */
  managed?: ManagedServers | undefined
  /** Names the principal of a request to `Bridge.attach`; by default all requests have one anonymous principal. */
  principalOf?: PrincipalOf | undefined
}

/** An inspector. */
interface BridgeInspector {
  /** Its path at the address for operators, such as `/inspect`. */
  readonly path: string
  /** Adds its routes to an application that checks Host and Origin. They require the token. */
  register(app: FastifyInstance, bridge: InspectedBridge): Promise<void>
  /** Serves it only to the user of this process, beside a bridge on stdio. Never rejects. */
  serveSocket(bridge: InspectedBridge): Promise<void>
  close(): Promise<void>
}

/** The log of a mount, with its metrics, traces and recorder. */
export function logOf(
  { kind, name, eraOf }: { kind: 'server' | 'group'; name: string; eraOf: Telemetry['eraOf'] },
  { loggedCalls, descriptors }: Pick<Shared, 'loggedCalls' | 'descriptors'>,
  context: BridgeContext,
): Logger {
  const { log, metrics, tracer, names, recorder } = context
  const telemetry = {
    server: name,
    ...(kind === 'group' && { isGroup: true }),
    eraOf,
    observe: observerOf(context),
    observeCall: metrics?.countCall,
    tracer,
    names,
    recorder: recorder?.clientsOf(name),
  }
  return Object.assign(log.child(kind === 'group' ? { group: name } : { server: name }), {
    telemetry,
    calls: loggedCalls,
    advise: adviceOn,
    noticed: descriptors.notice,
  })
}

/** Passes events to the metrics and to the recorder of a bridge; undefined if it has neither. */
export function observerOf({ metrics, recorder }: Pick<BridgeContext, 'metrics' | 'recorder'>): Observe | undefined {
  const count = metrics?.observe
  const see = recorder?.observe
  if (!count || !see) return count ?? see
  return (event) => {
    count(event)
    see(event)
  }
}
