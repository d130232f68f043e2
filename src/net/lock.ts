/**
 * Lets one at a time change a file, of all processes that ask: whoever makes the file beside it has the lock. A process that
 * is killed leaves it behind, so that one which has not changed hands for a while is taken away. For the rare case that its
 * owner was only slow, it can ask whether the lock is still its own before it does what cannot be taken back.
 */
import { randomUUID } from 'node:crypto'
import { linkSync, readFileSync, renameSync, unlinkSync, writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

export interface LockOptions {
  /** Milliseconds for which one owner is waited for before it is taken for dead. */
  patience?: number
  /** Milliseconds between one look and the next. */
  interval?: number
}

/** Throws where the lock has been lost to somebody else. */
export type StillMine = () => void

class LockLost extends Error {}

/** Does it while nobody else does. What is done has to be short, and is done again where the lock was lost in between. */
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
    else await sleep(interval * (0.5 + Math.random()))
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

/** Undefined where there is no lock. One that is being made has no owner yet. */
function ownerOf(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined
    throw error
  }
}

/** Takes away the lock of a dead owner, unless somebody has done so and made one of their own: then it is put back. */
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
