/** A server as a member of a group. */
import type { Upstream } from '../protocol/call.js'
import type { Prefixed } from './names.js'

export interface Member extends Prefixed {
  /** The name of the server. */
  readonly server: string
  readonly upstream: Upstream
  /** Whether it is active: a discovered server is not, until it is trusted. */
  takesPart(): boolean
}

/** The definition of a group. It may change while the group is served. */
export interface GroupPlan {
  /** In the order of lists. */
  members: readonly Member[]
  /** The name and title of its Implementation. */
  name: string
  title: string
  /** Replaces the instructions of the servers. */
  instructions: string | undefined
  /** Longest instructions, in bytes. */
  instructionBytes: number
  /** Tools and prompts have the names that their servers give them; resources have their URIs. */
  bareNames: boolean
  bareUris: boolean
  /** Milliseconds for which a list waits for a server. */
  wait: number
  /** Servers without which a list is an error. */
  required: ReadonlySet<string>
  /** Tools are searched instead of listed. */
  search: SearchPlan | undefined
}

export interface SearchPlan {
  /** Globs of the tools that are listed anyway, by their names in the group. */
  always: readonly string[]
  /** The default number of results. */
  limit: number
}
