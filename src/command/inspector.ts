/** Creates the inspector of a bridge: the only place that knows both. Loaded only if there is one. */
import type { BridgeContext } from '../app/context.js'
import { homeFolder } from '../base/net/home-folder.js'
import { stateFolder } from '../base/net/state-folder.js'
import type { Settings } from '../config/settings.js'
import { Inspector } from '../inspector/inspector.js'
import type { RecordEvent } from '../inspector/recorder/events.js'

interface InspectorOptions extends Pick<BridgeContext, 'version' | 'log' | 'env'> {
  /** The id of this replica, if there are several. */
  replica: string | undefined
  /** Whether viewers may call servers. */
  mayTry: boolean
  /** A name for the only server, for people who choose among bridges. */
  title: string | undefined
  /** Gets all events, too. */
  also: RecordEvent | undefined
}

export function inspectorOf(settings: NonNullable<Settings['inspect']>, { env, ...more }: InspectorOptions): Inspector {
  return new Inspector(settings, { ...more, folder: stateFolder(env, homeFolder()) })
}
