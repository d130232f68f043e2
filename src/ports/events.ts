/**
 * What happens in the bridge that somebody may want to count. Whoever makes it happen says so in one word, and knows
 * nothing of who listens.
 */
import type { Era } from '../protocol/eras.js'
import type { Blame, FaultName } from '../protocol/fault.js'

export type BridgeEvent =
  /** A call is over, however it ended. Times are milliseconds; `upstreamMs` is what of them was waiting for the server. */
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
      relayed: boolean
    }
  /** A request was refused before it became a call; `server` is empty where it was for none. */
  | { kind: 'refusal'; server: string; reason: FaultName }
  /** It has been found out what a server speaks, or that this cannot be found out now. */
  | { kind: 'verdict'; server: string; era: Era | 'unknown'; why: string }
  /** A legacy server's question to a modern client, or a modern server's to a legacy one. */
  | {
      kind: 'question'
      server: string
      what: 'parked' | 'answered' | 'expired' | 'refused' | 'lost'
    }
  /** Something was told to an older client in other words than the server's. */
  | { kind: 'downlevelled'; server: string; what: string }
  | { kind: 'cache'; server: string; what: 'hit' | 'miss' | 'stored' | 'dropped' }
  /** A session of the bridge with a legacy server, or of a legacy client with the bridge. */
  | { kind: 'session'; server: string; side: 'client' | 'server'; what: 'opened' | 'ended' | 'lost' }
  /** A process of a server on stdio. */
  | { kind: 'child'; server: string; what: 'started' | 'restarted' | 'ended' }
  /** A request that belongs to another replica. */
  | { kind: 'forwarded'; server: string; what: 'answered' | 'lost' | 'unavailable' }
  /** A server, or what is said of it, could not be had in spite of retries. Here it is called by its address. */
  | { kind: 'discovery'; server: string; phase: string; reason: string }

export type Observe = (event: BridgeEvent) => void

/** How far a bound is reached at this moment. */
export interface Gauge {
  /** Which bound; docs/operations.md has them all. */
  bound: string
  /** The server that it is about, if it is about one. */
  server?: string
  used: number
  limit: number
}
