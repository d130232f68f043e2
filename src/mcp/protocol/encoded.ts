/** An encoded message with its origin. */
import type { RpcError } from '../../base/rpc/message.js'
import type { JsonSource, Wire } from '../../base/rpc/source.js'
import type { Payload } from '../../base/rpc/splice.js'

/**
 * The origin of a message: edited params or an edited result, an error, or the text of a received message that only got
 * another id. `rebuilt`: the bridge wrote the content of a received message in another form.
 */
export type MessageOrigin = Payload | RpcError | JsonSource | 'rebuilt'

export interface Encoded {
  text: Wire
  origin: MessageOrigin
}
