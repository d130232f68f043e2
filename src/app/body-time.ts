/**
 * Bounds the time for the body of a request that another server of the process has received, such as that of an application.
 * For the listener of the bridge, Node.js does that.
 */
import type { preParsingHookHandler } from 'fastify'
import { Fault } from '../base/fault/fault.js'
import { Deadline } from '../base/time/time.js'

/** Milliseconds for the whole request, as at the listener. */
const BODY_TIME = 60_000

/** Refuses the request if its body is not complete in time. */
export const limitBodyTime: preParsingHookHandler = (request, reply, payload, done) => {
  const { 'content-length': length = '0', 'transfer-encoding': coding } = request.headers
  if (coding !== undefined || Number(length) > 0) {
    const late = new Deadline(BODY_TIME, () => {
      if (!reply.sent)
        reply.send(new Fault('requestTimeout', `Request timeout: ${BODY_TIME / 1000} s for the whole request`))
    }).unref()
    const over = () => late.clear()
    payload.once('end', over).once('error', over).once('close', over)
    reply.raw.once('close', over)
  }
  done(null, payload)
}
