/** Requests to endpoints with caching, retries and a circuit breaker. */
import { BoundedMap } from '../../base/limits/bounded.js'
import { Failure } from '../../base/net/failure.js'
import { backoff, pause } from '../../base/time/pause.js'

/** The result of an attempt, and the milliseconds for which it is fresh. */
export interface CycleOutcome<T> {
  value: T
  freshFor: number
}

/** Fetches a value. `before` is the last one of its endpoint, unless it was forgotten. */
type Attempt<T> = (signal: AbortSignal | undefined, before: T | undefined) => Promise<CycleOutcome<T>>

/** A cycle, that is an attempt with all its retries, that failed. */
export interface FailedCycle {
  endpoint: string
  phase: string
  reason: string
  error: Error
  /** The circuit breaker is open: no requests for COOL_DOWN. */
  opens: boolean
}

/** How to run cycles. */
export interface CyclesOptions {
  /** Called once for every failed cycle. */
  onFailed(failed: FailedCycle): void
  /** Most concurrent attempts. */
  parallel?: number | undefined
  /** Ends everything in progress or waiting. */
  signal?: AbortSignal | undefined
  now?: (() => number) | undefined
  sleep?: ((milliseconds: number, signal: AbortSignal | undefined) => Promise<unknown>) | undefined
  random?: (() => number) | undefined
}

const RETRIES = 3
/** Milliseconds before a retry. */
const WAIT = { first: 1_000, most: 4_000 }
/** Random part of each delay, to either side, so that endpoints that failed together are not retried together. */
const JITTER = 0.2
const FAILURES = 3
const COOL_DOWN = 300_000
const FRESH = { least: 300_000, most: 3_600_000 } as const
const PARALLEL = 8
/** Most endpoints that are remembered. */
const ENDPOINTS = 256

/** The circuit breaker of an endpoint is open. */
export class CoolingDown extends Failure {
  override name = 'CoolingDown'
  readonly until: number

  constructor(until: number, cause: Error | undefined) {
    const message = `It failed ${FAILURES} times in a row and is not contacted for ${COOL_DOWN / 60_000} minutes: ${cause?.message ?? ''}`
    super('cooling', 'down', false, message, { cause })
    this.until = until
  }
}

/** The state of an endpoint. */
interface State<T> {
  /** The cycle in progress. Concurrent callers share it. */
  flight?: Promise<T> | undefined
  kept?: { value: T; until: number } | undefined
  /** Failed cycles in a row. */
  failures: number
  coolUntil: number
  error?: Error
}

/**
 * Runs cycles for endpoints. A value is cached for as long as its attempt says, at least 5 minutes and at most an hour.
 * Transient failures are retried after 1, 2 and 4 seconds. After three failed cycles in a row the endpoint is not
 * contacted for five minutes; then a single attempt decides about another five.
 */
export class Cycles<T> {
  readonly #states = new BoundedMap<string, State<T>>(ENDPOINTS)
  readonly #options: CyclesOptions
  readonly #now: () => number
  readonly #turns: Turns

  constructor(options: CyclesOptions) {
    this.#options = options
    this.#now = options.now ?? (() => performance.now())
    this.#turns = new Turns(options.parallel ?? PARALLEL)
  }

  /**
   * The cached value of an endpoint, or the result of the cycle in progress, or of a new one. Rejects with the error of
   * the last attempt, or with CoolingDown.
   */
  async run(endpoint: string, attempt: Attempt<T>): Promise<T> {
    const state = this.#states.get(endpoint) ?? { failures: 0, coolUntil: 0 }
    this.#states.set(endpoint, state)
    if (state.flight !== undefined) return state.flight
    const now = this.#now()
    if (state.kept !== undefined && now < state.kept.until) return state.kept.value
    if (now < state.coolUntil) throw new CoolingDown(state.coolUntil, state.error)
    const flight = this.#cycle(endpoint, state, attempt).then(
      ({ value, freshFor }) => {
        // `forget` was called meanwhile: do not cache the value.
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

  /** Drops the cached value of an endpoint. */
  forget(endpoint: string): void {
    const state = this.#states.get(endpoint)
    if (state === undefined) return
    state.kept = undefined
    state.flight = undefined
  }

  /** When the circuit breaker of an endpoint closes, in milliseconds of `now`; undefined if it is not open. */
  coolsUntil(endpoint: string): number | undefined {
    const until = this.#states.get(endpoint)?.coolUntil ?? 0
    return this.#now() < until ? until : undefined
  }

  async #cycle(endpoint: string, state: State<T>, attempt: Attempt<T>): Promise<CycleOutcome<T>> {
    const { signal, sleep = pause, random = Math.random } = this.#options
    const retries = state.failures < FAILURES ? RETRIES : 0
    for (let tries = 0; ; tries++) {
      signal?.throwIfAborted()
      try {
        const outcome = await this.#turns.take(() => attempt(signal, state.kept?.value))
        state.failures = 0
        return outcome
      } catch (error) {
        // A shutdown is not a failure of the endpoint.
        signal?.throwIfAborted()
        if (tries >= retries || !described(error).transient) {
          this.#failed(endpoint, state, error)
          throw error
        }
        await sleep(backoff(tries, WAIT) * (1 - JITTER + 2 * JITTER * random()), signal)
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
    this.#options.onFailed({ endpoint, phase, reason, error, opens })
  }
}

/** Milliseconds for which the response headers allow caching, within FRESH. */
export function freshness(headers: Readonly<Record<string, string | string[] | undefined>>): number {
  const text = [headers['cache-control'] ?? ''].flat().join(',').toLowerCase()
  const directives = text.split(',').map((directive) => directive.trim())
  if (directives.includes('no-store') || directives.includes('no-cache')) return FRESH.least
  // Of several values, the smallest.
  const ages = directives.flatMap((directive) => /^max-age="?(\d+)"?$/.exec(directive)?.[1] ?? [])
  return ages.length === 0 ? FRESH.least : clamp(Math.min(...ages.map((age) => Number(age) * 1_000)))
}

function clamp(freshFor: number): number {
  return freshFor > FRESH.least ? Math.min(FRESH.most, freshFor) : FRESH.least
}

/** The phase, reason and transience of an error. Failures of discovery have them. */
function described(error: unknown): { phase: string; reason: string; transient: boolean } {
  const { phase, reason, transient } = (error ?? {}) as Record<string, unknown>
  return {
    phase: typeof phase === 'string' ? phase : 'unknown',
    reason: typeof reason === 'string' ? reason : 'unknown',
    transient: transient === true,
  }
}

/** Limits concurrency; waiting work starts in order. */
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
