/**
 * Admits calls within the bounds, limits their time (idle time, which progress renews, and total time), and aborts them
 * at shutdown. It has the only list of the calls in flight.
 */

import { Fault } from '../../base/fault/fault.js'
import type { Bound, BoundReached } from '../../base/limits/bound.js'
import { OpenSet } from '../../base/limits/open-set.js'
import { EMPTY } from '../../base/rpc/splice.js'
import { HangUp } from '../../base/time/hang-up.js'
import type { Call, Final, Handler, Notify, Policy } from '../../mcp/protocol/call.js'
import { methodTraits } from '../../mcp/protocol/methods.js'

/** A bound, what it limits, in words for error messages, and the option that sets it. */
export interface AdmissionPlace {
  readonly bound: Bound
  readonly where: string
  readonly option: string
}

/** A call, or something similar, to be admitted. */
export interface Entering {
  principal: string
  /** It is a subscription, which stays open for long and has bounds of its own. */
  endless?: boolean | undefined
  /** It continues a call that has begun, so it is admitted during shutdown too. */
  continues?: boolean | undefined
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

type Abort = (reason: Fault) => void

const NO_PLACES: readonly AdmissionPlace[] = []
const OUTCOME = 'the server may have executed the call'

/** The calls in flight of one server, or of one of its clients. */
export class Admission {
  readonly #options: AdmissionOptions
  /**
   * In the order in which they were last heard of. Entries are empty once they are deleted: V8 may keep them for long (see
   * `OpenSet`).
   */
  readonly #calls = new Set<InFlight>()
  /** Calls that have a second entry, because they are sent to the server after a sign-in. */
  #sentAgain = 0
  /** Set while a call may become silent: one timer for all calls, because most end long before theirs would run. */
  #silence: NodeJS.Timeout | undefined
  /** Functions that end the open subscriptions. */
  readonly #endless = new OpenSet<() => void>()
  #closed = false
  #ended = false

  constructor(options: AdmissionOptions = {}) {
    this.#options = options
  }

  /** Calls in flight, without subscriptions. */
  get inFlight(): number {
    return this.#calls.size - this.#sentAgain
  }

  /** Takes a place for something that does not pass the policy, or throws a Fault. The returned function releases it. */
  enter(entering: Entering): () => void {
    const places = this.#takePlaces(entering)
    return () => give(places, entering.principal)
  }

  /** Registers a call that does not pass the policy, to be aborted at shutdown. The returned function removes it. */
  begin(abort: Abort): () => void {
    const entry: InFlight = { abort, heard: undefined }
    this.#calls.add(entry)
    return this.#remove.bind(this, entry)
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
    const fault = new Fault(
      'interrupted',
      'The bridge was shut down, or does not serve this server any more; the server may have executed the call',
    )
    for (const { abort } of [...this.#calls]) abort?.(fault)
  }

  /** Admits a call, or throws a Fault. */
  readonly policy: Policy = (next) => this.admit(next)

  /** Admits a call to the next handler, or throws a Fault. Calls of events go to `ofEvents`, which admits them by itself. */
  admit(next: Handler, ofEvents?: Handler): Handler {
    const { signIn, timeouts } = this.#options
    const timed: Handler = timeouts ? (call) => this.#sendAgain(call, next, timeouts) : next
    const endlessly = signIn ? signingIn(next, signIn) : next
    return async (call) => {
      const { principal, method, answers, link, continues = answers !== undefined } = call
      const { endless, ofEvents: isOfEvents } = methodTraits(method)
      if (isOfEvents && ofEvents) return ofEvents(call)
      // Sessions with the server have bounds of their own.
      const places = link ? NO_PLACES : this.#takePlaces({ principal, endless, continues })
      if (endless) return this.#untilEnded(call, endlessly).finally(() => give(places, principal))
      // The client's own session with the server signs in by itself, and its two ends limit the time of a call.
      const ahead = link ? undefined : signIn?.ahead(call, timed)
      const entry = enterCall(this.#calls, call, ahead || link ? undefined : timeouts)
      if (timeouts) this.#silence ??= setTimeout(this.#silenceOver, timeouts.idle)
      try {
        return await (ahead ?? next(entry.call as Call))
      } catch (error) {
        if (!signIn || ahead || link || entry.hasNotified) throw error
        entry.heard = undefined
        clearImmediate(entry.overdue)
        return await signIn.after(call, error, timed)
      } finally {
        this.#remove(entry)
        for (const { bound } of places) bound.vacate(principal)
      }
    }
  }

  /** Sends a call to the server that has signed in meanwhile: its time limits begin anew. */
  async #sendAgain(call: Call, next: Handler, timeouts: Timeouts): Promise<Final> {
    const entry = enterCall(this.#calls, call, timeouts)
    this.#sentAgain++
    this.#silence ??= setTimeout(this.#silenceOver, timeouts.idle)
    try {
      return await next(entry.call as Call)
    } finally {
      this.#sentAgain--
      this.#remove(entry)
    }
  }

  #remove(entry: InFlight): void {
    this.#calls.delete(entry)
    entry.abort = entry.call = entry.heard = undefined
    clearImmediate(entry.overdue)
    if (this.#calls.size > 0) return
    clearTimeout(this.#silence)
    this.#silence = undefined
  }

  /** After one more turn of the event loop, for the reason that `Deadline` has. */
  readonly #silenceOver = (): void => {
    setImmediate(this.#endSilent)
  }

  /** Gives up the calls of which nothing was heard for too long, and waits for the next one of the others. */
  readonly #endSilent = (): void => {
    clearTimeout(this.#silence)
    this.#silence = undefined
    const { idle = 0 } = this.#options.timeouts ?? {}
    const now = performance.now()
    for (const entry of this.#calls) {
      if (entry.heard === undefined) continue
      const left = entry.heard + idle - now
      if (left <= 0 && entry.call?.client?.isThinking) {
        // The server may wait for an answer of the client. The entry moves to the end.
        entry.heard = now
        this.#calls.delete(entry)
        this.#calls.add(entry)
        continue
      }
      if (left > 0) {
        this.#silence = setTimeout(this.#silenceOver, left)
        return
      }
      entry.heard = undefined
      giveUp(entry, `sent nothing for ${idle / 1000} s`)
    }
  }

  /** Takes a place in each bound, or throws a Fault. Returns the places to give back. */
  #takePlaces({ principal, endless = false, continues = false }: Entering): readonly AdmissionPlace[] {
    if (this.#closed && !continues) throw new Fault('draining', 'The bridge is shutting down', { retryAfter: 1 })
    const { calls = NO_PLACES, subscriptions = NO_PLACES } = this.#options
    const places = endless ? subscriptions : calls
    for (const { bound, where, option } of places) {
      const reached = bound.reached(principal)
      if (reached) throw noRoom(reached, { max: bound.max, option }, `${endless ? 'subscriptions' : 'calls'} ${where}`)
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

interface InFlight {
  /** Undefined when it has ended. */
  abort: Abort | undefined
  /** When something was last heard of it. Undefined while it has no idle timeout. */
  heard: number | undefined
  /** The call, with a `notify` that also resets the idle timeout. Undefined when it has ended. */
  call?: Call | undefined
  /** Set when the total time is over: in one more turn of the event loop, the call is aborted. */
  overdue?: NodeJS.Immediate | undefined
  /** There was a notification. */
  hasNotified?: boolean
}

function giveUp({ abort }: InFlight, why: string): void {
  abort?.(new Fault('upstreamTimeout', `The server ${why}; ${OUTCOME}`))
}

/** Enters a call among those in flight. If it has time limits, it is aborted with the fault `upstreamTimeout` when one is exceeded. */
function enterCall(calls: Set<InFlight>, call: Call, timeouts: Timeouts | undefined): InFlight {
  const started = timeouts && performance.now()
  const entry: InFlight = { abort: call.abort, heard: started, call: undefined, overdue: undefined, hasNotified: false }
  const notify: Notify = (notification) => {
    entry.hasNotified = true
    if (timeouts && entry.heard !== undefined) {
      const now = performance.now()
      // The answer may have arrived together with this notification.
      if (now - (started as number) > timeouts.total)
        entry.overdue ??= setImmediate(() => giveUp(entry, `did not answer within ${timeouts.total / 1000} s`))
      entry.heard = now
      if (calls.delete(entry)) calls.add(entry)
    }
    return call.notify(notification)
  }
  // Copied here: a copy made by the caller, with `notify` read from the entry, made each call outlive minor garbage
  // collections, for a third more CPU (measured on Node.js 24).
  entry.call = { ...call, notify }
  calls.add(entry)
  return entry
}

/** Answers subscriptions, which have no time limits: with a sign-in where that is necessary. */
function signingIn(next: Handler, signIn: CallSignIn): Handler {
  return async (call) => {
    const ahead = signIn.ahead(call, next)
    if (ahead) return ahead
    let hasNotified = false
    const notify: Notify = (notification) => {
      hasNotified = true
      return call.notify(notification)
    }
    try {
      return await next({ ...call, notify })
    } catch (error) {
      if (hasNotified) throw error
      return await signIn.after(call, error, next)
    }
  }
}

function noRoom(reached: BoundReached, { max, option }: { max: number; option: string }, what: string): Fault {
  return reached === 'full'
    ? new Fault('overloaded', `Too many ${what}: at most ${max} may be open at once (${option})`, { retryAfter: 1 })
    : new Fault('rateLimited', `Too many concurrent ${what} for this caller; retry when one has finished`, {
        retryAfter: 1,
      })
}
