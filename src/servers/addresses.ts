/** Which address of a server gets a call or a session. Without clock, chance and network of its own. */

import { backoff } from '../base/time/pause.js'

export interface AddressState {
  /** Calls that it is answering, and sessions that are open with it. */
  calls: number
  readonly sessions: number
  /** Failures since it has last worked, and until when it rests because of them; 0 for no rest. */
  failures: number
  restsUntil: number
  /** It has left the name of the server: what it has goes on, and it gets nothing new. */
  leaves: boolean
}

/** Failures in a row after which an address rests, and for how many milliseconds. */
export const RESTS_AFTER = 3
export const REST = { first: 5_000, most: 60_000 }

/** The less busy one of two that are chosen at random; if all of them rest, the one that has rested longest. */
export function choose<A extends AddressState>(
  addresses: readonly A[],
  { now, random = Math.random }: { now: number; random?: () => number },
): A | undefined {
  const staying = addresses.filter(({ leaves }) => !leaves)
  const able = staying.filter(({ restsUntil }) => restsUntil <= now)
  if (able.length === 0) return staying.toSorted((a, b) => a.restsUntil - b.restsUntil)[0]
  const at = Math.floor(random() * able.length)
  const other = (at + 1 + Math.floor(random() * (able.length - 1))) % able.length
  const [one, two] = [able[at] as A, able[other] as A]
  return loadOf(two) < loadOf(one) ? two : one
}

function loadOf({ calls, sessions }: AddressState): number {
  return calls + sessions
}

/**
 * Notes that an address gets something. After a rest, it gets one thing, and nothing else before it has worked. Returns whether it
 * is that one.
 */
export function tried(address: AddressState, now: number): boolean {
  if (address.failures < RESTS_AFTER || address.restsUntil > now) return false
  address.restsUntil = now + restAfter(address.failures)
  return true
}

/** Notes a failure. While it rests, only that of the trial counts. Returns whether a rest begins. */
export function failed(address: AddressState, now: number, isTrial: boolean): boolean {
  if (address.restsUntil > now && !isTrial) return false
  address.failures++
  if (address.failures < RESTS_AFTER) return false
  address.restsUntil = now + restAfter(address.failures)
  return true
}

export function succeeded(address: AddressState): void {
  address.failures = 0
  address.restsUntil = 0
}

function restAfter(failures: number): number {
  return backoff(failures - RESTS_AFTER, REST)
}
