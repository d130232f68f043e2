/** Asks endpoints as often as it helps: again after what may pass, not again while an answer holds, not for ever. */
import { setTimeout as wait } from 'node:timers/promises'
import { LRUCache } from 'lru-cache'
import { Failure } from '../net/failure.js'

/** What an attempt came to, and the milliseconds for which it holds. */
export interface Outcome<T> {
  value: T
  freshFor: number
}

/** A cycle is an attempt with all its retries; this one came to nothing. */
export interface FailedCycle {
  endpoint: string
  phase: string
  reason: string
  error: Error
  /** The endpoint is left alone from now on, for a while. */
  opens: boolean
}

export interface CyclesOptions {
  /** Is told of every failed cycle, once. */
  told(failed: FailedCycle): void
  /** Attempts at once. */
  parallel?: number | undefined
  /** Ends what is under way, and all that waits. */
  signal?: AbortSignal | undefined
  now?: (() => number) | undefined
  sleep?: ((milliseconds: number, signal: AbortSignal | undefined) => Promise<unknown>) | undefined
  random?: (() => number) | undefined
}

const RETRIES = [1_000, 2_000, 4_000] as const
/** Of the time until a retry, to either side, so that what failed together does not come back together. */
const JITTER = 0.2
const FAILURES = 3
const COOL_DOWN = 300_000
const FRESH = { least: 300_000, most: 3_600_000 } as const
const PARALLEL = 8
/** Of which something is remembered. */
const ENDPOINTS = 256

/** An endpoint has failed too often, and is not asked before a certain time. */
export class CoolingDown extends Failure {
  override name = 'CoolingDown'
  readonly until: number

  constructor(until: number, cause: Error | undefined) {
    const message = `It failed ${FAILURES} times in a row, and is left alone for a while: ${cause?.message ?? ''}`
    super('cooling', 'down', false, message, { cause })
    this.until = until
  }
}

/** What is known of an endpoint. */
interface State<T> {
  /** The cycle that is under way, which all who ask meanwhile share. */
  flight?: Promise<T> | undefined
  kept?: { value: T; until: number } | undefined
  /** Cycles in a row. */
  failures: number
  coolUntil: number
  error?: Error
}

/**
 * Cycles of endpoints, whatever is asked of them. A value is kept for as long as its attempt says, but for 5 minutes at least
 * and an hour at most. What fails in a way that may pass is tried again after 1, 2 and 4 seconds. After three failed
 * cycles in a row an endpoint is left alone for five minutes; then one attempt decides whether for another five.
 */
export class Cycles<T> {
  readonly #states = new LRUCache<string, State<T>>({ max: ENDPOINTS })
  readonly #options: CyclesOptions
  readonly #now: () => number
  readonly #turns: Turns

  constructor(options: CyclesOptions) {
    this.#options = options
    this.#now = options.now ?? (() => performance.now())
    this.#turns = new Turns(options.parallel ?? PARALLEL)
  }

  /**
   * What an endpoint says: what is kept of it, what the cycle that is under way comes to, or what a new one does. Rejects with
   * the error of the last attempt, or with CoolingDown.
   */
  async run(endpoint: string, attempt: (signal: AbortSignal | undefined) => Promise<Outcome<T>>): Promise<T> {
    const state = this.#states.get(endpoint) ?? { failures: 0, coolUntil: 0 }
    this.#states.set(endpoint, state)
    if (state.flight !== undefined) return state.flight
    const now = this.#now()
    if (state.kept !== undefined && now < state.kept.until) return state.kept.value
    if (now < state.coolUntil) throw new CoolingDown(state.coolUntil, state.error)
    const flight = this.#cycle(endpoint, state, attempt).then(
      ({ value, freshFor }) => {
        // What was forgotten meanwhile is not remembered after all.
        if (state.flight !== flight) return value
        state.flight = undefined
        state.kept = { value, until: this.#now() + clamp(freshFor) }
        return value
      },
      (error: unknown) => {
        if (state.flight === flight) state.flight = undefined
        throw error
      },
    )
    state.flight = flight
    return flight
  }

  /** Forgets what an endpoint has said: the next one who wants to know it asks again. */
  forget(endpoint: string): void {
    const state = this.#states.get(endpoint)
    if (state === undefined) return
    state.kept = undefined
    state.flight = undefined
  }

  /** Until when an endpoint is left alone; undefined where it is not. */
  coolsUntil(endpoint: string): number | undefined {
    const until = this.#states.peek(endpoint)?.coolUntil ?? 0
    return this.#now() < until ? until : undefined
  }

  async #cycle(
    endpoint: string,
    state: State<T>,
    attempt: (signal: AbortSignal | undefined) => Promise<Outcome<T>>,
  ): Promise<Outcome<T>> {
    const { signal, sleep = pause, random = Math.random } = this.#options
    const retries = state.failures < FAILURES ? RETRIES : []
    for (let tries = 0; ; tries++) {
      signal?.throwIfAborted()
      try {
        const outcome = await this.#turns.take(() => attempt(signal))
        state.failures = 0
        return outcome
      } catch (error) {
        // To be stopped is no failure of the endpoint.
        signal?.throwIfAborted()
        const retry = retries[tries]
        if (retry === undefined || !described(error).transient) {
          this.#failed(endpoint, state, error)
          throw error
        }
        await sleep(retry * (1 - JITTER + 2 * JITTER * random()), signal)
      }
    }
  }

  #failed(endpoint: string, state: State<T>, thrown: unknown): void {
    const error = thrown instanceof Error ? thrown : new Error(String(thrown))
    state.error = error
    state.failures++
    const opens = state.failures >= FAILURES
    if (opens) state.coolUntil = this.#now() + COOL_DOWN
    const { phase, reason } = described(thrown)
    this.#options.told({ endpoint, phase, reason, error, opens })
  }
}

/** How long the headers of an answer let it be kept, in milliseconds, as far as that is in our bounds. */
export function freshness(headers: Readonly<Record<string, string | string[] | undefined>>): number {
  const text = [headers['cache-control'] ?? ''].flat().join(',').toLowerCase()
  const directives = text.split(',').map((directive) => directive.trim())
  if (directives.includes('no-store') || directives.includes('no-cache')) return FRESH.least
  // Of several, the one that promises least.
  const ages = directives.flatMap((directive) => /^max-age="?(\d+)"?$/.exec(directive)?.[1] ?? [])
  return ages.length === 0 ? FRESH.least : clamp(Math.min(...ages.map((age) => Number(age) * 1_000)))
}

function clamp(freshFor: number): number {
  return freshFor > FRESH.least ? Math.min(FRESH.most, freshFor) : FRESH.least
}

/** What an error says of itself: those of discovery know where they happened and whether they may pass. */
function described(error: unknown): { phase: string; reason: string; transient: boolean } {
  const { phase, reason, transient } = (error ?? {}) as Record<string, unknown>
  return {
    phase: typeof phase === 'string' ? phase : 'unknown',
    reason: typeof reason === 'string' ? reason : 'unknown',
    transient: transient === true,
  }
}

async function pause(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
  await wait(milliseconds, undefined, signal === undefined ? {} : { signal })
}

/** Lets only so many do something at once; the others wait, first come, first served. */
class Turns {
  readonly #waiting: (() => void)[] = []
  #free: number

  constructor(count: number) {
    this.#free = count
  }

  async take<T>(work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free--
    else await new Promise<void>((resolve) => this.#waiting.push(resolve))
    try {
      return await work()
    } finally {
      const next = this.#waiting.shift()
      if (next === undefined) this.#free++
      else next()
    }
  }
}
