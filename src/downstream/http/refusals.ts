/**
 * Counts and logs requests that are refused before they become calls. Each is counted. Of each kind at most one is logged in
 * ten seconds, because a client that is refused may try again at once, for ever.
 */
import type { FastifyRequest } from 'fastify'
import type { Log } from '../../logging.js'
import type { Observe } from '../../ports/events.js'
import { printable } from '../../printable.js'
import type { Fault, FaultName } from '../../protocol/fault.js'
import { wasTold } from '../call-log.js'

/** What is known of a request that was refused. */
export interface Refused {
  method?: string | undefined
  /** The target, with or without its query: the query is not told. */
  path?: string | undefined
  /** The address that it came from. */
  from?: string | undefined
  /** The name of the server that it was for. */
  server?: string | undefined
}

/** What is told of a request. */
export function refusedOf({ method, url, ip }: FastifyRequest): Refused {
  return { method, path: url, from: ip }
}

/** Milliseconds between two lines of the same kind. */
const EVERY = 10_000

export class Refusals {
  readonly #log: Pick<Log, 'info' | 'error'>
  readonly #observe: Observe | undefined
  readonly #now: () => number
  /** When each kind was last told of, and how many have come since. */
  readonly #told = new Map<FaultName, { at: number; since: number }>()

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

  /** Notes a refusal, unless it is told of as the end of a call. */
  note(fault: Fault, { method, path, from, server }: Refused): void {
    if (wasTold(fault)) return
    const reason = fault.fault
    this.#observe?.({ kind: 'refusal', server: server ?? '', reason })
    const now = this.#now()
    const last = this.#told.get(reason)
    if (last && now - last.at < EVERY) {
      last.since++
      return
    }
    this.#told.set(reason, { at: now, since: 0 })
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
