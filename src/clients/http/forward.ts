/** Forwards a request to the replica that owns its session or call. */

import { Readable } from 'node:stream'
import type { FastifyReply } from 'fastify'
import { withoutCredentials } from '../../base/credentials/credentials.js'
import { Fault } from '../../base/fault/fault.js'
import { error as errorMessage, type Id, result } from '../../base/rpc/message.js'
import { encodeEvent } from '../../base/rpc/sse.js'
import { ANOTHER, type ForwardedAnswer, OwnedByReplica } from '../../mcp/ports/replicas.js'
import { idIn } from '../../mcp/protocol/classify.js'
import { methodTraits } from '../../mcp/protocol/methods.js'
import { type Logger, tell } from '../logger.js'
import { type ErrorRendering, leaving, refuse } from './replies.js'
import type { ServedOptions } from './served.js'

interface ForwardOptions extends Pick<ServedOptions, 'replicas' | 'forwarded' | 'log'> {
  refusing?: ErrorRendering
  /** Answers the request instead if the owner does not have the session, or is gone. Rejects with a Fault. */
  instead?: ((owner: string) => Promise<void>) | undefined
}

/** Answers the request through the owner if the error is an OwnedByReplica. Rethrows any other error. */
export async function forward(error: unknown, reply: FastifyReply, options: ForwardOptions): Promise<void> {
  const { replicas, instead, log, refusing = {} } = options
  if (!(error instanceof OwnedByReplica) || !replicas) throw error
  const { request } = reply
  const { method, url: path, raw } = request
  const { owner } = error
  if (instead && (owner === ANOTHER || replicas.isForwarded(raw))) return instead(owner)
  const body = request.body instanceof Uint8Array ? request.body : undefined
  try {
    const forwarded = { method, path, headers: raw.rawHeaders, body, received: raw }
    const answer = await replicas.forward(error, forwarded, leaving(reply))
    if (!instead || answer.status !== 404) return await sendBack(answer, reply, options)
    if (answer.body instanceof Readable) answer.body.on('error', () => {}).destroy()
  } catch (cause) {
    const fault = Fault.from(cause)
    if (fault.fault === 'requestTimeout') return
    if (!instead || fault.fault !== 'sessionNotFound') {
      reportLost(error, fault, log)
      refuse(reply, fault, { ...refusing, id: idIn(body) })
      return
    }
  }
  await instead(owner)
}

/** Counts and logs that the owner did not answer. */
export function reportLost({ owner, what }: OwnedByReplica, { fault, message, cause }: Fault, log: Logger): void {
  tell(log, { kind: 'forwarded', what: fault === 'storeUnavailable' ? 'unavailable' : 'lost' })
  if (fault === 'suspendedCallLost') tell(log, { kind: 'question', what: 'lost' })
  const { code } = (cause ?? {}) as { code?: unknown }
  const fields = { owner, what, fault, code, why: withoutCredentials(message) }
  log.info({ event: 'forward_failed', ...fields }, 'replica that owns the call did not answer')
}

async function sendBack(
  answer: ForwardedAnswer,
  reply: FastifyReply,
  { forwarded: streams, log, refusing = {} }: ForwardOptions,
): Promise<void> {
  const { method, headers, body } = reply.request
  tell(log, { kind: 'forwarded', what: 'answered' })
  reply.code(answer.status)
  reply.headers(answer.headers)
  const { body: answered } = answer
  const isEvents = String(answer.headers['content-type']).startsWith('text/event-stream')
  if (!isEvents || !(answered instanceof Readable)) {
    reply.send(answered)
    return
  }
  const isEndless = method === 'GET' || methodTraits(String(headers['mcp-method'] ?? '')).endless === true
  if (isEndless) streams?.add(answered)
  const id = idIn(body instanceof Uint8Array ? body : undefined)
  const ended = () => isEndless && streams?.ended === true
  reply.send(Readable.from(withFinalEvent(answered, { id, ended, refusing, lost: answer.lost }), { objectMode: false }))
  // The first event may come late, but the client needs the headers now.
  reply.raw.flushHeaders()
}

interface FinalEvent {
  /** The id of the request; undefined for a GET. */
  id: Id | undefined
  /** Whether this replica has ended the stream. */
  ended(): boolean
  lost: ForwardedAnswer['lost']
  refusing: ErrorRendering
}

/**
 * The stream of events of the owner. If it breaks off, an error for the request follows; if this replica ends it, the result of
 * a subscription.
 */
async function* withFinalEvent(
  body: Readable,
  { id, ended, lost, refusing: { draftErrorCodes } }: FinalEvent,
): AsyncGenerator<Uint8Array, void> {
  try {
    yield* body as AsyncIterable<Uint8Array>
  } catch (error) {
    if (id === undefined && !ended()) throw error
    if (id === undefined) return
    const message = ended() ? completed(id) : errorMessage(id, lost().toRpcError(draftErrorCodes))
    const event = encodeEvent(message)
    yield Buffer.from(typeof event === 'string' ? event : event.join(''))
  }
}

/** The result that ends a subscription. */
function completed(id: Id): string {
  return result(id, '{"resultType":"complete"}')
}
