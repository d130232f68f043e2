/** What a worker asks of the process that has started it, and of the other workers. */
import type { Socket } from 'node:net'
import type { ListenAt } from '../base/net/listen.js'

/** Accepts the connections of clients for this process. */
export interface Entrance {
  /** Begins to accept, also for others. Connections come to `take`. Resolves to the origin. */
  open(at: ListenAt, mode: number, take: (socket: Socket) => void): Promise<string>
  /** No more connections come to this process. */
  close(): void
}

/** What one worker tells of itself. */
export type WorkerFact = 'status' | 'readiness' | 'metrics'

export interface Workers {
  entranceOf(option: 'listen' | 'admin'): Entrance
  /** Sets what this worker tells of itself. */
  tells(telling: Readonly<Record<WorkerFact, () => unknown>>): void
  /** Asks all workers, also this one. Who ends meanwhile is left out. */
  gather<T>(what: WorkerFact): Promise<readonly T[]>
}
