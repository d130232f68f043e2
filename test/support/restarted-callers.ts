/**
 * Callers of every kind while a replica restarts, as behind a balancer: they go to the first replica, and to the second one from when
 * the first has said that it shuts down until it is back. What they get is counted.
 */
import { pause, until } from './eventually.js'
import { LANES, type Lane, type Outcome, outcomeOfError, type Place } from './restarted-lanes.js'

/** How often a caller got what. */
export type Counts = Partial<Record<Outcome, number>>

/** Milliseconds between two calls, and until the balancer sends nobody to a replica that has told one caller that it shuts down. */
const GAP = 20
const NOTICE = 300

/** A caller of each lane, from now on. */
export class RestartedCallers {
  readonly counts: ReadonlyMap<string, Counts>
  readonly #origins: readonly [string, string]
  #round = 0
  /** When the replica has told somebody in this round; undefined if it has not. */
  #told: number | undefined
  #isOver = false
  readonly #calling: Promise<unknown>

  /** `origins`: of the replica that is restarted, and of the other one. */
  constructor(origins: readonly [string, string]) {
    this.#origins = origins
    this.counts = new Map(LANES.map(([name]) => [name, {}]))
    this.#calling = Promise.all(LANES.map(([name, lane]) => this.#keepCalling(lane(), this.counts.get(name) as Counts)))
  }

  /** Resolves when each has been answered twice since then: the second time, it has called since then. */
  async called(): Promise<void> {
    const answered = () => [...this.counts.values()].map(({ answered = 0 }) => answered)
    const before = answered()
    await until(() => answered().every((now, i) => now > (before[i] as number) + 1), 'an answer to everybody')
  }

  /** The replica is back. */
  comeBack(): void {
    this.#round++
    this.#told = undefined
  }

  async end(): Promise<void> {
    this.#isOver = true
    await this.#calling
  }

  /** A published port takes connections also while nobody listens behind it, and resets them. */
  async #keepCalling(lane: Lane, counts: Counts): Promise<void> {
    let leftIn = -1
    const [first, second] = this.#origins
    const isAway = () => leftIn === this.#round || performance.now() - (this.#told ?? performance.now()) > NOTICE
    const leave = () => {
      leftIn = this.#round
      this.#told ??= performance.now()
    }
    const place: Place = {
      get origin() {
        return isAway() ? second : first
      },
      leave,
    }
    while (!this.#isOver) {
      const outcome = await lane(place).catch(outcomeOfError)
      counts[outcome] = (counts[outcome] ?? 0) + 1
      if (outcome === 'told' || outcome === 'refused') place.leave()
      await pause(GAP)
    }
  }
}
