/** A server as a group has it. */
import type { Upstream } from '../protocol/call.js'
import type { Prefixed } from './names.js'

export interface Member extends Prefixed {
  /** The name of the server. */
  readonly server: string
  readonly upstream: Upstream
  /** Whether it takes part now: a server that was found does not before it is trusted. */
  takesPart(): boolean
}

/** What a group is made of. It may change while the group is served. */
export interface Plan {
  /** In the order in which they are listed. */
  members: readonly Member[]
  /** Its name and title in its Implementation. */
  name: string
  title: string
  /** In place of those of the servers. */
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
  /** Tools are found by words in place of being listed. */
  search: SearchPlan | undefined
}

export interface SearchPlan {
  /** Globs of the tools that are listed all the same, by their names in the group. */
  always: readonly string[]
  /** How many tools are found, if the caller does not say. */
  limit: number
}
