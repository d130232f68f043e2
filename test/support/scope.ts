/** What a test starts ends with it. Tools that are no tests have a scope of their own, which ends when they say so. */
import type { Test } from 'tap'

/** What helpers need of a test in order to clean up after themselves. */
export type Scope = Pick<Test, 'teardown'>

/** The scope of a tool. */
export class ToolScope implements Scope {
  #ends: (() => unknown)[] = []

  teardown(end: () => unknown): void {
    this.#ends.push(end)
  }

  /** Ends everything, the last first. What cannot be ended is told, and holds up nothing. */
  async end(): Promise<void> {
    const ends = this.#ends.reverse()
    this.#ends = []
    for (const end of ends) {
      try {
        await end()
      } catch (error) {
        process.stderr.write(`${String(error)}\n`)
      }
    }
  }
}
