/** What the parts of a group have in common: what the group is now, whom they ask, and what is remembered of lists. */

import type { SealKey } from '../../base/crypto/seal.js'
import type { Memory } from '../../base/limits/memory.js'
import type { Json } from '../../base/rpc/splice.js'
import type { Asking } from './asking.js'
import type { KeptLists } from './kept-lists.js'
import type { ListLog } from './list-log.js'
import type { Listings } from './listings.js'
import type { GroupPlan, Member } from './member.js'
import type { Replace } from './places.js'
import type { Sleepers } from './sleepers.js'

export interface Inside {
  readonly name: string
  /** The first key seals cursors and states for clients; all keys open them. */
  readonly keys: readonly SealKey[]
  readonly memory: Memory
  readonly log: ListLog
  readonly asking: Asking
  readonly listings: Listings
  /** Keeps lists beyond a restart; undefined if nothing does. */
  readonly kept: KeptLists | undefined
  readonly sleepers: Sleepers
  plan(): GroupPlan
  /** The group's own Implementation, as JSON. */
  identity(): Json
  /** Maps the names and URIs of a server to those of the group. */
  replaceFor(member: Member): Replace
}
