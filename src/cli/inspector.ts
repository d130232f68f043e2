/** Creates the inspector of a bridge: the only place that knows both. Loaded only if there is one. */
import type { BridgeContext } from '../bridge/context.js'
import type { Settings } from '../config/settings.js'
import { homeFolder } from '../discovery/home.js'
import { Inspector } from '../inspect/inspector.js'
import { socketFolder } from '../inspect/socket.js'

/** `replica` is the id of this replica, if there are several. */
export function inspectorOf(
  settings: NonNullable<Settings['inspect']>,
  { env, version, log, replica }: Pick<BridgeContext, 'version' | 'log' | 'env'> & { replica: string | undefined },
): Inspector {
  return new Inspector(settings, { version, log, replica, folder: socketFolder(env, homeFolder()) })
}
