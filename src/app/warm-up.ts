/** Connects to servers before the first call. */
import { Fault, isOfStore } from '../base/fault/fault.js'
import { pause } from '../base/time/pause.js'
import type { Verdict } from '../servers/era/verdict.js'
import type { GroupMount } from './group-mount.js'
import type { Mount } from './mount.js'

/**
 * Called with the result of a server's warm-up: its verdict, or a Fault; undefined if that needs the credential of a
 * caller. It is awaited.
 */
export type WarmedUp = (mount: Mount, verdict: Verdict | Fault | undefined) => unknown

/** What a bridge serves, at the time of a call. */
interface ServedNow {
  mounts(): ReadonlyMap<string, Mount>
  groups(): ReadonlyMap<string, GroupMount>
  isStopping(): boolean
}

/** Most servers that are warmed up at the same time. */
const AT_ONCE = 4
/** Milliseconds until a server is tried again that needs what replicas share, while Redis is unavailable. */
const STORE_CHECK = 1_000

/** Calls `report` with the result of each server. */
export async function warmUp(mounts: readonly Mount[], report: WarmedUp, now: ServedNow): Promise<void> {
  let waiting = await once([...mounts], report, now)
  while (waiting.length > 0 && !now.isStopping()) {
    await pause(STORE_CHECK)
    const served = [...now.mounts().values()]
    waiting = await once(
      waiting.filter((mount) => served.includes(mount)),
      report,
      now,
    )
  }
}

/** Resolves to those that cannot be tried without the Redis of the replicas, which is unavailable. */
async function once(waiting: Mount[], report: WarmedUp, now: ServedNow): Promise<Mount[]> {
  const withoutStore: Mount[] = []
  const next = async (): Promise<void> => {
    const mount = waiting.shift()
    if (!mount) return
    if (await rests(mount, now)) {
      mount.rest()
      return next()
    }
    const verdict = await mount.server.warmUp().catch((error: unknown) => Fault.from(error))
    if (isOfStore(verdict)) withoutStore.push(mount)
    else {
      if (verdict && !(verdict instanceof Fault) && !now.isStopping()) mount.policies.learnNames()
      if (!now.isStopping()) await report(mount, verdict)
    }
    return next()
  }
  await Promise.all(Array.from({ length: AT_ONCE }, next))
  return withoutStore
}

/** Whether a group starts the server when something of it is used. */
async function rests(mount: Mount, now: ServedNow): Promise<boolean> {
  for (const group of now.groups().values()) if (await group.rests(mount)) return true
  return false
}
