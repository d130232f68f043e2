/** A call whose request nobody needs any more, because the server has it: what is kept of it while it waits for long. */
import type { Call } from '../protocol/call.js'
import { MAX_NAME } from '../protocol/lengths.js'
import { methodTraits } from '../protocol/methods.js'
import { own } from '../rpc/own.js'
import { EMPTY, parseObject, raw } from '../rpc/splice.js'

/** The same call without its params, but for what it is about, and in texts of its own. */
export function rested(call: Call): Call {
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
  }
}

/** Characters that are kept of a rested call. */
export function weightOfRested({ caller: { clientInfo = '', capabilities } }: Call): number {
  return clientInfo.length + capabilities.length + MAX_NAME
}
