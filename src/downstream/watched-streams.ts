/** Tells the inspector the event streams in the sessions of clients. */
import { idValue } from '../rpc/message.js'
import type { ConnectionChange, EventStream } from './http/streams.js'
import type { Telemetry } from './logger.js'

/** Tells the inspector when a stream of this session is connected or is not any more. */
export function tellStreams({ server, watch }: Telemetry, session: string | undefined) {
  return ({ id: stream, request }: EventStream, what: ConnectionChange): void => {
    const isAnswer = request !== undefined
    // The answer was sent as a whole: its call has ended, too.
    if (isAnswer && what === 'ended') return
    const about = { server, session, stream, id: isAnswer ? idValue(request) : undefined }
    watch?.witness({ kind: 'stream', what, ...about })
  }
}
