/** A server as a member of a group, and the plan of a group. */
import type { Upstream } from '../../mcp/protocol/upstream.js'
import type { Prefixed } from './names.js'

export interface Member extends Prefixed {
  readonly server: string
  readonly upstream: Upstream
  /** What its lists depend on, as a digest; undefined if they are not kept beyond a restart. */
  readonly lists?: string | undefined
  /** It is started when something of it is used: a list has what is known of it, without asking it. */
  readonly sleeps?: boolean | undefined
  /** Milliseconds without use after which it sleeps again; by default never. */
  sleepsAfter?(): number
  /** Whether it is active: a discovered server is inactive until it is trusted. */
  takesPart(): boolean
}

/** The definition of a group. It may change while the bridge serves the group. */
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
  /** Tools and prompts keep their servers' names, and resources their servers' URIs: without a prefix. */
  bareNames: boolean
  bareUris: boolean
  /** Milliseconds for which a list waits for a server: if a list of it is known, and if not. */
  wait: { known: number; first: number }
  /** Servers without whose answer a list fails. */
  required: ReadonlySet<string>
  /** Tools are searched instead of listed. */
  search: SearchPlan | undefined
}

export interface SearchPlan {
  /** Globs of tools that are listed all the same, by their names in the group. */
  always: readonly string[]
  /** The default number of results. */
  limit: number
}

export function activeIn({ members }: GroupPlan): readonly Member[] {
  return members.filter((member) => member.takesPart())
}
