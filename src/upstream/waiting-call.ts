/** Reduces a call that waits for long to the parts that are still needed, so that its params can be freed. */

import { MAX_NAME } from '../limits/constants.js'
import { type Call, unheard } from '../protocol/call.js'
import { methodTraits } from '../protocol/methods.js'
import { own } from '../rpc/source.js'
import { EMPTY, parseObject, raw } from '../rpc/splice.js'

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
    params: short ? parseObject(own(`{"${named}":${about}}`)) : EMPTY,
    meta: EMPTY,
    answers: undefined,
    caller: { ...call.caller, clientInfo: own(clientInfo), capabilities: own(capabilities) },
    // The original `tell` refers to the client's request, which has ended.
    tell: unheard,
  }
}

/** The size of a waiting call in characters. */
export function weightOfWaiting({ caller: { clientInfo = '', capabilities } }: Call): number {
  return clientInfo.length + capabilities.length + MAX_NAME
}
