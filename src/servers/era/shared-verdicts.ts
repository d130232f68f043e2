/** Shares the verdict on a server's era between replicas, so that only one of them has to probe it. */

import type { SharedStore } from '../../mcp/ports/replicas.js'
import type { Era } from '../../mcp/protocol/eras.js'
import type { ServerOptions } from '../options.js'
import type { Transport } from '../transport/channel.js'
import type { Verdict } from './verdict.js'

/** Maximum milliseconds for which a verdict is shared, even if it is valid for longer. */
const AT_MOST = 3_600_000

export class SharedVerdicts {
  readonly #records: SharedStore
  readonly #options: ServerOptions
  readonly #name: string

  constructor(records: SharedStore, options: ServerOptions) {
    this.#records = records
    this.#options = options
    this.#name = `${options.name} ${options.transport.target}`
  }

  /** Returns the verdict of another replica; undefined if there is none or the store fails. */
  async recall(): Promise<Verdict | undefined> {
    const { transport, fallback } = this.#options
    const text = await this.#records.recall('verdict', this.#name).catch(() => undefined)
    if (text === undefined) return undefined
    const { lifetime, kind, ...verdict } = JSON.parse(text) as Omit<Verdict, 'transport' | 'lifetime'> & {
      era: Era
      kind: Transport['kind']
      lifetime: number | null
    }
    const reached = [transport, fallback].find((one) => one?.kind === kind)
    if (!reached) return undefined
    // The record holds the wall-clock time, because monotonic clocks of two processes cannot be compared.
    const since = performance.now() - Math.max(0, Date.now() - verdict.since)
    // JSON has null for an infinite lifetime.
    return { ...verdict, since, transport: reached, lifetime: lifetime ?? Number.POSITIVE_INFINITY }
  }

  remember({ transport: { kind }, ...verdict }: Verdict): void {
    const age = performance.now() - verdict.since
    const left = verdict.lifetime - age
    const text = JSON.stringify({ ...verdict, since: Date.now() - age, kind })
    this.#records.remember('verdict', this.#name, text, Math.min(left, AT_MOST)).catch(() => {})
  }

  forget(): void {
    this.#records.forget('verdict', this.#name)
  }
}
