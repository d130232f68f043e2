/** An encoded message, and what it was made of. */
import type { RpcError } from '../rpc/message.js'
import type { JsonSource, Wire } from '../rpc/source.js'
import type { Payload } from '../rpc/splice.js'

/**
 * What a message was made of: the edited params or result, an error, or the text of a received message that was not
 * edited. The id of a request or an answer is another one in any case. `rebuilt`: it passes on what a message says, in
 * another form.
 */
export type MessageOrigin = Payload | RpcError | JsonSource | 'rebuilt'

export interface Encoded {
  text: Wire
  origin: MessageOrigin
}
