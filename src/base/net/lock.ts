/**
 * A lock between processes: the process that creates the lock file has it. If a process is killed, its lock file stays,
 * so a lock that has not changed for a while is removed. In the rare case that its owner was only slow, the owner can
 * check that it still has the lock before an irreversible step. Anything but a lock file of this user is neither read nor
 * removed.
 */
import { randomUUID } from 'node:crypto'
import { linkSync, renameSync, unlinkSync, writeFileSync } from 'node:fs'
import { pause } from '../time/pause.js'
import { codeOf } from './failure.js'
import { readPrivateFile } from './private-file.js'

/** Times of the lock. */
export interface LockOptions {
  /** Milliseconds until an owner counts as dead. */
  patience?: number
  /** Milliseconds between attempts. */
  interval?: number
}

/** Times of the lock, and the user that must own its file, unless root does. */
export type OwnLock = LockOptions & { uid: number }

/** Throws if the lock was lost. */
export type StillMine = () => void

class LockLost extends Error {}

/** Something else is at the path of the lock file. The message continues a sentence that ends with a colon. */
export class LockRefused extends Error {
  override name = 'LockRefused'

  constructor(path: string, why: string) {
    super(`its lock file ${path} is refused (${why}). Remove that file`)
  }
}

/** Most bytes of a lock file, which has the id of its owner. */
const MAX_LOCK_BYTES = 64
/** Accepts a lock file of any user: only the id in it counts, which is unique. */
const WHOEVER = -1

/**
 * Makes a change under the lock. It must be short, and is made again if the lock was lost meanwhile. Rejects with
 * LockRefused if something else is at its path.
 */
export async function locked<T>(path: string, change: (stillMine: StillMine) => T, options: OwnLock): Promise<T> {
  for (;;) {
    const own = randomUUID()
    const isMine = () => {
      const found = lookAt(path, WHOEVER)
      return found.kind === 'held' && found.owner === own
    }
    await take(path, own, options)
    try {
      return change(() => {
        if (!isMine()) throw new LockLost()
      })
    } catch (error) {
      if (!(error instanceof LockLost)) throw error
    } finally {
      if (isMine()) unlinkSync(path)
    }
  }
}

async function take(path: string, own: string, { uid, patience = 3_000, interval = 20 }: OwnLock): Promise<void> {
  let seen: { owner: string; since: number } | undefined
  while (!create(path, own)) {
    const found = lookAt(path, uid)
    if (found.kind === 'refused') throw new LockRefused(path, found.why)
    if (found.kind === 'held') {
      const now = performance.now()
      if (found.owner !== seen?.owner) seen = { owner: found.owner, since: now }
      if (now - seen.since > patience) takeAway(path, found.owner, own)
    }
    await pause(interval * (0.5 + Math.random()))
  }
}

function create(path: string, owner: string): boolean {
  try {
    writeFileSync(path, owner, { flag: 'wx', mode: 0o600 })
    return true
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false
    throw error
  }
}

/** What is at the path of the lock file. One that is being created has the owner ''. */
type Look = { kind: 'free' } | { kind: 'held'; owner: string } | { kind: 'refused'; why: string }

function lookAt(path: string, uid: number): Look {
  const found = readPrivateFile(path, { uid, maxBytes: MAX_LOCK_BYTES })
  if (found.kind === 'absent') return { kind: 'free' }
  if (found.kind === 'refused') return found
  return { kind: 'held', owner: Buffer.from(found.bytes).toString() }
}

/**
 * Removes the lock of a dead owner. If another process has removed it and created its own meanwhile, that is put back.
 */
function takeAway(path: string, dead: string, own: string): void {
  const aside = `${path}.${own}`
  try {
    renameSync(path, aside)
    const found = lookAt(aside, WHOEVER)
    if (found.kind !== 'held' || found.owner !== dead) linkSync(aside, path)
  } catch (error) {
    if (codeOf(error) !== 'ENOENT' && codeOf(error) !== 'EEXIST') throw error
  }
  try {
    unlinkSync(aside)
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error
  }
}
