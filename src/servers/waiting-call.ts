/** Reduces a call that waits for long to the parts that are still needed, so that its params can be freed. */

import { MAX_NAME } from '../base/limits/constants.js'
import { detach } from '../base/rpc/source.js'
import { EMPTY, parseObject, raw } from '../base/rpc/splice.js'
import { type Call, ignoreNotifications } from '../mcp/protocol/call.js'
import { methodTraits } from '../mcp/protocol/methods.js'

/**
 * The call with params that contain only the name of its tool, prompt or resource. Its texts are copies, so they keep no
 * message in memory.
 */
export function waitingCall(call: Call): Call {
  const { named } = methodTraits(call.method)
  const about = named === undefined ? undefined : raw(call.params, named)
  const short = about !== undefined && about.length <= MAX_NAME
  const { clientInfo, capabilities } = call.caller
  return {
    ...call,
    params: short ? parseObject(detach(`{"${named}":${about}}`)) : EMPTY,
    meta: EMPTY,
    answers: undefined,
    received: undefined,
    caller: { ...call.caller, clientInfo: detach(clientInfo), capabilities: detach(capabilities) },
    // The original `notify` refers to the client's request, which has ended.
    notify: ignoreNotifications,
  }
}

/** The size of a waiting call in characters. */
export function weightOfWaiting({ caller: { clientInfo = '', capabilities } }: Call): number {
  return clientInfo.length + capabilities.length + MAX_NAME
}
