/** What workers and the process that has started them tell each other. */
import type { ListenAt } from '../base/net/listen.js'

/** An address that the first process listens at. */
export type Door = 'listen' | 'admin'

/** What a worker is told when it begins. */
export interface Begin {
  /** Counted from 1. A worker that takes the place of another one has its number. */
  number: number
  /** How many there are. */
  count: number
  /** Seals what clients keep, if the configuration has no `stateKeys`. */
  key: string
  /** The socket at which other workers reach this one; undefined if there is no folder for sockets. */
  socket: string | undefined
  /** The bridge has not served before. */
  isFirst: boolean
}

export interface DoorOpening {
  door: Door
  at: ListenAt
  /** Permissions of a unix socket. */
  mode: number
}
