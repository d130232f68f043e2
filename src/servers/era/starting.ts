/** Reports to callers that a program is starting: by progress if they want it, otherwise by an error after a while. */

import { Fault } from '../../base/fault/fault.js'
import type { Signal } from '../../base/time/hang-up.js'
import { unlessAborted, within } from '../../base/time/time.js'
import type { Call } from '../../mcp/protocol/call.js'
import { TELL_WAITING, waitingProgress } from '../../mcp/protocol/waiting.js'

/** Seconds after which a caller that got this error may try again. */
const AGAIN = 5

/** When calls began to wait, by `performance.now()`. A call may wait for the verdict first, and then for a session. */
const waitingSince = new WeakMap<Signal, number>()

const isSettled = () => true
const isLate = () => false

/** How to report to the caller. */
export interface Telling<T> {
  /** Milliseconds after which a caller that wants no progress gets an error. Infinite by default. */
  startWait?: number | undefined
  /** Gets the value of `opening` if the call no longer waits for it. */
  unused?: (opened: T) => void
}

/**
 * Waits for `opening`, which a call needs before it can be sent. Reports progress, which also resets the call's idle
 * timeout. A caller that wants no progress gets a Fault after `startWait`, before its own timeout; the program continues to
 * start.
 */
export async function starting<T>(
  call: Call,
  opening: Promise<T>,
  { startWait, unused = () => {} }: Telling<T>,
): Promise<T> {
  const { signal, patient } = call
  let waiting = true
  try {
    const opened = call.progress
      ? await telling(call, opening)
      : await inTime(opening, { since: sinceOf(signal), startWait, patient, signal })
    waiting = false
    return opened
  } finally {
    if (waiting) opening.then(unused).catch(() => {})
  }
}

export interface TimeToStart {
  /** When the caller began to wait, by `performance.now()`. */
  since: number
  startWait?: number | undefined
  patient: (() => boolean) | undefined
  signal?: Signal
}

/** Waits for `opening`. Rejects with a Fault if it has not settled `startWait` milliseconds after `since`. */
export async function inTime<T>(
  opening: Promise<T>,
  { since, startWait = Number.POSITIVE_INFINITY, patient, signal }: TimeToStart,
): Promise<T> {
  const wait = Math.max(0, since + startWait - performance.now())
  const isOver = await within(opening.then(isSettled, isSettled), wait, isLate, signal)
  if (isOver || patient?.()) return signal ? unlessAborted(opening, signal) : opening
  const seconds = Math.round((performance.now() - since) / 1_000)
  throw new Fault('upstreamBusy', `The server is starting, since ${seconds} s: try again (timeouts.startWait)`, {
    retryAfter: AGAIN,
  })
}

function sinceOf(signal: Signal): number {
  const since = waitingSince.get(signal) ?? performance.now()
  waitingSince.set(signal, since)
  return since
}

async function telling<T>(call: Call, opening: Promise<T>): Promise<T> {
  const settled = opening.then(isSettled, isSettled)
  const { after, every } = TELL_WAITING
  for (let wait = after; !(await within(settled, wait, isLate, call.signal)); wait = every)
    await call.notify(waitingProgress('The server is starting'))
  return opening
}
