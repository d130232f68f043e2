/** Creates the inspector of a bridge: the only place that knows both. Loaded only if there is one. */
import type { BridgeContext } from '../bridge/context.js'
import type { Settings } from '../config/settings.js'
import { homeFolder } from '../discovery/home.js'
import { Inspector } from '../inspect/inspector.js'
import { socketFolder } from '../inspect/socket.js'

/** `replica` is the id of this replica, if there are several; `mayTry` is whether viewers may call servers. */
export function inspectorOf(
  settings: NonNullable<Settings['inspect']>,
  { env, ...more }: Pick<BridgeContext, 'version' | 'log' | 'env'> & { replica: string | undefined; mayTry: boolean },
): Inspector {
  return new Inspector(settings, { ...more, folder: socketFolder(env, homeFolder()) })
}
