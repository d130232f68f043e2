/** Reads the bodies of requests: each into one buffer that grows as the body comes, lent by the ledger where it is large. */
import type { Readable } from 'node:stream'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { Fault } from '../../protocol/fault.js'
import { type Loan, type Memory, SMALL } from '../../protocol/memory.js'
import { whenOver } from './replies.js'

declare module 'fastify' {
  interface FastifyRequest {
    /** What a large body has borrowed. It is held until the answer is complete, unless somebody takes it over. */
    loan: Loan | undefined
  }
}

type Done = (error: Error | null, body?: Buffer) => void

/** A message is in memory twice while it is answered: as it came in, and as it goes on to the server. */
const COPIES = 2
/**
 * Pieces in which a body may come, and bytes that pay for a further one. Each piece costs the HTTP parser two microseconds,
 * which is nothing for pieces as the network makes them, and seconds for 4 MB in chunks of one byte.
 */
const PIECES = { free: 8_192, bytes: 256 }

/** Milliseconds in which a client whose request is not read to its end can read why. */
const LAST_WORDS = 200

/** Has all bodies of a Fastify instance read in this way. What is wrong with one is thrown as a Fault. */
export function readBodies(app: FastifyInstance, memory: Memory): void {
  app.removeAllContentTypeParsers()
  app.decorateRequest('loan', undefined)
  app.addContentTypeParser(['application/json', '*'], (request, payload, done: Done) => {
    read(request, payload, memory, done)
  })
}

/** Sees to it that what a request has borrowed is given back when its connection is done with it, at the latest. */
export function lendUntilClosed(request: FastifyRequest, reply: FastifyReply): void {
  if (request.loan) whenOver(reply, () => request.loan?.end())
}

/** The loan of a request, for somebody who needs the message longer than until the answer is complete. */
export function takeOver(request: FastifyRequest): Loan | undefined {
  const { loan } = request
  request.loan = undefined
  return loan
}

/** Nobody needs the body of a request any more, though its answer goes on. */
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
  /** A length that is only declared costs nothing: what is lent and allocated doubles as bytes come. */
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
        // To read the rest, only to drop it, would cost what is to be saved.
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

/** What a body of more bytes than a request may have is refused with. */
export function tooLarge(limit: number): Fault {
  return new Fault('bodyTooLarge', `The body is over ${limit} bytes (limits.bodyBytes)`)
}

function tooManyPieces(): Fault {
  return new Fault('invalidRequest', 'The body comes in too many small pieces: send it in larger chunks')
}
