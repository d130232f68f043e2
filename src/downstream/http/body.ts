/**
 * Reads the bodies of requests: each into one buffer that grows as bytes arrive. Large ones borrow from the memory
 * ledger.
 */
import type { Readable } from 'node:stream'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { Fault } from '../../protocol/fault.js'
import { type Loan, type Memory, SMALL } from '../../protocol/memory.js'
import { whenOver } from './replies.js'

declare module 'fastify' {
  interface FastifyRequest {
    /** The loan of a large body. It ends when the answer is complete, unless `takeOver` was called. */
    loan: Loan | undefined
  }
}

type Done = (error: Error | null, body?: Buffer) => void

/** A message is in memory twice while it is answered: as received, and as sent to the server. */
const COPIES = 2
/**
 * Most pieces of a body: a fixed number, and one more for each so many bytes. Each piece costs the HTTP parser two
 * microseconds. That is nothing for pieces of usual size, but seconds for 4 MB in chunks of one byte.
 */
const PIECES = { free: 8_192, bytes: 256 }

/** Milliseconds in which a client can read the refusal before the connection is closed on its unread body. */
const LAST_WORDS = 200

/** Makes a Fastify instance read all bodies in this way. An invalid body becomes a Fault. */
export function readBodies(app: FastifyInstance, memory: Memory): void {
  app.removeAllContentTypeParsers()
  app.decorateRequest('loan', undefined)
  app.addContentTypeParser(['application/json', '*'], (request, payload, done: Done) => {
    read(request, payload, memory, done)
  })
}

/** Ends the loan of a request when its reply is over, at the latest. */
export function lendUntilClosed(request: FastifyRequest, reply: FastifyReply): void {
  if (request.loan) whenOver(reply, () => request.loan?.end())
}

/** Takes the loan of a request. The caller ends it, and may keep the message longer than the answer takes. */
export function takeOver(request: FastifyRequest): Loan | undefined {
  const { loan } = request
  request.loan = undefined
  return loan
}

/** Drops the body of a request that is no longer needed, while the answer goes on. */
export function forget(request: FastifyRequest): void {
  request.body = undefined
  takeOver(request)?.end()
}

function read(request: FastifyRequest, payload: Readable, memory: Memory, done: Done): void {
  const { bodyLimit: limit } = request.routeOptions
  const { principal } = request
  const declared = Number(request.headers['content-length'] ?? Number.NaN)
  let buffer = Buffer.alloc(0)
  let length = 0
  let pieces = 0

  const broken = (cause: Error) =>
    fail(new Fault('invalidRequest', 'The connection was lost before the body was complete', { cause }))
  const leave = () => payload.off('data', take).off('end', end).off('error', broken)
  const fail = (error: Fault) => {
    leave()
    takeOver(request)?.end()
    done(error)
  }
  /** Doubles the buffer and the loan as bytes arrive, so that a declared length alone costs nothing. */
  const grow = (needed: number) => {
    const most = declared > 0 ? declared : limit
    const size = Math.max(needed, Math.min(declared <= SMALL ? declared : 2 * buffer.length, most))
    if (size > SMALL) {
      request.loan ??= memory.borrow(principal)
      request.loan.demand(size * COPIES)
    }
    const grown = Buffer.allocUnsafe(size)
    buffer.copy(grown, 0, 0, length)
    buffer = grown
  }
  const take = (chunk: Buffer) => {
    const needed = length + chunk.length
    try {
      if (needed > limit) throw tooLarge(limit)
      if (++pieces > PIECES.free + needed / PIECES.bytes) {
        // Reading the rest would cost the time that the limit saves.
        payload.pause()
        setTimeout(() => payload.destroy(), LAST_WORDS).unref()
        throw tooManyPieces()
      }
      if (needed > buffer.length) grow(needed)
    } catch (error) {
      return fail(Fault.from(error))
    }
    chunk.copy(buffer, length)
    length = needed
  }
  const end = () => {
    leave()
    done(null, buffer.subarray(0, length))
  }

  if (declared > limit) return fail(tooLarge(limit))
  if (declared > SMALL) {
    try {
      memory.check(principal, declared * COPIES)
    } catch (error) {
      return fail(Fault.from(error))
    }
  }
  payload.on('data', take).on('end', end).on('error', broken)
}

/** The Fault for a body over the limit, in bytes. */
export function tooLarge(limit: number): Fault {
  return new Fault('bodyTooLarge', `The body is over ${limit} bytes (limits.bodyBytes)`)
}

function tooManyPieces(): Fault {
  return new Fault('invalidRequest', 'The body arrives in too many small pieces: send it in larger chunks')
}
