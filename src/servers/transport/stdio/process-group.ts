/**
 * Ends a child process and its descendants together, as a process group (on Windows with taskkill), at the latest when
 * the bridge ends.
 */
import { type ChildProcess, spawnSync } from 'node:child_process'
import process from 'node:process'
import { pause } from '../../../base/time/pause.js'
import { within } from '../../../base/time/time.js'
import { unwatch, watch } from './watchdog.js'

/** Milliseconds between checks whether a group still has processes. */
const LOOK = 20
/** Milliseconds from SIGTERM to SIGKILL if the bridge has to end at once. */
const AT_ONCE = 300

const WINDOWS = process.platform === 'win32'

/** Groups that may still have processes. */
const living = new Set<ProcessGroup>()

export function runningPrograms(): number {
  return living.size
}

/** Kills all remaining groups when the bridge exits; then nothing asynchronous is possible. */
function endAll(): void {
  for (const group of living) group.signal('SIGKILL')
}

/**
 * Sends SIGTERM to all running groups, and waits a moment. For a bridge that has to end at once; its exit kills the rest.
 */
export async function endPrograms(): Promise<void> {
  const groups = [...living]
  for (const group of groups) group.signal('SIGTERM')
  await Promise.all(groups.map((group) => group.goneWithin(AT_ONCE)))
}

/**
 * Kills a process and its descendants on Windows, which has neither process groups nor signals. Blocks until that is done,
 * because an exit of the bridge does not wait for anything asynchronous.
 */
function endTree(child: ChildProcess): void {
  const { status } = spawnSync('taskkill', ['/pid', String(child.pid), '/t', '/f'], {
    stdio: 'ignore',
    windowsHide: true,
  })
  if (status !== 0) child.kill()
}

export class ProcessGroup {
  /** Resolves when the child itself has ended. Its descendants may still be running. */
  readonly exited: Promise<void>
  readonly #child: ChildProcess
  #exited = false

  /** `child` has to lead a process group, except on Windows, which has none. */
  constructor(child: ChildProcess) {
    this.#child = child
    if (living.size === 0 && !process.listeners('exit').includes(endAll)) process.on('exit', endAll)
    living.add(this)
    if (child.pid !== undefined) watch(child.pid)
    this.exited = new Promise((resolve) => {
      child.once('exit', () => {
        this.#exited = true
        resolve()
      })
    })
  }

  signal(signal: NodeJS.Signals): void {
    try {
      this.#send(signal)
    } catch {
      // The group has no processes left.
    }
  }

  /** Waits until the group has no processes. Resolves to false if it still has some after `milliseconds`. */
  async goneWithin(milliseconds: number): Promise<boolean> {
    const deadline = performance.now() + milliseconds
    await within(this.exited, milliseconds)
    while (!this.#isGone()) {
      if (performance.now() >= deadline) return false
      await pause(LOOK)
    }
    this.#forget()
    return true
  }

  destroy(): void {
    this.signal('SIGKILL')
    this.exited.then(() => this.#forget()).catch(() => {})
  }

  #isGone(): boolean {
    if (!this.#exited) return false
    if (WINDOWS) return true
    try {
      this.#send(0)
      return false
    } catch {
      return true
    }
  }

  #forget(): void {
    living.delete(this)
    if (this.#child.pid !== undefined) unwatch(this.#child.pid)
  }

  #send(signal: NodeJS.Signals | 0): void {
    const { pid } = this.#child
    if (pid === undefined) return
    if (WINDOWS) endTree(this.#child)
    else process.kill(-pid, signal)
  }
}
