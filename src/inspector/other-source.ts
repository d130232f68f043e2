/** Events from elsewhere: other bridges, or a file. */

import type { KeptText } from './recorder/events.js'
import type { Ring } from './ring.js'
import type { CallView } from './views.js'

/** Which texts are kept, and the switch for it. */
export type TextSwitch = Pick<Ring, 'kept' | 'hasTexts' | 'keepAll'>

/** A source of events other than the bridge in this process. */
export interface OtherSource {
  /** The text of an event, without secrets. */
  textOf(number: number): KeptText | undefined
  /** Further texts of a call, by the numbers of its events. */
  textsOf?(call: CallView): Promise<ReadonlyMap<number, KeptText>>
  /** Which texts are kept. */
  texts?: TextSwitch
  /** Called before the servers are listed. */
  refresh?(): Promise<void>
  /** The name of the file that the events are from: then they come with their texts, and nothing is added. */
  file?: string
}
