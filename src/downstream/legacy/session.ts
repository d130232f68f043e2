/** A legacy client's session, whatever transport it comes by and whoever answers it. */
import type { Sender, Upstream } from '../../protocol/call.js'
import type { LegacyRevision } from '../../protocol/eras.js'
import type { Fault } from '../../protocol/fault.js'
import type { Memory } from '../../protocol/memory.js'
import type { TraceContext } from '../../protocol/trace.js'
import type { Notification, Request, Response } from '../../rpc/message.js'
import type { Wire } from '../../rpc/source.js'
import type { Json } from '../../rpc/splice.js'
import type { Logger } from '../call-log.js'
import type { Frame } from '../frames.js'

export interface ClientSession {
  readonly revision: LegacyRevision
  /** Calls that wait for their answer. */
  readonly open: number
  /** Answers a request. Never throws: what goes wrong is the last frame. Headers may say where it is in a trace. */
  answer(request: Request, trace?: TraceContext): AsyncGenerator<Frame, void>
  /** Takes a notification, or the answer to a question. */
  take(message: Notification | Response): void
  /** Somebody can be told of what the server says of its own accord. */
  listened(): void
  /** Gives up what is still open. */
  close(): void
}

/** Where the server's own messages go. */
export interface Outlet {
  /** Of messages with the same key that nobody has been told yet, the last is enough. */
  deliver(text: Wire, key?: string): void
  /** Nobody is connected who would notice that the session is gone. */
  isIdle(): boolean
  /** The server has ended the session. */
  ended(): void
}

export interface OpenOptions {
  upstream: Upstream
  sender: Pick<Sender, 'principal' | 'credential'>
  outlet: Outlet
  transport: 'http' | 'sse' | 'stdio'
  log: Logger
  memory: Memory
  settings: SessionSettings
  /** Where the headers of `initialize` say that it is in a trace. */
  trace?: TraceContext | undefined
}

/** How legacy clients of modern servers are served. */
export interface SessionSettings {
  /** Tell them nothing that the schema of their revision does not have. */
  strict: boolean
  /** Let clients of 2025-11-25 have their calls as tasks. */
  emulateTasks: boolean
  /** Milliseconds for a round of questions to a client, and for a server that asks to be called again. */
  answerWithin: number
  /** The bridge's own Implementation, for servers that do not name themselves. */
  serverInfo: Json
  /** Notes a call in a session of the server's own, so that it can be ended when the bridge is. Gives what ends the note. */
  begin(abort: (reason: Fault) => void): () => void
}

/** The answer to `initialize`, and the session that it opened, if it did. */
export interface Opened {
  text: Wire
  session?: ClientSession
  /** The server could not be had. */
  fault?: Fault
}
