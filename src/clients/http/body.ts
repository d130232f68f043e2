/**
 * Reads the body of a request into one buffer, which grows as bytes arrive. Large bodies reserve memory in the ledger.
 */
import type { Readable } from 'node:stream'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { Fault } from '../../base/fault/fault.js'
import { type Memory, type Reservation, SMALL } from '../../base/limits/memory.js'
import { whenOver } from './replies.js'

declare module 'fastify' {
  interface FastifyRequest {
    /** The reservation of a large body. It ends when the answer is complete, unless `takeOver` was called. */
    reservation: Reservation | undefined
  }
}

type Done = (error: Error | null, body?: Buffer) => void

/** A message is in memory twice while it is answered: as received, and as sent to the server. */
const COPIES = 2
const NOTHING: Buffer = Buffer.alloc(0)
/**
 * Most pieces of a body: a fixed number, and one more for each 256 bytes. Each piece costs the HTTP parser two
 * microseconds: nothing for pieces of usual size, but seconds for 4 MB in chunks of one byte.
 */
const PIECES = { free: 8_192, bytes: 256 }

const READ_BEFORE = 'The application has read the body of the request before the bridge: leave its paths out'

/** Milliseconds in which a client can read the refusal before the connection is closed on its unread body. */
const LAST_WORDS = 200

/** Makes a Fastify instance read all bodies in this way. An invalid body becomes a Fault. */
export function readBodies(app: FastifyInstance, memory: Memory): void {
  app.removeAllContentTypeParsers()
  app.decorateRequest('reservation', undefined)
  app.addContentTypeParser(['application/json', '*'], readerWith(memory))
}

/** Ends the reservation of a request when its reply is over, unless it was taken over. */
export function reserveUntilClosed(request: FastifyRequest, reply: FastifyReply): void {
  whenOver(reply, () => request.reservation?.end())
}

/** Takes the reservation of a request. The caller must end it, and may do so after the answer. */
export function takeOver(request: FastifyRequest): Reservation | undefined {
  const { reservation } = request
  request.reservation = undefined
  return reservation
}

/** Drops the body of a request whose answer is still in progress. */
export function forget(request: FastifyRequest): void {
  request.body = undefined
  takeOver(request)?.end()
}

/** Reads a body, as a parser of Fastify. Large bodies reserve from `memory`. */
function readerWith(memory: Memory) {
  return function read(request: FastifyRequest, payload: Readable, done: Done): void {
    // It would never end again.
    if (payload.readableEnded) return done(new Fault('internal', READ_BEFORE))
    const { bodyLimit: limit } = request.routeOptions
    const declared = Number(request.headers['content-length'] ?? Number.NaN)
    if (declared > limit) return done(tooLarge(limit))
    if (declared > SMALL) {
      try {
        memory.check(request.principal, declared * COPIES)
      } catch (error) {
        return done(Fault.from(error))
      }
    }
    let only: Buffer | undefined
    let gathering: BodyReading | undefined
    const gather = () => {
      gathering ??= new BodyReading(request, payload, { memory, limit, declared, done })
      return gathering
    }
    payload.on('data', (chunk: Buffer) => {
      // Most bodies are small and arrive in one piece, which is not copied.
      if (chunk.length === declared && declared <= SMALL) only = chunk
      else gather().add(chunk)
    })
    payload.on('end', () => (only ? done(null, only) : gather().end()))
    payload.on('error', (cause) =>
      gather().fail(new Fault('invalidRequest', 'The connection was lost before the body was complete', { cause })),
    )
  }
}

interface ReadingOptions {
  memory: Memory
  limit: number
  /** The length that the client has declared; NaN if it has not. */
  declared: number
  done: Done
}

/** Reads one body that arrives in several pieces, or is large. */
class BodyReading {
  readonly #request: FastifyRequest
  readonly #payload: Readable
  readonly #options: ReadingOptions
  #buffer: Buffer = NOTHING
  #length = 0
  #pieces = 0
  #over = false

  constructor(request: FastifyRequest, payload: Readable, options: ReadingOptions) {
    this.#request = request
    this.#payload = payload
    this.#options = options
  }

  add(chunk: Buffer): void {
    if (this.#over) return
    try {
      this.#add(chunk)
    } catch (error) {
      this.fail(Fault.from(error))
    }
  }

  end(): void {
    if (this.#over) return
    this.#over = true
    this.#options.done(null, this.#buffer.subarray(0, this.#length))
  }

  fail(error: Fault): void {
    if (this.#over) return
    this.#over = true
    takeOver(this.#request)?.end()
    this.#options.done(error)
  }

  #add(chunk: Buffer): void {
    const needed = this.#length + chunk.length
    if (needed > this.#options.limit) throw tooLarge(this.#options.limit)
    if (++this.#pieces > PIECES.free + needed / PIECES.bytes) {
      // Reading the rest would cost the time that the limit saves.
      this.#payload.pause()
      setTimeout(() => this.#payload.destroy(), LAST_WORDS).unref()
      throw new Fault('invalidRequest', 'The body arrives in too many small pieces: send it in larger chunks')
    }
    if (needed > this.#buffer.length) this.#grow(needed)
    chunk.copy(this.#buffer, this.#length)
    this.#length = needed
  }

  /** Doubles the buffer and the reservation as bytes arrive, so that a declared length alone costs nothing. */
  #grow(needed: number): void {
    const { declared, limit, memory } = this.#options
    const most = declared > 0 ? declared : limit
    const size = Math.max(needed, Math.min(declared <= SMALL ? declared : 2 * this.#buffer.length, most))
    if (size > SMALL) {
      this.#request.reservation ??= memory.reserve(this.#request.principal)
      this.#request.reservation.mustResize(size * COPIES)
    }
    const grown = Buffer.allocUnsafe(size)
    this.#buffer.copy(grown, 0, 0, this.#length)
    this.#buffer = grown
  }
}

/** The Fault for a body over the limit, in bytes. */
export function tooLarge(limit: number): Fault {
  return new Fault('bodyTooLarge', `The body is over ${limit} bytes (limits.bodyBytes)`)
}
