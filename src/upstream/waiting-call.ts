/** Reduces a call that waits for long to what is still needed: its request has been sent, so its params can go. */

import { MAX_NAME } from '../limits/constants.js'
import { type Call, unheard } from '../protocol/call.js'
import { methodTraits } from '../protocol/methods.js'
import { own } from '../rpc/own.js'
import { EMPTY, parseObject, raw } from '../rpc/splice.js'

/**
 * Returns the call with only the name of what it is about as params. Its texts are copies, so they keep no message in
 * memory.
 */
export function waitingCall(call: Call): Call {
  const { named } = methodTraits(call.method)
  const about = named === undefined ? undefined : raw(call.params, named)
  const short = about !== undefined && about.length <= MAX_NAME
  const { revision, clientInfo, capabilities, logLevel } = call.caller
  return {
    ...call,
    params: short ? parseObject(own(`{"${named}":${about}}`)) : EMPTY,
    meta: EMPTY,
    answers: undefined,
    caller: { revision, clientInfo: own(clientInfo), capabilities: own(capabilities), logLevel },
    // Its own one refers to the client's request, which is over.
    tell: unheard,
  }
}

/** The size of a waiting call in characters. */
export function weightOfWaiting({ caller: { clientInfo = '', capabilities } }: Call): number {
  return clientInfo.length + capabilities.length + MAX_NAME
}
