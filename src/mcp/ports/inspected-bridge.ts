/** What the inspector needs of its bridge: the state of the servers, and a way to call what is served. */

import type { Simplified } from '../../base/texts/simplified.js'
import type { BridgeStatus, ProcessNow } from './bridge-status.js'
import type { ServerStatus } from './server-status.js'

/** What can be called: a server, or a group of servers. */
export interface InspectedTarget {
  name: string
  kind: 'server' | 'group'
}

/** An item that a server lists, but clients do not see. */
export interface HiddenItem {
  kind: 'tool' | 'prompt' | 'resource' | 'template' | 'event'
  /** Its name, URI or template at the server. */
  name: string
  server: string
  /** Why it is hidden: a sentence. */
  why: string
}

export interface HiddenItems {
  hidden: readonly HiddenItem[]
  /** What could not be found out, or is not listed one by one: sentences. */
  problem?: string
}

export interface InspectedBridge {
  /** The servers now. */
  servers(): readonly ServerStatus[]
  /** What portable schemas make of the tools of a group, as clients have listed them; undefined if that is not one bridge. */
  simplified?(group: string): readonly Simplified[]
  /** The state of the process, its servers and groups; undefined if that is not one bridge. */
  status?(): BridgeStatus
  /** The process that serves; undefined if that is not one bridge. */
  process?(): ProcessNow
  /** Everything that `call` takes now. */
  targets(): readonly InspectedTarget[]
  /** What the principal `inspector` does not see of a server or group, and why; undefined if there is no such target. */
  hidden(name: string): Promise<HiddenItems | undefined>
  /** Most bytes of the body of a request. */
  readonly bodyBytes: number
  /**
   * Hands an HTTP request of MCP to a server or group, as a request of the principal `inspector`. It meets everything that
   * a request of a client meets. Resolves to undefined if there is no such target.
   */
  call(name: string, request: TargetRequest): Promise<Response | undefined>
}

/** A request to a target, without its path. */
export interface TargetRequest {
  method: string
  headers: Readonly<Record<string, string>>
  body: Uint8Array<ArrayBuffer> | undefined
  signal: AbortSignal
}
