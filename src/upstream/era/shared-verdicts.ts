/** What a server speaks, as far as any replica has found out: the others need not ask again. */

import type { Store } from '../../ports/replicas.js'
import type { Era } from '../../protocol/eras.js'
import type { Transport } from '../transport/channel.js'
import type { Verdict } from './verdict.js'

export interface SharedVerdictsOptions {
  records: Store
  /** The server's name. */
  server: string
  /** Where it is, and where it may be as well. */
  transport: Transport
  fallback: Transport | undefined
}

/** Milliseconds for which replicas rely on each other, however long a verdict holds. */
const AT_MOST = 3_600_000

export class SharedVerdicts {
  readonly #options: SharedVerdictsOptions
  readonly #name: string

  constructor(options: SharedVerdictsOptions) {
    this.#options = options
    this.#name = `${options.server} ${options.transport.target}`
  }

  /** What another replica has found out, if that can be had. */
  async recall(): Promise<Verdict | undefined> {
    const { records, transport, fallback } = this.#options
    const text = await records.recall('verdict', this.#name).catch(() => undefined)
    if (text === undefined) return undefined
    const { lifetime, kind, ...verdict } = JSON.parse(text) as Omit<Verdict, 'transport' | 'lifetime'> & {
      era: Era
      kind: Transport['kind']
      lifetime: number | null
    }
    const reached = [transport, fallback].find((one) => one?.kind === kind)
    if (!reached) return undefined
    // The record has the time of day, because monotonic clocks of two processes have nothing in common.
    const since = performance.now() - Math.max(0, Date.now() - verdict.since)
    // A lifetime without end has no number.
    return { ...verdict, since, transport: reached, lifetime: lifetime ?? Number.POSITIVE_INFINITY }
  }

  remember({ transport: { kind }, ...verdict }: Verdict): void {
    const age = performance.now() - verdict.since
    const left = verdict.lifetime - age
    const text = JSON.stringify({ ...verdict, since: Date.now() - age, kind })
    this.#options.records.remember('verdict', this.#name, text, Math.min(left, AT_MOST)).catch(() => {})
  }

  forget(): void {
    this.#options.records.forget('verdict', this.#name)
  }
}
