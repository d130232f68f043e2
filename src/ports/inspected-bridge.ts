/** What the inspector needs of its bridge: the state of the servers, and a way to call what is served. */
import type { ServerStatus } from './server-status.js'

/** What can be called: a server, or a group of servers. */
export interface InspectedTarget {
  name: string
  kind: 'server' | 'group'
}

export interface InspectedBridge {
  /** The servers now. */
  servers(): readonly ServerStatus[]
  /** Everything that `call` takes now. */
  targets(): readonly InspectedTarget[]
  /** Most bytes of the body of a request. */
  readonly bodyBytes: number
  /**
   * Hands an HTTP request of MCP to a server or group, as a request of the principal `inspector`. It meets everything that
   * a request of a client meets. Resolves to undefined if there is no such target.
   */
  call(name: string, request: TargetRequest): Promise<Response | undefined>
}

/** A request for a target: what of it is not its path. */
export interface TargetRequest {
  method: string
  headers: Readonly<Record<string, string>>
  body: Uint8Array<ArrayBuffer> | undefined
  signal: AbortSignal
}
