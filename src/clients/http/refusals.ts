/**
 * Counts and logs, at a limited rate, requests that are refused before they become calls. The first of each kind are
 * logged in full, later ones only as a number, because a refused client may retry at once and endlessly.
 */
import type { FastifyRequest } from 'fastify'
import { withoutCredentials } from '../../base/credentials/credentials.js'
import type { Fault } from '../../base/fault/fault.js'
import type { FaultName } from '../../base/fault/faults.js'
import type { Log } from '../../base/log/events.js'
import { shownPrincipal } from '../../base/texts/principal.js'
import { printable } from '../../base/texts/printable.js'
import type { Observe } from '../../mcp/ports/events.js'
import { ANONYMOUS } from '../../mcp/protocol/call.js'
import { wasLogged } from '../call-log.js'
import { type Logger, whoseOf } from '../logger.js'

/** What is known about a refused request. */
export interface Refused {
  method?: string | undefined
  /** The target. Its query is not logged. */
  path?: string | undefined
  /** The IP address of the client. */
  from?: string | undefined
  /** The sender; undefined if the request was refused before it was known. */
  principal?: string | undefined
  /** The server or group that it was sent to, if its path is one of theirs. */
  whose?: Addressee | undefined
}

/** A server or group. */
export type Addressee = ReturnType<typeof whoseOf>

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The server or group of a route. */
    whose?: Addressee | undefined
  }
}

/** The fields to log of a request. */
export function refusedOf(request: FastifyRequest): Refused {
  const { method, url, ip, principal } = request
  const known = principal === ANONYMOUS ? undefined : principal
  return { method, path: url, from: ip, principal: known, whose: whoseIn(request) }
}

/** The configuration of the routes of a server or group. */
export function ofServer({ telemetry }: Pick<Logger, 'telemetry'>): { whose?: Addressee } {
  return telemetry ? { whose: whoseOf(telemetry) } : {}
}

/** The server or group that a request is for; undefined if its path is none of theirs. */
export function whoseIn({ routeOptions }: FastifyRequest): Addressee | undefined {
  return routeOptions?.config?.whose
}

/** How many refusals of one kind are logged in full per interval, after an interval without omissions. */
const IN_FULL = 5
/** Milliseconds of an interval, at whose end the number of omitted refusals is logged. */
const INTERVAL = 10_000

/** The refusals of one kind in the current interval. */
interface Kind {
  fault: FaultName
  /** How many may still be logged in full. */
  full: number
  /** How many were omitted, and the last of them. */
  more: number
  last: Record<string, unknown>
  timer: NodeJS.Timeout
}

/** Counts all refusals and logs a sample of them. */
export class Refusals {
  readonly #log: Pick<Log, 'info' | 'error'>
  readonly #observe: Observe | undefined
  readonly #interval: number
  /** By fault; and separately for faults with a text for the operator, which must not be lost among the others. */
  readonly #kinds = new Map<string, Kind>()

  /** `interval` is in milliseconds. */
  constructor(log: Pick<Log, 'info' | 'error'>, observe: Observe | undefined, interval = INTERVAL) {
    this.#log = log
    this.#observe = observe
    this.#interval = interval
  }

  /** Counts a refusal, and may log it. Ignores one that was logged as the end of a call. */
  note(fault: Fault, refused: Refused): void {
    if (wasLogged(fault)) return
    const { path, from, whose = { server: '' } } = refused
    const { fault: reason, status, message, said = message } = fault
    this.#observe?.({ kind: 'refusal', ...whose, reason, status, said, path, from })
    const key = fault.said === undefined ? reason : `${reason} explained`
    const kind = this.#kinds.get(key) ?? this.#begin(key, reason)
    if (kind.full === 0) {
      kind.more++
      kind.last = { status: fault.status, ...(from !== undefined && { from }) }
      return
    }
    kind.full--
    this.#write(fault, refused)
  }

  /** Logs the number of refusals that were omitted so far. */
  close(): void {
    for (const kind of this.#kinds.values()) {
      clearTimeout(kind.timer)
      this.#writeNumber(kind)
    }
    this.#kinds.clear()
  }

  #begin(key: string, fault: FaultName): Kind {
    const timer = setTimeout(() => this.#endInterval(key), this.#interval).unref()
    const kind = { fault, full: IN_FULL, more: 0, last: {}, timer }
    this.#kinds.set(key, kind)
    return kind
  }

  #endInterval(key: string): void {
    const kind = this.#kinds.get(key) as Kind
    if (kind.more === 0) {
      this.#kinds.delete(key)
      return
    }
    this.#writeNumber(kind)
    kind.more = 0
    kind.timer.refresh()
  }

  #write(fault: Fault, { method, path, from, principal, whose }: Refused): void {
    const fields = {
      fault: fault.fault,
      status: fault.status,
      why: printable(withoutCredentials(fault.message), 300),
      ...(fault.said !== undefined && { said: printable(withoutCredentials(fault.said), 500) }),
      ...named(whose),
      ...(method !== undefined && { method: printable(method, 32) }),
      ...(path !== undefined && { path: printable(path.split(/[?#]/, 1)[0] as string, 200) }),
      ...(from !== undefined && { from }),
      ...(principal !== undefined && { principal: shownPrincipal(principal) }),
    }
    if (fault.row.reason === 'internal_error')
      this.#log.error({ event: 'request_failed', ...fields, err: fault.cause }, 'request failed')
    else this.#log.info({ event: 'request_refused', ...fields }, 'request refused')
  }

  #writeNumber({ fault, more, last }: Kind): void {
    if (more === 0) return
    const fields = { fault, ...last, more }
    this.#log.info({ event: 'refusals_left_out', ...fields }, 'more requests were refused')
  }
}

/** The members of a line that name a server or group. A group has no server. */
export function named(whose: Addressee | undefined): Partial<Addressee> {
  return whose?.group === undefined ? { ...whose } : { group: whose.group }
}
