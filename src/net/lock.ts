/**
 * A lock between processes: the process that creates the lock file has it. If a process is killed, its lock file stays,
 * so a lock that has not changed for a while is removed. In the rare case that its owner was only slow, the owner can
 * check that it still has the lock before an irreversible step.
 */
import { randomUUID } from 'node:crypto'
import { linkSync, readFileSync, renameSync, unlinkSync, writeFileSync } from 'node:fs'
import { pause } from '../time.js'

/** Times of the lock. */
export interface LockOptions {
  /** Milliseconds until an owner counts as dead. */
  patience?: number
  /** Milliseconds between attempts. */
  interval?: number
}

/** Throws if the lock was lost. */
export type StillMine = () => void

class LockLost extends Error {}

/** Runs `work` under the lock. It must be short, and runs again if the lock was lost meanwhile. */
export async function locked<T>(
  path: string,
  change: (stillMine: StillMine) => T,
  options: LockOptions = {},
): Promise<T> {
  for (;;) {
    const own = randomUUID()
    await take(path, own, options)
    try {
      return change(() => {
        if (ownerOf(path) !== own) throw new LockLost()
      })
    } catch (error) {
      if (!(error instanceof LockLost)) throw error
    } finally {
      if (ownerOf(path) === own) unlinkSync(path)
    }
  }
}

async function take(path: string, own: string, { patience = 3_000, interval = 20 }: LockOptions): Promise<void> {
  let seen: { owner: string; since: number } | undefined
  while (!create(path, own)) {
    const owner = ownerOf(path)
    const now = performance.now()
    if (owner === undefined) continue
    if (owner !== seen?.owner) seen = { owner, since: now }
    if (now - seen.since > patience) takeAway(path, owner, own)
    else await pause(interval * (0.5 + Math.random()))
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

/** Undefined if there is no lock. A lock file that is being created has no owner yet. */
function ownerOf(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined
    throw error
  }
}

/**
 * Removes the lock of a dead owner. If another process has removed it and created its own meanwhile, that is put back.
 */
function takeAway(path: string, dead: string, own: string): void {
  const aside = `${path}.${own}`
  try {
    renameSync(path, aside)
    if (readFileSync(aside, 'utf8') !== dead) linkSync(aside, path)
  } catch (error) {
    if (codeOf(error) !== 'ENOENT' && codeOf(error) !== 'EEXIST') throw error
  }
  try {
    unlinkSync(aside)
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error
  }
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined
}
