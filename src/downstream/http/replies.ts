/** How answers go out over HTTP. */
import { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Fault } from '../../protocol/fault.js'
import { type Memory, SMALL } from '../../protocol/memory.js'
import { error as errorMessage, type Id } from '../../rpc/message.js'
import { lengthOf, type Piece, type Wire } from '../../rpc/source.js'

const JSON_TYPE = 'application/json; charset=utf-8'

/** Sends a JSON text. One in several pieces is large: it goes out piece by piece rather than being put together first. */
export function sendJson(reply: FastifyReply, text: Wire): void {
  reply.header('content-type', JSON_TYPE)
  if (typeof text === 'string') {
    reply.send(text)
    return
  }
  const length = text.reduce((sum, part) => sum + Buffer.byteLength(part), 0)
  reply.header('content-length', length).send(allAtOnce(text))
}

/** Borrows for an answer until it has been written. Gives whether there is memory for it. */
export function lendAnswer(reply: FastifyReply, memory: Memory, principal: string, text: Wire): boolean {
  const bytes = lengthOf(text)
  if (bytes <= SMALL) return true
  const loan = memory.borrow(principal)
  if (loan.hold(bytes)) return false
  whenOver(reply, () => loan.end())
  return true
}

/** Gives all pieces in one turn, so that they are written together. */
function allAtOnce(text: readonly Piece[]): Readable {
  return new Readable({
    read() {
      for (const part of text) this.push(part)
      this.push(null)
    },
  })
}

/** Sends a stream of events, which nothing on the way may hold back. */
export function sendEvents(reply: FastifyReply, events: Readable): void {
  reply
    .header('content-type', 'text/event-stream')
    .header('cache-control', 'no-store')
    .header('x-accel-buffering', 'no')
    .send(events)
}

/** Calls back when a reply is over: sent whole, or left by its client. At once where it is over already. */
export function whenOver({ raw }: FastifyReply, then: () => void): void {
  if (raw.destroyed) then()
  else raw.once('close', then)
}

/** How faults are told to clients. */
export interface ErrorRendering {
  id?: Id | undefined
  /** In place of the status that the fault has by itself. */
  status?: number | undefined
  draftErrorCodes?: boolean
  /**
   * The client's own credentials are sent on, so that it is the client whom a server's refusal of them concerns. The
   * address is that of our document about who issues them.
   */
  passthrough?: { metadata(request: FastifyRequest): string } | undefined
}

/** Answers with a fault, on a reply of which nothing has been sent. */
export function refuse(
  reply: FastifyReply,
  fault: Fault,
  { id, status, draftErrorCodes = false, passthrough }: ErrorRendering = {},
): void {
  reply.code(status ?? statusOf(reply, fault, passthrough)).type(JSON_TYPE)
  explain(reply, fault)
  reply.send(errorMessage(id, fault.toRpcError(draftErrorCodes)))
}

/** The status that a fault has, which is the server's own where it has refused what was the client's. */
export function statusOf(reply: FastifyReply, fault: Fault, passthrough: ErrorRendering['passthrough']): number {
  if (!fault.refused || !passthrough) return fault.status
  const { status, challenge } = fault.refused
  if (challenge !== undefined || status === 401)
    reply.header('www-authenticate', ourChallenge(challenge ?? 'Bearer', passthrough.metadata(reply.request)))
  return status
}

/**
 * Explains a fault that is told in-band. Whoever can bring other credentials has to be told by status as well; to
 * everybody else a status would say less.
 */
export function explainInBand(reply: FastifyReply, fault: Fault, passthrough: ErrorRendering['passthrough']): void {
  explain(reply, fault)
  if (fault.refused && passthrough) reply.code(statusOf(reply, fault, passthrough))
}

/** A challenge with our document in place of the server's, whose resource is another address than the client's. */
function ourChallenge(challenge: string, metadata: string): string {
  const ours = `resource_metadata="${metadata}"`
  const theirs = /resource_metadata=(?:"[^"]*"|[^\s,]+)/
  if (theirs.test(challenge)) return challenge.replace(theirs, ours)
  return `${challenge}${challenge.includes(' ') ? ', ' : ' '}${ours}`
}

/** Says in headers what those want to know who do not read bodies: load balancers and logs. */
export function explain(reply: FastifyReply, { row, retryAfter }: Fault): void {
  if (row.reason !== undefined) reply.header('mcp-bridge-error', row.reason)
  if (retryAfter !== undefined) reply.header('retry-after', Math.ceil(retryAfter))
}
