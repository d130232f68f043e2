/** What exists before the bridge: its process, its log, metrics and traces. */

import type { MountTrust } from '../discovery/trust/mount-trust.js'
import type { ClientWatch } from '../recorder/recorder.js'
import { observing } from '../recorder/observed.js'
import type { Log } from '../log/events.js'
import type { SignInParts } from '../oauth/parts.js'
import type { PrincipalOf } from '../plugins/auth.js'
import type { Observe } from '../ports/events.js'
import type { ListedNames } from '../ports/listed-names.js'
import type { Serve } from '../ports/transport.js'
import type { Tracer } from '../protocol/trace.js'
import type { RedisReplicas } from '../replicas/replicas.js'
import type { Metrics } from '../telemetry/metrics.js'
import type { Inspector } from '../inspect/inspector.js'

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
  /** Hears of calls and messages; none by default. */
  watch?: ClientWatch | undefined
  /** Shows what `watch` hears; none by default. */
  inspector?: Inspector | undefined
  /** What is needed to sign in to servers; by default the bridge does not sign in. */
  signIn?: SignInParts | undefined
  /** The trust in a discovered server; undefined for configured ones. */
  lead?: ((name: string) => MountTrust | undefined) | undefined
  /** What serves a server of this very process; undefined for programs and addresses. */
  inProcess?: ((name: string) => Serve | undefined) | undefined
  /** Who sends the requests that `Bridge.attach` gets; by default everybody is one anonymous principal. */
  principalOf?: PrincipalOf | undefined
}

/** Receives the events of a bridge for its metrics and its inspector; undefined if it has neither. */
export function observerOf({ metrics, watch }: Pick<BridgeContext, 'metrics' | 'watch'>): Observe | undefined {
  const count = metrics?.observe
  const see = watch && observing(watch.witness)
  if (!count || !see) return count ?? see
  return (event) => {
    count(event)
    see(event)
  }
}
