/** What is there before the bridge: the process that it runs in, and who watches it. */
import type { Log } from '../logging.js'
import type { SignInParts } from '../oauth/parts.js'
import type { Tracer } from '../protocol/trace.js'
import type { Metrics } from '../telemetry/metrics.js'
import type { TrustContext } from './pipeline.js'

export interface BridgeContext {
  log: Log
  version: string
  /** What children inherit, if they inherit anything. */
  env: Readonly<Record<string, string | undefined>>
  /** Who counts what happens, and who follows calls; nobody by default. */
  metrics?: Metrics | undefined
  tracer?: Tracer | undefined
  /** How the bridge signs in to servers; it does not, by default. */
  signIn?: SignInParts | undefined
  /** What servers that were found are kept on a lead for; undefined for those that somebody has configured. */
  lead?: ((name: string) => TrustContext | undefined) | undefined
}
