/** Reads the notification by which a client or a server cancels a request. */
import { type Id, type Params, readId } from '../../base/rpc/message.js'
import { raw } from '../../base/rpc/splice.js'

/** The id of the request that `notifications/cancelled` names. */
export function cancelledId(params: Params): Id | undefined {
  const text = typeof params === 'string' ? undefined : raw(params, 'requestId')
  return text === undefined ? undefined : readId(text)
}
