/** What the bridge serves to clients under a name: a server (`Mount`), or a group of servers (`GroupMount`). */
import type { PipePlace } from '../clients/stdio.js'
import type { Gauge } from '../mcp/ports/events.js'
import type { Pipe } from './client-side.js'
import type { HttpMount } from './http-mount.js'

export interface Served {
  readonly name: string
  /** The numbers of calls in progress and of parked calls. */
  readonly busy: { calls: number; parked: number }
  /** The usage of its own bounds. */
  readonly gauges: Gauge[]
  /** The number of sessions of legacy clients over HTTP. */
  readonly sessions: number
  /** The HTTP side. It is loaded and created on first use. */
  http(): Promise<HttpMount>
  /** What a client on stdio is served, which was served something else before. */
  readonly place: PipePlace
  /** Serves a client on stdio until the input ends or the output is closed. */
  pipe(streams: Pipe): Promise<void>
  /** Lets calls in progress end. Admits only requests that continue them. */
  drain(): void
  /** After `drain`: hands the sessions of clients over to other replicas, if these can continue them. */
  leave(): Promise<void>
  /** Ends the calls in progress with an error. */
  cut(): void
  /** The number of requests of legacy clients over HTTP whose answers are not sent yet. */
  readonly unanswered: number
  /** Ends everything, the server last. With `hurry`, without waiting. */
  close(hurry: boolean): Promise<void>
}
