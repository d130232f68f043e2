/** The state of a whole bridge, as it reports it to `mcp-bridge status` and to operators. */

/** What is known of the process of a bridge. */
export interface ProcessNow {
  version: string
  pid: number
  /** When the process started, as an ISO 8601 time. */
  since: string
  /** Bytes of memory of the process, without the programs that it has started. */
  memory: number
  /** How many programs of servers run. */
  programs: number
  /** How many processes serve together, if there are several. */
  workers?: number
}

/** Whether a bridge can serve, and the state of its servers and groups, by name. */
export interface Readiness {
  /** `ready`, or why not. */
  status: string
  /** Whether Redis can be used, if there is one. */
  redis?: 'up' | 'down'
  /** Whether the keys of identity providers can be had, if there are any. */
  issuers?: Readonly<Record<string, object>>
  servers: Readonly<Record<string, object>>
  /** Groups of servers, if there are any. */
  groups?: Readonly<Record<string, object>>
}

export type BridgeStatus = ProcessNow & Readiness
