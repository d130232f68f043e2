/** What the bridge serves to clients under a name: a server (`Mount`), or a group of servers (`GroupMount`). */
import type { Gauge } from '../ports/events.js'
import type { Pipe } from './client-side.js'
import type { HttpMount } from './http-mount.js'

export interface Served {
  readonly name: string
  /** A text of all settings of the mount. If a reload does not change it, the mount stays. */
  readonly plan: string
  /** The numbers of calls in progress and of parked calls. */
  readonly busy: { calls: number; parked: number }
  /** The usage of its own bounds. */
  readonly gauges: Gauge[]
  /** The HTTP side. It is loaded and created on first use. */
  http(): Promise<HttpMount>
  /** Serves a client on stdio until the input ends or the output is closed. */
  pipe(streams: Pipe): Promise<void>
  /** Lets calls in progress end. Admits only requests that continue them. */
  drain(): void
  /** After `drain`: hands the sessions of clients over to other replicas, if these can continue them. */
  leave(): Promise<void>
  /** Ends the calls in progress with an error. */
  cut(): void
  /** Ends everything, the server last. With `hurry`, without waiting. */
  close(hurry: boolean): Promise<void>
}
