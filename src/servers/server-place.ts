/** One of several addresses of a server: its `Server`, what it is doing, and when it rests because it fails. */

import { Fault } from '../base/fault/fault.js'
import type { Log } from '../base/log/events.js'
import { type AddressState, failed, RESTS_AFTER, succeeded, tried } from './addresses.js'
import { whyInLine } from './advice.js'
import type { ServerOptions } from './options.js'
import type { AddressHealth, Server } from './server.js'

export class ServerPlace implements AddressState {
  readonly address: string
  readonly server: Server
  calls = 0
  failures = 0
  restsUntil = 0
  leaves = false
  readonly #log: Pick<Log, 'info' | 'warn'>
  #why: Fault | undefined

  /** `make` makes its server, which reports through `reached` whether it reaches the address. */
  constructor(
    address: string,
    make: (reached: NonNullable<ServerOptions['reached']>) => Server,
    log: Pick<Log, 'info' | 'warn'>,
  ) {
    this.address = address
    this.#log = log
    this.server = make((fault) => {
      if (!fault) this.#works()
      else if (isOfAddress(fault)) this.#fails(fault, false)
      return this.failures < RESTS_AFTER
    })
  }

  get sessions(): number {
    return this.server.sessions
  }

  get isUnused(): boolean {
    return this.calls + this.sessions + this.server.parked === 0
  }

  /** Why it gets nothing. */
  get down(): Fault | undefined {
    return this.failures < RESTS_AFTER ? this.server.down : (this.#why ?? this.server.down)
  }

  get health(): AddressHealth {
    const { down, calls, sessions, leaves } = this
    const { verdict, everAnswered, target: address } = this.server
    const of = { address, calls, sessions, ...(leaves && { leaves }) }
    if (down) return { ...of, state: 'down', why: whyInLine(down) }
    return { ...of, state: everAnswered ? 'ready' : 'unknown', era: verdict?.era, revision: verdict?.revision }
  }

  /** Asks its server, and notes whether the address works. */
  async ask<T>(ask: (server: Server) => Promise<T>): Promise<T> {
    const isTrial = tried(this, performance.now())
    this.calls++
    try {
      const answer = await ask(this.server)
      this.#works()
      return answer
    } catch (error) {
      if (isOfAddress(error)) this.#fails(error, isTrial)
      else if (isTrial) this.#works()
      throw error
    } finally {
      this.calls--
    }
  }

  #works(): void {
    if (this.failures >= RESTS_AFTER)
      this.#log.info({ event: 'address_works', address: this.server.target }, 'address works again')
    succeeded(this)
  }

  #fails(fault: Fault, isTrial: boolean): void {
    this.#why = fault
    if (!failed(this, performance.now(), isTrial) || this.failures > RESTS_AFTER) return
    const { target: address } = this.server
    this.#log.warn({ event: 'address_rests', address, why: whyInLine(fault) }, 'address fails, and rests')
  }
}

/** Whether a failure shows that the address has not acted, and others may. */
export function isUndone(error: unknown): boolean {
  if (!(error instanceof Fault)) return false
  const { fault, status } = error
  return fault === 'upstreamUnavailable' || (fault === 'upstreamBusy' && status === 503)
}

/** Whether a failure is one of the address, and not of a call. */
function isOfAddress(error: unknown): error is Fault {
  return error instanceof Fault && (isUndone(error) || error.fault === 'upstreamClosed')
}
