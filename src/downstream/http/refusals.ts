/**
 * Counts and logs requests that are refused before they become calls. All are counted. At most one of each kind is
 * logged in ten seconds, because a refused client may retry at once and endlessly.
 */
import type { FastifyRequest } from 'fastify'
import type { Log } from '../../logging.js'
import type { Observe } from '../../ports/events.js'
import { printable } from '../../printable.js'
import type { Fault, FaultName } from '../../protocol/fault.js'
import { wasLogged } from '../call-log.js'

/** What is known about a refused request. */
export interface Refused {
  method?: string | undefined
  /** The target. Its query is not logged. */
  path?: string | undefined
  /** The IP address of the client. */
  from?: string | undefined
  /** The name of the server that it was sent to. */
  server?: string | undefined
}

/** The fields to log of a request. */
export function refusedOf({ method, url, ip }: FastifyRequest): Refused {
  return { method, path: url, from: ip }
}

/** Milliseconds between two log lines of the same kind. */
const EVERY = 10_000

/** Counts all refusals and logs a sample of them. */
export class Refusals {
  readonly #log: Pick<Log, 'info' | 'error'>
  readonly #observe: Observe | undefined
  readonly #now: () => number
  /** When each kind was logged last (in the time of `now`), and how many came since. */
  readonly #logged = new Map<FaultName, { at: number; since: number }>()

  constructor(
    log: Pick<Log, 'info' | 'error'>,
    observe: Observe | undefined,
    /** Milliseconds. */
    now: () => number = () => performance.now(),
  ) {
    this.#log = log
    this.#observe = observe
    this.#now = now
  }

  /** Counts a refusal, and may log it. Ignores one that was logged as the end of a call. */
  note(fault: Fault, { method, path, from, server }: Refused): void {
    if (wasLogged(fault)) return
    const reason = fault.fault
    this.#observe?.({ kind: 'refusal', server: server ?? '', reason, path, from })
    const now = this.#now()
    const last = this.#logged.get(reason)
    if (last && now - last.at < EVERY) {
      last.since++
      return
    }
    this.#logged.set(reason, { at: now, since: 0 })
    const fields = {
      fault: reason,
      status: fault.status,
      why: printable(fault.message, 300),
      ...(server !== undefined && { server }),
      ...(method !== undefined && { method: printable(method, 32) }),
      ...(path !== undefined && { path: printable(path.split(/[?#]/, 1)[0] as string, 200) }),
      ...(from !== undefined && { from }),
      ...(last && last.since > 0 && { more: last.since }),
    }
    if (fault.row.reason === 'internal_error')
      this.#log.error({ event: 'request_failed', ...fields, err: fault.cause }, 'request failed')
    else this.#log.info({ event: 'request_refused', ...fields }, 'request refused')
  }
}
