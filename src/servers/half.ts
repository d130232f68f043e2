/** The contract of a half of `Server`, which answers for the server in one era. */
import type { Handler, Notice } from '../mcp/protocol/call.js'
import type { Capacity } from './capacity.js'
import type { Detection } from './era/detection.js'
import type { Revision } from './revision.js'
import type { TaskOwners } from './task-owners.js'

export interface Half {
  /**
   * Answers a call. Throws a Contradiction if the server turns out to be of the other era. Then the server has not acted
   * on the call, and the other half can answer it.
   */
  readonly handle: Handler
  /** Sends a notification of a client to the server. Rejects if the server is unreachable. */
  notify(notice: Notice): Promise<void>
  /** Closes all sessions, channels and calls of the half. `hurry`: at once. */
  close(hurry: boolean): Promise<void>
}

/** What both halves share. */
export interface Access {
  /** The era of the server, and channels to it. */
  detection: Detection
  /** The bound on concurrent sessions or processes. */
  capacity: Capacity
  /** Whose tasks are whose. */
  tasks: TaskOwners
  /** Which answers are revised in sessions of the server itself. */
  revision: Revision
}
