/** A child and what it has started: a process group, which ends as one, and at the latest with the bridge. */
import type { ChildProcess } from 'node:child_process'
import process from 'node:process'
import { pause, within } from '../../../time.js'
import { unwatch, watch } from './watchdog.js'

/** Milliseconds between looks at whether anybody is left in a group. */
const LOOK = 20
/** Milliseconds from SIGTERM to the end of the bridge, where it ends at once. */
const AT_ONCE = 300

/** Groups that have not been seen to be gone. */
const living = new Set<ProcessGroup>()

/** The last chance to end what is left: nothing that takes time is possible any more. */
function endAll(): void {
  for (const group of living) group.signal('SIGKILL')
}

/** Ends all programs of this process that still run: for a process that is to end at once. Those that are left it kills. */
export async function endPrograms(): Promise<void> {
  const groups = [...living]
  for (const group of groups) group.signal('SIGTERM')
  await Promise.all(groups.map((group) => group.goneWithin(AT_ONCE)))
}

export class ProcessGroup {
  /** Resolves when the child itself has ended; what it has started may not have. */
  readonly exited: Promise<void>
  readonly #child: ChildProcess
  #exited = false

  /** The child has to lead a group of its own, but on Windows, where there are none. */
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
      // Nobody is left in the group, which is what was wanted.
    }
  }

  /** Waits until nobody is left in the group. Resolves to false where somebody still is after so many milliseconds. */
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

  /** Ends whoever is left in the group, now that the child has ended by itself or is of no use. */
  destroy(): void {
    this.signal('SIGKILL')
    this.exited.then(() => this.#forget()).catch(() => {})
  }

  #isGone(): boolean {
    if (!this.#exited) return false
    if (process.platform === 'win32') return true
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
    if (process.platform === 'win32') this.#child.kill(signal)
    else process.kill(-pid, signal)
  }
}
