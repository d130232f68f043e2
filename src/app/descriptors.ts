/** Logs that no file descriptors are left, once for all calls that fail because of it. */

import type { Fault } from '../base/fault/fault.js'
import type { Log } from '../base/log/events.js'
import { causeOf } from '../servers/transport/causes.js'

/** Error codes of the system, and of programs that failed to start for the same reason. */
const NONE_LEFT: ReadonlySet<unknown> = new Set(['EMFILE', 'ENFILE', 'ERR_START_EMFILE', 'ERR_START_ENFILE'])
/** Milliseconds for which it is not logged again. */
const QUIET = 600_000
/** Most nested causes that are examined. */
const MOST = 8

/** Watches the faults of calls. */
export class Descriptors {
  readonly #log: Pick<Log, 'error'>
  #saidAt = Number.NEGATIVE_INFINITY

  constructor(log: Pick<Log, 'error'>) {
    this.#log = log
  }

  readonly notice = (fault: Fault): void => {
    const error = exhaustionIn(fault)
    const now = performance.now()
    if (!error || now - this.#saidAt < QUIET) return
    this.#saidAt = now
    this.#log.error({ event: 'descriptors_exhausted', next: causeOf(error)?.next }, 'no file descriptors are left')
  }
}

/** The system error for exhausted descriptors among an error and its causes. */
function exhaustionIn(error: unknown, left = MOST): Error | undefined {
  if (!(error instanceof Error) || left === 0) return undefined
  if ('code' in error && NONE_LEFT.has(error.code)) return error
  // A host with several addresses fails once for each of them.
  const [first] = error instanceof AggregateError ? error.errors : [error.cause]
  return exhaustionIn(first, left - 1)
}
