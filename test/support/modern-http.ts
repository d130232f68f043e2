/** A scripted modern server over HTTP, inside the test: what arrived can be looked at, and anything answered. */
import type { EventEmitter } from 'node:events'
import type { IncomingHttpHeaders, Server, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'
// @ts-expect-error: plain JavaScript, because servers on stdio run it without any loader
import { createModernHttp } from '../fixtures/modern-http.mjs'
// @ts-expect-error: plain JavaScript, because servers on stdio run it without any loader
import { touch } from '../fixtures/modern-subscriptions.mjs'
import { listenUntilEnd, stopListening } from './listen-until-end.js'
import { type ModernPlan, type Violation, withSchema } from './modern-plan.js'

type Json = Record<string, unknown>

export interface Arrived {
  method: string
  path: string
  headers: IncomingHttpHeaders
  /** Names and values as they came, one after the other. */
  rawHeaders: string[]
  bytes: Buffer
  body: string
  /** What the body says; undefined where it is not JSON. */
  message: Json | undefined
  /** A dual server takes what has no envelope for legacy. */
  era: 'modern' | 'legacy'
}

/** What happens, for `touch`. */
export interface Change {
  tools?: boolean
  prompts?: boolean
  resources?: boolean
  /** Resources that have been updated. */
  uris?: string[]
  /** All subscriptions end, gracefully. */
  end?: boolean
}

export interface HttpPlan extends ModernPlan {
  /** Answers are events or JSON whatever comes; otherwise events where something comes before the answer. */
  answers?: 'sse' | 'json'
  /** Takes a request in place of the script, and then returns true. */
  override?: (arrived: Arrived, response: ServerResponse) => boolean
}

interface Modern {
  gate: EventEmitter
  subscriptions: { size: number }
  executed: number
  forgetLists(): void
}

export class ModernHttp {
  readonly received: Arrived[] = []
  /** Requests whose stream was closed before they were answered, which is how they are cancelled. */
  readonly cancelled: Arrived[] = []
  readonly #violations: Violation[] = []
  readonly #server: Server
  readonly #modern: Modern

  private constructor({ override, ...plan }: HttpPlan) {
    const { server, modern } = createModernHttp(plan, {
      arrived: (arrived: Arrived, response: ServerResponse) => {
        this.received.push(arrived)
        return override?.(arrived, response)
      },
      violated: (violation: Violation) => this.#violations.push(violation),
      closed: (arrived: Arrived) => this.cancelled.push(arrived),
    }) as { server: Server; modern: Modern }
    this.#server = server
    this.#modern = modern
  }

  static async start(t: Test, plan: HttpPlan = {}): Promise<ModernHttp> {
    const modern = new ModernHttp(plan)
    // On a busy machine it would close idle connections on which a request has already come.
    modern.#server.keepAliveTimeout = 0
    await listenUntilEnd(t, modern.#server)
    return modern
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/mcp`
  }

  /** Everything that was not as it has to be, for tests to say that there is nothing. */
  violations(): Violation[] {
    const modern = this.received.filter(({ era }) => era === 'modern')
    return withSchema(
      this.#violations,
      modern.map(({ message }) => message),
    )
  }

  /** Names of the JSON-RPC methods that arrived, in order. */
  get methods(): unknown[] {
    return this.received.filter(({ message }) => message).map(({ message }) => message?.['method'])
  }

  of(method: string): Arrived[] {
    return this.received.filter(({ message }) => message?.['method'] === method)
  }

  /** Subscriptions that are open. */
  get subscriptions(): number {
    return this.#modern.subscriptions.size
  }

  /** How often `act` was executed. */
  get executed(): number {
    return this.#modern.executed
  }

  /** Has something change, as a call of the tool `touch` does. */
  touch(change: Change): void {
    ;(touch as (modern: Modern, change: Change) => void)(this.#modern, change)
  }

  /** Lets the calls of `act`, `wait` and `progress` go on that are held, because their `ms` is 'held'. */
  letGo(): void {
    this.#modern.gate.emit('open')
  }

  /** As if the tools had changed since they were listed. */
  forgetLists(): void {
    this.#modern.forgetLists()
  }

  /** Cuts every connection, as a server that is killed does. */
  cut(): void {
    this.#server.closeAllConnections()
  }

  /** Listens no more. Gives what has it listen again, at the same port. */
  stop(): Promise<() => Promise<void>> {
    return stopListening(this.#server)
  }
}
