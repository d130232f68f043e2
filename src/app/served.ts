/** What the bridge serves to clients under a name: a server (`Mount`), or a group of servers (`GroupMount`). */
import type { Gauge } from '../mcp/ports/events.js'
import type { ClientSide } from './client-side.js'

export interface Served {
  readonly name: string
  /** The numbers of calls in progress and of parked calls. */
  readonly busy: { calls: number; parked: number }
  /** The usage of its own bounds. */
  readonly gauges: Gauge[]
  /** What serves its clients. */
  readonly clients: ClientSide
  /** Lets calls in progress end. Admits only requests that continue them. */
  drain(): void
  /** After `drain`: hands the sessions of clients over to other replicas, if these can continue them. */
  leave(): Promise<void>
  /** Ends the calls in progress with an error. */
  cut(): void
  /** Ends everything, the server last. With `hurry`, without waiting. */
  close(hurry: boolean): Promise<void>
}
