/** Forwards a request to the replica that owns its session or call. */

import { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { withoutCredentials } from '../../credentials/credentials.js'
import { Fault } from '../../fault/fault.js'
import { ANOTHER, type ForwardedAnswer, OwnedByReplica, type Replicas } from '../../ports/replicas.js'
import { idIn } from '../../protocol/classify.js'
import { methodTraits } from '../../protocol/methods.js'
import { error as errorMessage, type Id, result } from '../../rpc/message.js'
import { encodeEvent } from '../../rpc/sse.js'
import { type Logger, tell } from '../logger.js'
import type { ForwardedStreams } from './forwarded-streams.js'
import { type ErrorRendering, refuse, whenOver } from './replies.js'

/** Bytes of an answer that is read before it is sent. */
const SMALL = 64 * 1024

/** Options of forwarding. */
export interface ForwardOptions {
  replicas: Replicas | undefined
  /** Where streams without an end of their own are noted. */
  forwarded?: ForwardedStreams | undefined
  log: Logger
  refusing?: ErrorRendering
  /** Answers the request instead if the owner does not have the session, or is gone. Rejects with a Fault. */
  instead?: ((owner: string) => Promise<void>) | undefined
}

/** Answers the request through the owner if the error is an OwnedByReplica. Rethrows any other error. */
export async function forward(
  error: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
  options: ForwardOptions,
): Promise<void> {
  const { replicas, instead, log, refusing = {} } = options
  if (!(error instanceof OwnedByReplica) || !replicas) throw error
  const { method, url: path, raw } = request
  const { owner } = error
  if (instead && (owner === ANOTHER || replicas.isForwarded(raw))) return instead(owner)
  const body = request.body instanceof Uint8Array ? request.body : undefined
  const controller = new AbortController()
  whenOver(reply, () => controller.abort())
  try {
    const forwarded = { method, path, headers: raw.rawHeaders, body, received: raw }
    const answer = await replicas.carry(error, forwarded, controller.signal)
    if (!instead || answer.status !== 404) return await sendBack(answer, request, reply, options)
    answer.body.on('error', () => {}).destroy()
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
export function reportLost({ owner, what }: OwnedByReplica, { fault, message }: Fault, log: Logger): void {
  tell(log, { kind: 'forwarded', what: fault === 'storeUnavailable' ? 'unavailable' : 'lost' })
  if (fault === 'suspendedCallLost') tell(log, { kind: 'question', what: 'lost' })
  const fields = { owner, what, fault, why: withoutCredentials(message) }
  log.info({ event: 'forward_failed', ...fields }, 'replica that owns the call did not answer')
}

async function sendBack(
  answer: ForwardedAnswer,
  { method, headers, body }: FastifyRequest,
  reply: FastifyReply,
  { forwarded: streams, log, refusing = {} }: ForwardOptions,
): Promise<void> {
  tell(log, { kind: 'forwarded', what: 'answered' })
  reply.code(answer.status)
  for (const [name, value] of pairs(answer.headers)) reply.header(name, value)
  const isEvents = String(reply.getHeader('content-type')).startsWith('text/event-stream')
  if (!isEvents) {
    reply.send(isSmall(answer) ? await whole(answer) : answer.body)
    return
  }
  const isEndless = method === 'GET' || methodTraits(String(headers['mcp-method'] ?? '')).endless === true
  if (isEndless) streams?.add(answer.body)
  const id = idIn(body instanceof Uint8Array ? body : undefined)
  const ended = () => isEndless && streams?.ended === true
  reply.send(Readable.from(withFinalEvent(answer, { id, ended, refusing }), { objectMode: false }))
  // The first event may come late, but the client needs the headers now.
  reply.raw.flushHeaders()
}

interface FinalEvent {
  /** The id of the request; undefined for a GET. */
  id: Id | undefined
  /** Whether this replica has ended the stream. */
  ended(): boolean
  refusing: ErrorRendering
}

/**
 * The stream of events of the owner. If it breaks off, an error for the request follows; if this replica ends it, the result of
 * a subscription.
 */
async function* withFinalEvent(
  { body, lost }: ForwardedAnswer,
  { id, ended, refusing: { draftErrorCodes } }: FinalEvent,
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

/** The end of a subscription, as of one that is not forwarded. */
function completed(id: Id): string {
  return result(id, '{"resultType":"complete"}')
}

/** Whether an answer has at most so many bytes that it is cheaper to read it first. */
function isSmall({ headers }: ForwardedAnswer): boolean {
  const at = headers.findIndex((text, at) => at % 2 === 0 && text.toLowerCase() === 'content-length')
  return at >= 0 && Number(headers[at + 1]) <= SMALL
}

async function whole({ body, lost }: ForwardedAnswer): Promise<Buffer> {
  const chunks: Buffer[] = []
  try {
    for await (const chunk of body as AsyncIterable<Buffer>) chunks.push(chunk)
  } catch {
    throw lost()
  }
  return chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks)
}

/** Headers by lower-cased name. A repeated header has all its values. */
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
