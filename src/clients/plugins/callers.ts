/** Who a request is from, as authentication has found out, and how tokens are checked. */

import type { Signal } from '../../base/time/hang-up.js'
import type { CallersHeaders, Grant } from '../../mcp/protocol/call.js'

/** Who a request is from. */
export interface AuthenticatedCaller {
  principal: string
  credential?: CallersHeaders
  grant?: Grant
  ends?: Signal | undefined
}

/** A token that is not accepted. */
export interface WrongToken {
  why: string
}

/**
 * Checks a token, from a client at this address, for an endpoint with these addresses; with the name of the header that it came
 * in, if that is not Authorization. Says why if it is none that is accepted there: the operator is told, and the caller is not.
 * Throws or rejects with a Fault if that cannot be found out.
 */
export type Verify = (
  token: string,
  addresses: ReadonlySet<string>,
  from: string,
  header?: string,
) => AuthenticatedCaller | WrongToken | Promise<AuthenticatedCaller | WrongToken>
