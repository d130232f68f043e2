/** What a mount needs to know about a discovered server that nobody has configured. */

import type { Json } from '../../../base/rpc/splice.js'
import type { ToolList, TrustStatus } from '../../../mcp/ports/trust-status.js'
import type { Era } from '../../../mcp/protocol/eras.js'
import type { UnavailableOptions } from '../../../middle/policy/unavailable.js'
import type { Connect } from '../../../servers/transport/undici-pool.js'

/** The trust in a discovered server, and how its mount reaches it and reports on it. */
export interface MountTrust {
  /** The pins of its connections, as text. If it is unchanged, the connections stay. */
  plan: string
  connect: Connect
  /** The era that its card claims, if it has one and the server was found to have it. */
  claimed?: (() => Era | undefined) | undefined
  /** The trust in the server now, given its tools as far as they are known. */
  trustStatus(tools: ToolList | undefined): TrustStatus
  /** The clock of its decisions, in milliseconds since 1970; that of the system if undefined. */
  now?: (() => number) | undefined
  /** Globs of tools that may be called in quarantine. */
  readOnly: readonly string[]
  /** Whether the server is paused after failures. */
  state: UnavailableOptions['state']
  /** The scopes that its manifest requires for a tool. */
  required(tool: string): readonly string[]
  /** The scopes that its manifest requires for any tool. */
  requiredByAny(): readonly string[]
  /** Reports the identity that the server has sent with a reply. */
  heard(serverInfo: Json): void
  /** Reports that the server was unreachable. */
  missed(): void
}
