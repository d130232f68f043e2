/** What the program gives to a bridge when it creates one: environment, log, metrics and traces. */

import type { FastifyInstance } from 'fastify'
import type { MountTrust } from '../discovery/trust/mount-trust.js'
import type { Log } from '../log/events.js'
import type { SignInParts } from '../oauth/parts.js'
import type { PrincipalOf } from '../plugins/auth.js'
import type { Observe } from '../ports/events.js'
import type { InspectedBridge } from '../ports/inspected-bridge.js'
import type { ListedNames } from '../ports/listed-names.js'
import type { Recorder } from '../ports/recorder.js'
import type { Serve } from '../ports/transport.js'
import type { Tracer } from '../protocol/trace.js'
import type { RedisReplicas } from '../replicas/replicas.js'
import type { Metrics } from '../telemetry/metrics.js'

/** What the program gives to the bridge. */
export interface BridgeContext {
  log: Log
  version: string
  /** The environment of the process. Programs inherit a part of it. */
  env: Readonly<Record<string, string | undefined>>
  /** Metrics and traces; none by default. */
  metrics?: Metrics | undefined
  tracer?: Tracer | undefined
  /** Learns the names of tools and prompts for them; none if they have no such names. */
  names?: ListedNames | undefined
  /** The connection to the other replicas, if there are several. */
  replicas?: RedisReplicas | undefined
  /** Records calls and messages; none by default. */
  recorder?: Recorder | undefined
  /** Shows what `recorder` records; none by default. */
  inspector?: BridgeInspector | undefined
  /** The parts of sign-ins to servers; by default the bridge does not sign in. */
  signIn?: SignInParts | undefined
  /** The trust in a discovered server; undefined for configured ones. */
  lead?: ((name: string) => MountTrust | undefined) | undefined
  /** Connects to a server in this process; undefined for programs and addresses. */
  inProcess?: ((name: string) => Serve | undefined) | undefined
  /** Who sends the requests that `Bridge.attach` gets; by default everybody is one anonymous principal. */
  principalOf?: PrincipalOf | undefined
}

/** An inspector, as the bridge serves it. */
interface BridgeInspector {
  /** Its path at the address for operators, as in `/inspect`. */
  readonly path: string
  /** Serves it to everybody who has the token. The application has already checked host and origin. */
  register(app: FastifyInstance, bridge: InspectedBridge): Promise<void>
  /** Serves it to the user of this process alone, beside a bridge on stdio. Never rejects. */
  serveSocket(bridge: InspectedBridge): Promise<void>
  close(): Promise<void>
}

/** Receives the events of a bridge for its metrics and its recorder; undefined if it has neither. */
export function observerOf({ metrics, recorder }: Pick<BridgeContext, 'metrics' | 'recorder'>): Observe | undefined {
  const count = metrics?.observe
  const see = recorder?.observe
  if (!count || !see) return count ?? see
  return (event) => {
    count(event)
    see(event)
  }
}
