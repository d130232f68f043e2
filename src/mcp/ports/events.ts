/** Events that can be counted as metrics. Code that causes one reports it here and does not know who counts it. */

import type { Blame, FaultName } from '../../base/fault/faults.js'
import type { Era } from '../protocol/eras.js'

/** An event. `group` is the group that a client has called; then `server` is empty, or the member that the event is about. */
export type BridgeEvent = EventBody & { group?: string | undefined }

/** A call has ended. */
export type CallEvent = Extract<BridgeEvent, { kind: 'call' }>

type EventBody =
  /** A call has ended. Times are milliseconds; `upstreamMs` is the part spent waiting for the server. */
  | {
      kind: 'call'
      server: string
      clientEra: Era
      serverEra: Era | undefined
      method: string
      outcome: 'ok' | 'tool_error' | 'asks' | 'error' | 'cancelled' | 'fault'
      blame: Blame | undefined
      ms: number
      upstreamMs: number | undefined
      /** The tool that was called, by its name at the server; undefined if the server has not listed it. */
      tool?: string | undefined
    }
  /**
   * A request was refused before it became a call. `server` is empty if it was for none, `from` is the IP address of the
   * client, `said` the message that it got.
   */
  | {
      kind: 'refusal'
      server: string
      reason: FaultName
      status: number
      said: string
      path?: string | undefined
      from?: string | undefined
    }
  /** The era of a server was detected, or could not be detected. `ms` is how long that took. */
  | {
      kind: 'verdict'
      server: string
      era: Era | 'unknown'
      revision?: string | undefined
      why: string
      ms?: number | undefined
      transport?: 'http' | 'sse' | 'stdio' | undefined
    }
  /** A question from a legacy server to a modern client, or from a modern server to a legacy client. */
  | {
      kind: 'question'
      server: string
      what: 'parked' | 'answered' | 'expired' | 'refused' | 'lost'
      /** The number of the call for the inspector, if there is one. */
      call?: number | undefined
      round?: number | undefined
    }
  /** Something was adapted for an older client. */
  | { kind: 'downlevelled'; server: string; what: string }
  /** A person was asked to approve a call, or has answered. `expired`: too late, again, or never. */
  | { kind: 'approval'; server: string; what: 'asked' | 'approved' | 'refused' | 'expired' }
  /** A result of a tool was cut, and so many bytes of it are kept; or it passed whole, for want of room; or it is not kept any more, to make room. */
  | { kind: 'cut'; server: string; what: 'cut' | 'whole' | 'pushed_out'; bytes?: number }
  | { kind: 'cache'; server: string; what: 'hit' | 'miss' | 'stored' | 'dropped' }
  /** A session of the bridge with a legacy server, or of a legacy client with the bridge. */
  | {
      kind: 'session'
      server: string
      side: 'client' | 'server'
      what: 'opened' | 'ended' | 'lost'
      /** Identifies the session for the inspector. */
      session?: string | undefined
      principal?: string | undefined
      /** Set when a session opens over HTTP+SSE: the name of the client, empty for a session with a server. */
      overSse?: string | undefined
    }
  /** A process of a server on stdio. `running`: how many it has now. */
  | {
      kind: 'child'
      server: string
      what: 'started' | 'restarted' | 'ended'
      pid?: number | undefined
      running?: number | undefined
    }
  /** A request was forwarded to another replica. */
  | { kind: 'forwarded'; server: string; what: 'answered' | 'lost' | 'unavailable' }
  /** A server of a group did not answer a request for a list, or it answers again. */
  | { kind: 'member'; group: string; server: string; what: 'missing' | 'back'; why?: string | undefined }
  /** A server, or information about it, was unreachable despite retries. `server` is its address. */
  | { kind: 'discovery'; server: string; phase: string; reason: string }

/** Receives events. */
export type Observe = (event: BridgeEvent) => void

/** Current conditions, which are read when metrics are requested. */
export interface Conditions {
  /** Whether Redis is reachable; undefined without Redis. */
  redisUp?: boolean | undefined
  /** Whether Redis may evict what replicas need; undefined without Redis, and while it has not told its policy. */
  redisMayEvict?: boolean | undefined
  certificates?: Iterable<Certificate>
  issuers?: Iterable<IssuerState>
  addresses?: Iterable<AddressInUse>
}

/** One of several addresses of a server. */
export interface AddressInUse {
  server: string
  address: string
  isUp: boolean
  /** Calls that it is answering. */
  calls: number
}

/** Whether the keys of an identity provider can be had. */
export interface IssuerState {
  issuer: string
  state: 'unknown' | 'up' | 'down'
  /** Why they cannot be had. */
  why?: string | undefined
}

/** A certificate of the bridge: for clients, for a server that wants one, or for Redis. */
export interface Certificate {
  use: 'listen' | 'server' | 'redis'
  /** The server that gets the certificate. */
  server?: string
  /** Milliseconds of the time of day. */
  expiresAt: number
}

/** How much of a bound is used now. */
export interface Gauge {
  /** The name of the bound; docs/reference/bounds.md lists them all. */
  bound: string
  /** The server or group, if the bound concerns a single one. */
  server?: string
  group?: string
  used: number
  limit: number
}
