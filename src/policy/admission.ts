/**
 * Admits calls within the bounds, limits their time (idle time, which progress renews, and total time), and aborts them
 * at shutdown. It has the only list of the calls in flight.
 */

import { Fault } from '../fault/fault.js'
import type { Bound, BoundReached } from '../limits/bound.js'
import { OpenSet } from '../limits/open-set.js'
import type { Call, Final, Handler, Policy, Tell } from '../protocol/call.js'
import { methodTraits } from '../protocol/methods.js'
import { EMPTY } from '../rpc/splice.js'
import { HangUp } from '../time/hang-up.js'
import { Deadline } from '../time/time.js'

/** A bound, and what it limits, in words for error messages. */
export interface AdmissionPlace {
  readonly bound: Bound
  readonly where: string
}

/** A call, or something similar, to be admitted. */
export interface Entering {
  principal: string
  /** It is a subscription, which stays open for long and has bounds of its own. */
  endless?: boolean | undefined
  /** It continues a call that has begun, so it is admitted during shutdown too. */
  goesOn?: boolean | undefined
}

/** Time limits of a call. Progress resets the idle timeout, but not the total timeout. */
interface Timeouts {
  /** Milliseconds without any reply. */
  idle: number
  /** Milliseconds in total. */
  total: number
}

/** All are optional: without any, calls are only ended at shutdown. */
export interface AdmissionOptions {
  /** The bounds of calls: in total, for each server and for each principal. */
  calls?: readonly AdmissionPlace[]
  subscriptions?: readonly AdmissionPlace[]
  timeouts?: Timeouts
  signIn?: CallSignIn | undefined
}

/** Signs in to the server. This may take a person longer than the timeouts allow, so its time does not count. */
interface CallSignIn {
  /** Answers a call that may concern a sign-in; undefined for other calls. `next` sends it to the server. Does not throw. */
  ahead(call: Call, next: Handler): Promise<Final> | undefined
  /** Answers a call that has failed before any notification: signs in first, or rejects with an error. */
  after(call: Call, error: unknown, next: Handler): Promise<Final>
}

/** Aborts a call in flight. */
type Abort = (reason: Fault) => void

const NO_PLACES: readonly AdmissionPlace[] = []
const OUTCOME = 'whether it acted on the call is unknown'

/** The calls in flight of one server, or of one of its clients. */
export class Admission {
  readonly #options: AdmissionOptions
  /** Entries are empty once they are deleted: V8 may keep them for long (see `OpenSet`). */
  readonly #calls = new Set<{ abort: Abort | undefined }>()
  /** Functions that end the open subscriptions. */
  readonly #endless = new OpenSet<() => void>()
  #closed = false
  #ended = false

  constructor(options: AdmissionOptions = {}) {
    this.#options = options
  }

  /** Calls in flight, without subscriptions. */
  get inFlight(): number {
    return this.#calls.size
  }

  /** Takes a place for something that does not pass the policy, or throws a Fault. The returned function releases it. */
  enter(entering: Entering): () => void {
    const places = this.#takePlaces(entering)
    return () => give(places, entering.principal)
  }

  /** Registers a call that does not pass the policy, to be aborted at shutdown. The returned function removes it. */
  begin(abort: Abort): () => void {
    const entry: { abort: Abort | undefined } = { abort }
    this.#calls.add(entry)
    return () => {
      entry.abort = undefined
      this.#calls.delete(entry)
    }
  }

  /** Admits nothing new from now on. */
  close(): void {
    this.#closed = true
  }

  /** Ends open and later subscriptions with a result, which tells clients that the end was intended. */
  end(): void {
    this.#ended = true
    for (const stop of [...this.#endless]) stop()
  }

  /** Aborts all calls in flight with the fault `interrupted`. */
  cut(): void {
    const fault = new Fault('interrupted', 'The bridge was shut down; whether the server acted on the call is unknown')
    for (const { abort } of [...this.#calls]) abort?.(fault)
  }

  /** Admits a call, or throws a Fault. */
  readonly policy: Policy = (next) => {
    const { signIn, timeouts } = this.#options
    const timed = timeouts ? admitted(next, undefined, timeouts) : next
    const endlessly = signIn ? admitted(next, signIn, undefined) : next
    return async (call) => {
      const { principal, method, answers } = call
      const { endless } = methodTraits(method)
      const places = this.#takePlaces({ principal, endless, goesOn: answers !== undefined })
      if (endless) return this.#untilEnded(call, endlessly).finally(() => give(places, principal))
      const ahead = signIn?.ahead(call, timed)
      const entry = new Admitted(call, ahead ? undefined : timeouts)
      this.#calls.add(entry)
      try {
        return await (ahead ?? next(entry.call as Call))
      } catch (error) {
        if (!signIn || ahead || entry.hasTold) throw error
        entry.stopTime()
        return await signIn.after(call, error, timed)
      } finally {
        this.#calls.delete(entry)
        entry.leave()
        for (const { bound } of places) bound.vacate(principal)
      }
    }
  }

  /** Takes a place in each bound, or throws a Fault. Returns the places to give back. */
  #takePlaces({ principal, endless = false, goesOn = false }: Entering): readonly AdmissionPlace[] {
    if (this.#closed && !goesOn) throw new Fault('draining', 'The bridge is shutting down', { retryAfter: 1 })
    const { calls = NO_PLACES, subscriptions = NO_PLACES } = this.#options
    const places = endless ? subscriptions : calls
    for (const { bound, where } of places) {
      const reached = bound.reached(principal)
      if (reached) throw noRoom(reached, bound, `${endless ? 'subscriptions' : 'calls'} ${where}`)
    }
    for (const { bound } of places) bound.occupy(principal)
    return places
  }

  async #untilEnded(call: Call, next: Handler): Promise<Final> {
    const open = this.#endless
    // Not the call's own signal: that would report a disconnected client, but this one gets an answer.
    const over = new HangUp(call.signal)
    let stop = () => {}
    const stopped = new Promise<Final>((resolve) => {
      stop = () => resolve({ kind: 'result', result: EMPTY })
    })
    const place = open.add(stop)
    if (this.#ended) stop()
    try {
      return await Promise.race([next({ ...call, signal: over }), stopped])
    } finally {
      open.delete(place)
      over.abort()
    }
  }
}

function give(places: readonly AdmissionPlace[], principal: string): void {
  for (const { bound } of places) bound.vacate(principal)
}

/** A call in flight. If it has time limits, it is aborted with the fault `upstreamTimeout` when one is exceeded. */
class Admitted {
  /** Undefined when the call has ended. */
  abort: Abort | undefined
  /** The call, with a `tell` that also resets the idle timeout. Undefined when it has ended. */
  call: Call | undefined
  /** There was a notification. */
  hasTold = false
  #silence: Deadline | undefined
  #overdue: NodeJS.Immediate | undefined

  constructor(call: Call, timeouts: Timeouts | undefined) {
    this.abort = call.abort
    const giveUp = (why: string) => call.abort(new Fault('upstreamTimeout', `The server ${why}; ${OUTCOME}`))
    const started = performance.now()
    const { idle = 0, total = Number.POSITIVE_INFINITY } = timeouts ?? {}
    if (timeouts) this.#silence = new Deadline(idle, () => giveUp(`sent nothing for ${idle / 1000} s`))
    const tell: Tell = (told) => {
      this.hasTold = true
      // The answer may have arrived together with this notification.
      if (performance.now() - started > total)
        this.#overdue ??= setImmediate(() => giveUp(`did not answer within ${total / 1000} s`))
      this.#silence?.refresh()
      return call.tell(told)
    }
    // Copied here: a copy made by the caller, with `tell` read from this object, made each call outlive minor garbage
    // collections, for a third more CPU (measured on Node.js 24).
    this.call = { ...call, tell }
  }

  stopTime(): void {
    this.#silence?.clear()
    clearImmediate(this.#overdue)
  }

  leave(): void {
    this.#silence?.clear()
    clearImmediate(this.#overdue)
    this.abort = this.call = this.#silence = undefined
  }
}

/** Answers calls that are admitted already: with a sign-in where that is necessary, and with these time limits. */
function admitted(next: Handler, signIn: CallSignIn | undefined, timeouts: Timeouts | undefined): Handler {
  return async (call) => {
    const ahead = signIn?.ahead(call, next)
    if (ahead) return ahead
    const time = new Admitted(call, timeouts)
    try {
      return await next(time.call as Call)
    } catch (error) {
      if (!signIn || time.hasTold) throw error
      return await signIn.after(call, error, next)
    } finally {
      time.leave()
    }
  }
}

function noRoom(reached: BoundReached, { max }: Bound, what: string): Fault {
  return reached === 'full'
    ? new Fault('overloaded', `Too many ${what}: at most ${max} may be open at once`, { retryAfter: 1 })
    : new Fault('rateLimited', `Too many ${what} of this caller: its share is used up. Wait until one of them ends`, {
        retryAfter: 1,
      })
}
