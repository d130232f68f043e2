/** Makes the calls of the bridge itself. */
import { EMPTY } from '../../base/rpc/splice.js'
import { HangUp } from '../../base/time/hang-up.js'
import { type Call, ignoreNotifications, type Sender, unlogged } from './call.js'

/** A call for a sender that nobody else waits for: its notifications are dropped, and it has no line in the log. */
export function bridgeCall(method: string, sender: Sender, hangUp = new HangUp()): Call {
  return {
    ...sender,
    method,
    params: EMPTY,
    meta: EMPTY,
    progress: false,
    notify: ignoreNotifications,
    signal: hangUp,
    abort: (reason) => hangUp.abort(reason),
    log: unlogged,
  }
}
