/** Sends answers over HTTP: JSON, event streams, and errors, with their headers, status, challenges and `Retry-After`. */
import type { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Fault } from '../../base/fault/fault.js'
import { type Memory, SMALL } from '../../base/limits/memory.js'
import { error as errorMessage, type Id } from '../../base/rpc/message.js'
import { lengthOf, type Wire } from '../../base/rpc/source.js'
import { EVENT_HEADERS } from '../../base/rpc/sse.js'
import { HangUp } from '../../base/time/hang-up.js'
import { atTurnEnd, corkUntilTurnEnd } from '../../base/time/turn.js'
import type { LastFrame } from '../frames.js'
import { carryBack } from './carried-back.js'

export const JSON_TYPE = 'application/json; charset=utf-8'

/**
 * Sends an answer as JSON, and with the headers of the server's answer that go on. Sets the status of a fault: in a session
 * (`inBand`) only if the client's own credential was refused, because a client gets another one after a 401 or 403, or if its
 * session is lost, because it opens another one after a 404. Without memory for the answer, sends what `lost` returns. The pieces
 * of a large one are written together, without being joined first.
 */
export function sendAnswer(
  reply: FastifyReply,
  { text, last }: LastFrame,
  { memory, refusing: { passthrough } }: { memory: Memory; refusing: Pick<ErrorRendering, 'passthrough'> },
  lost: () => Wire,
  inBand = false,
): void {
  const { fault, headers } = last
  if (fault) {
    explain(reply, fault)
    const isOfSession = fault.fault === 'insufficientScope' || fault.fault === 'sessionNotFound'
    if (!inBand || isOfSession || (fault.refused && passthrough)) last.status = statusOf(reply, fault, passthrough)
  }
  const bytes = lengthOf(text)
  let sent = text
  if (bytes > SMALL) {
    const reservation = memory.reserve(reply.request.principal)
    if (reservation.resize(bytes)) sent = lost()
    whenOver(reply, () => reservation.end())
  }
  reply.code(last.status)
  if (headers) carryBack(reply, headers)
  reply.header('content-type', JSON_TYPE)
  const pieces = typeof sent === 'string' ? undefined : sent
  const length = pieces?.reduce((sum, part) => sum + Buffer.byteLength(part), 0) ?? Buffer.byteLength(sent as string)
  reply.header('content-length', length)
  const response = takeResponse(reply)
  if (!pieces) return atTurnEnd(() => response.end(sent))
  for (const part of pieces) response.write(part)
  response.end()
}

/** Most bytes of a write that waits for the end of the turn. A larger write costs more than waking its reader. */
const SMALL_WRITE = 16 * 1024
const EVENTS = { 'content-type': 'text/event-stream', ...EVENT_HEADERS } as const

/**
 * Sends an event stream as fast as the client reads, its headers with the first bytes. A stream may stay open for days, so it
 * bypasses Fastify, which would keep the request, the reply and listeners in memory.
 */
export function sendEvents(reply: FastifyReply, events: Readable): void {
  for (const name in EVENTS) reply.header(name, EVENTS[name as keyof typeof EVENTS])
  const response = takeResponse(reply)
  let isWhole = false
  events.once('end', () => {
    isWhole = true
    atTurnEnd(() => response.end())
  })
  events.once('close', () => isWhole || response.writableEnded || response.destroy())
  events.on('error', () => {})
  events.on('data', (chunk: Buffer) => {
    if (response.socket && chunk.length <= SMALL_WRITE) corkUntilTurnEnd(response.socket)
    if (!response.write(chunk)) events.pause()
  })
  response.on('drain', () => events.resume())
  whenOver({ raw: response }, () => events.destroy())
}

/** Takes the response from Fastify, which forgets it, with its status and headers set. */
function takeResponse(reply: FastifyReply): FastifyReply['raw'] {
  reply.hijack()
  return reply.raw.writeHead(reply.statusCode, reply.getHeaders() as Record<string, string>)
}

/**
 * Calls `then` when a reply is over: sent completely, or the client has disconnected. At once if it is over already.
 */
export function whenOver({ raw }: Pick<FastifyReply, 'raw'>, then: () => void): void {
  if (raw.destroyed) then()
  else raw.on('close', then)
}

/** Aborts when the client disconnects before the reply is complete. */
export function leaving(reply: Pick<FastifyReply, 'raw'>): HangUp {
  const left = new HangUp()
  // The request emits 'close' as soon as its body has been read, so the event is taken from the response.
  whenOver(reply, () => reply.raw.writableFinished || left.abort())
  return left
}

/** How faults are sent to clients. */
export interface ErrorRendering {
  id?: Id | undefined
  /** The ids of a batch: each of its requests gets the error. */
  ids?: readonly Id[] | undefined
  /** The HTTP status to use instead of the fault's own. */
  status?: number | undefined
  draftErrorCodes?: boolean
  /**
   * Set if clients' credentials are passed through: then a server's refusal of a credential is passed on too.
   * `metadata` is the address of the bridge's document about the authorization server (RFC 9728).
   */
  passthrough?: { metadata(request: FastifyRequest): string } | undefined
}

/** Sends a fault as a JSON-RPC error, with its status. Nothing of the reply may have been sent. Returns the error. */
export function refuse(
  reply: FastifyReply,
  fault: Fault,
  { id, ids = [], status, draftErrorCodes = false, passthrough }: ErrorRendering = {},
): string {
  const error = fault.toRpcError(draftErrorCodes)
  const text = ids.length === 0 ? errorMessage(id, error) : `[${ids.map((one) => errorMessage(one, error)).join(',')}]`
  reply.code(status ?? statusOf(reply, fault, passthrough)).type(JSON_TYPE)
  explain(reply, fault)
  reply.send(text)
  return text
}

/** Refuses a method: throws a Fault. `allow` lists the methods that are allowed. */
export function notAllowed(reply: FastifyReply, allow: string): never {
  reply.header('allow', allow)
  throw new Fault('methodNotAllowed', 'Method not allowed: send messages with POST')
}

/**
 * The HTTP status of a fault. Sets a challenge if the client can get another token. If the server refused the client's own
 * credential, uses the server's status and challenge.
 */
function statusOf(reply: FastifyReply, fault: Fault, passthrough: ErrorRendering['passthrough']): number {
  if (fault.fault === 'insufficientScope') {
    const { grant, challengeFor } = reply.request
    const challenge = grant && challengeFor?.(fault, grant)
    if (challenge !== undefined) reply.header('www-authenticate', challenge)
  }
  if (!fault.refused || !passthrough) return fault.status
  const { status, challenge } = fault.refused
  if (challenge !== undefined || status === 401)
    reply.header('www-authenticate', ourChallenge(challenge ?? 'Bearer', passthrough.metadata(reply.request)))
  return status
}

/**
 * The server's challenge with the address of the bridge's metadata document, because the server's own document names an
 * address that the client does not use.
 */
function ourChallenge(challenge: string, metadata: string): string {
  const ours = `resource_metadata="${metadata}"`
  const theirs = /resource_metadata=(?:"[^"]*"|[^\s,]+)/
  if (theirs.test(challenge)) return challenge.replace(theirs, ours)
  return `${challenge}${challenge.includes(' ') ? ', ' : ' '}${ours}`
}

/** Sets the headers that describe a fault to proxies and logs, which do not read bodies. */
function explain(reply: FastifyReply, { row, retryAfter }: Fault): void {
  if (row.reason !== undefined) reply.header('mcp-bridge-error', row.reason)
  if (retryAfter !== undefined) reply.header('retry-after', Math.ceil(retryAfter))
}
