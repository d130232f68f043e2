/** What all mounts of a bridge share: bounds, memory, stores. */

import type { SealKey } from '../base/crypto/seal.js'
import type { Bound } from '../base/limits/bound.js'
import type { Memory } from '../base/limits/memory.js'
import type { Counted } from '../base/limits/windows.js'
import type { EventStore } from '../clients/http/event-store.js'
import type { Refusals } from '../clients/http/refusals.js'
import type { LoggedCalls } from '../clients/logger.js'
import type { KeptOwners } from '../mcp/ports/kept-owners.js'
import type { Replicas } from '../mcp/ports/replicas.js'
import type { Expirations } from '../middle/policy/approval/expirations.js'
import type { PageQuestions } from '../middle/policy/approval/page-questions.js'
import type { Watched } from '../middle/policy/approval/watched.js'
import type { Results } from '../middle/policy/cache/results.js'
import type { KeptResults } from '../middle/policy/cut/kept-results.js'
import type { Desk } from '../services/oauth/page/desk.js'
import type { AuditLines } from '../services/telemetry/audit-lines.js'
import type { Descriptors } from './descriptors.js'

/** What all mounts share. */
export interface Shared {
  /** Seal what clients keep for the bridge: the first one seals, all of them open. A reload may replace them. */
  keys: SealKey[]
  /** Whether several clients may call the servers. */
  isShared: boolean
  calls: Bound
  subscriptions: Bound
  /** The memory ledger. */
  memory: Memory
  /** Events kept for clients that resume a stream. */
  events: EventStore
  /** Cached results. */
  results: Results
  /** What is cut off results of tools. */
  kept: KeptResults
  /** Counts and logs requests that are refused before they become calls. */
  refusals: Refusals
  /** Looks at failures of calls, and says if no file descriptors are left. */
  descriptors: Descriptors
  /** Where the audit log goes; undefined without one. */
  audit?: AuditLines | undefined
  /** Counts calls of tools, for their limits. */
  countCall(name: string, milliseconds: number): Promise<Counted>
  /** Who has which subscription of an address to events. */
  subscribers: KeptOwners
  /** What people have approved, and what they are asked. */
  approvals: KeptOwners
  /** What people are asked at the page. */
  pageQuestions: PageQuestions
  /** Watches the questions to people that are open. */
  watched: Watched
  /** Is told of each question that nobody has answered in time. */
  questionExpired: Expirations
  /** Which calls are logged when they end. */
  loggedCalls: LoggedCalls
  /** Where people sign in to servers over the network. */
  desk: Desk | undefined
  /** The other replicas, if there are several. */
  replicas?: Replicas | undefined
}
