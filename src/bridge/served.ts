/** What the bridge serves to clients under a name: a server (`Mount`), or a group of servers (`GroupMount`). */
import type { Gauge } from '../ports/events.js'
import type { Pipe } from './client-side.js'
import type { HttpMount } from './http-mount.js'

export interface Served {
  readonly name: string
  /** A text of everything that it depends on. If it is unchanged by a reload, it stays. */
  readonly plan: string
  /** Number of calls in progress, and of parked calls. */
  readonly busy: { calls: number; parked: number }
  /** The usage of its own bounds. */
  readonly gauges: Gauge[]
  /** The HTTP side. It is loaded and created on first use. */
  http(): Promise<HttpMount>
  /** Serves a client on stdio until the input ends or the output is closed. */
  pipe(streams: Pipe): Promise<void>
  /** Lets calls in progress end. Admits nothing new except what continues them. */
  drain(): void
  /** After `drain`: leaves the sessions of clients to other replicas, as far as these can continue them. */
  leave(): Promise<void>
  /** Ends the calls in progress with an error. */
  cut(): void
  /** Ends everything, the server last. With `hurry`, at once. */
  close(hurry: boolean): Promise<void>
}
