/** All that a run has measured, as it is kept in `bench.json`. */

import type { Fresh } from './fresh.js'
import type { Verdict } from './goals.js'
import type { Idle } from './idle.js'
import type { Block, Pace } from './measure.js'
import type { Profile } from './profile.js'
import type { Published } from './published.js'
import type { Replicas } from './replicas.js'

/** How a run was made. */
export interface About {
  commit: string
  /** As in ISO 8601, to the minute, in UTC. */
  date: string
  node: string
  processor: string
  cores: number
  /** Load average over a minute before the run. */
  load: number
  /** Whether proxies had a core to themselves. */
  pinned: boolean
  /** Arguments of the run. */
  options: string
  pace: Pace
}

export interface Results {
  about: About
  /** The commit that was measured beside this one. */
  against?: string
  blocks: Block[]
  fresh: Fresh[]
  idle: Idle[]
  replicas?: Replicas
  published?: Published
  goals: Verdict[]
  profiles: Profile[]
}
