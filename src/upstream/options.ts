/** What one upstream server is made of: how it is reached, for whom, and within what bounds. */
import type { Log } from '../logging.js'
import type { Observe } from '../ports/events.js'
import type { Replicas } from '../ports/replicas.js'
import type { AccountsByPrincipal } from '../protocol/account.js'
import type { Era } from '../protocol/eras.js'
import type { Memory } from '../protocol/memory.js'
import type { Json } from '../rpc/splice.js'
import type { SealKey } from '../seal.js'
import type { Transport } from './transport/channel.js'

/** To whom sessions belong (isolation of callers from each other). */
export type Isolation = 'per-principal' | 'shared' | 'per-request'

/** Whether tools that may be tasks are, for clients that know tasks; or that there are no tasks at all. */
export type TaskMode = 'auto' | 'async' | 'off'

export interface ServerOptions {
  name: string
  transport: Transport
  /** Tried when an HTTP address does not take `initialize`: HTTP+SSE at the same place. */
  fallback?: Transport
  era: 'auto' | Era
  isolation: Isolation
  tasks: TaskMode
  /** Whether a tool that says that this is safe is called once more when its answer was lost. */
  retry: 'off' | 'safe'
  /** Callers bring credentials of their own, which are sent on. */
  passthrough: boolean
  /** In whose name the server is asked, where the bridge signs in to it. */
  accounts?: AccountsByPrincipal | undefined
  /** What the server may know of folders: what its clients say, nothing, or these. */
  roots: 'ask' | 'off' | readonly string[]
  /** The bridge's own Implementation, where no client gives one. */
  clientInfo: Json
  log: ServerLog
  /** Who counts what happens, if anybody does. */
  observe?: Observe | undefined
  /** Milliseconds. Without `idle`, idle sessions end only to make room. */
  timeouts: { probe: number; initialize: number; idle?: number | undefined }
  /** Sessions, or processes of a program, at once. */
  maxSessions: number
  /** The part of what others leave that one principal may use; 1 by default. */
  share?: number
  /** More than one principal can exist. */
  several?: boolean
  /** Processes that one principal may start in a minute, after `maxSessions` at once. No limit by default. */
  startsPerMinute?: number | undefined
  /** For calls that wait for their clients' answers. */
  parked: Parking
  memory: Memory
  /** The others, where this bridge is one of several. */
  replicas?: Pick<Replicas, 'id' | 'records' | 'tell' | 'hear'> | undefined
}

/** How many calls may wait for their clients' answers, and for how long. */
export interface Parking {
  /** The first one seals, all of them open; one of our own by default. */
  keys?: readonly SealKey[]
  /** Milliseconds that a client has for its answers. */
  ttl: number
  /** Calls that may wait at once: in all, and of one principal. */
  max: number
  maxPerPrincipal: number
}

export type ServerLog = Pick<Log, 'debug' | 'warn'>
