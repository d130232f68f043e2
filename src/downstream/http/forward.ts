/** Has another replica answer a request: what it is about lives there. */
import { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { OwnedByReplica, type Replicas } from '../../ports/replicas.js'
import { Fault } from '../../protocol/fault.js'
import { error as errorMessage, type Id } from '../../rpc/message.js'
import { encodeEvent } from '../../rpc/sse.js'
import { type Logger, tell } from '../call-log.js'
import { idIn } from '../read-message.js'
import { type ErrorRendering, refuse, whenOver } from './replies.js'

export interface ForwardOptions {
  replicas: Replicas | undefined
  log: Logger
  refusing?: ErrorRendering
}

/** Answers a request that belongs to another replica. Throws anything else that it is given. */
export async function forward(
  error: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
  { replicas, log, refusing = {} }: ForwardOptions,
): Promise<void> {
  if (!(error instanceof OwnedByReplica) || !replicas) throw error
  const { method, url: path, raw } = request
  const body = request.body instanceof Uint8Array ? request.body : undefined
  const id = idIn(body)
  const controller = new AbortController()
  whenOver(reply, () => controller.abort())
  try {
    const carried = { method, path, headers: raw.rawHeaders, body, connection: raw.socket }
    const answer = await replicas.carry(error, carried, controller.signal)
    tell(log, { kind: 'forwarded', what: 'answered' })
    reply.code(answer.status)
    for (const [name, value] of pairs(answer.headers)) reply.header(name, value)
    const events = String(reply.getHeader('content-type')).startsWith('text/event-stream')
    const whole = events ? told(answer.body, id, refusing) : answer.body
    reply.send(Readable.from(whole, { objectMode: false }))
    // A stream may have nothing to say for long: that it is there, its client has to know at once.
    if (events) reply.raw.flushHeaders()
  } catch (cause) {
    const fault = Fault.from(cause)
    const { owner, what } = error
    if (fault.fault === 'requestTimeout') return
    tell(log, { kind: 'forwarded', what: fault.fault === 'storeUnavailable' ? 'unavailable' : 'lost' })
    if (fault.fault === 'suspendedCallLost') tell(log, { kind: 'question', what: 'lost' })
    const fields = { owner, what, fault: fault.fault, why: fault.message }
    log.info({ event: 'forward_failed', ...fields }, 'replica that owns the call did not answer')
    refuse(reply, fault, { ...refusing, id })
  }
}

/** A stream of events, which ends with an error where the rest of it cannot be had. */
async function* told(body: AsyncIterable<Uint8Array>, id: Id | undefined, { draftErrorCodes }: ErrorRendering) {
  try {
    yield* body
  } catch (error) {
    if (id === undefined) throw error
    const event = encodeEvent(errorMessage(id, Fault.from(error).toRpcError(draftErrorCodes)))
    yield Buffer.from(typeof event === 'string' ? event : event.join(''))
  }
}

/** Headers by their names. One that came more than once has all its values. */
function pairs(headers: readonly string[]): Map<string, string | string[]> {
  const found = new Map<string, string | string[]>()
  for (let at = 0; at + 1 < headers.length; at += 2) {
    const name = (headers[at] as string).toLowerCase()
    const value = headers[at + 1] as string
    const before = found.get(name)
    found.set(name, before === undefined ? value : [before, value].flat())
  }
  return found
}
