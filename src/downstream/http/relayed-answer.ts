/**
 * Reads a relayed answer while it passes: how the call ended, and whether an error can be added if the server sends no
 * answer.
 */
import { Readable } from 'node:stream'
import type { DoubtfulAnswer } from '../../protocol/upstream.js'
import { Ending } from '../../rpc/ending.js'
import { EventIds } from '../../rpc/event-ids.js'
import { hasLineEnd } from '../../rpc/event-length.js'
import { heldMessage, readMessage } from '../../rpc/held-message.js'
import { type Id, idKey, keptKey, type Message, type Response } from '../../rpc/message.js'
import { cut, repairedSourceOf, sourceOf, sourceOfBytes } from '../../rpc/source.js'
import { SseDecoder } from '../../rpc/sse.js'

/** Most bytes of an answer that are read before any of them is sent. */
export const READ_FIRST = 64 * 1024
/** Milliseconds for which an event stream is held back if the request needs no answer, because it may have no message. */
const HELD = 1_000
/** Milliseconds for which an event stream is held back, because it may begin with an error that says that the session is lost. */
const FIRST_WITHIN = 100
const BRACE = 0x7b
/** How JSON-RPC messages begin. Some have an id or a method before the version. */
const BEGINNING = /^\s*(?:\[\s*)?\{\s*(?:"(?:id|method)"\s*:\s*(?:"[^"]*"|[^\s"{}[\],]+)\s*,\s*)*"jsonrpc"\s*:/
/** Bytes at the end of an event stream that are remembered. */
const REMEMBERED = 16 * 1024
/** Most pieces of the remembered bytes before they are joined. */
const MAX_PIECES = 64
/** The separators between two events, and the length of the longest. */
const BETWEEN = ['\n\n', '\r\r', '\r\n\r\n', '\n\r\n']
const SEPARATOR = 4
/** Whole lines of comments. After a carriage return, a line feed may follow. */
const COMMENTS = /^(?::[^\r\n]*(?:\r\n|\n|\r(?=:)))*$/

/**
 * Reads up to `most` bytes of a body and calls `then`: with the whole body, or with its beginning, which is put back
 * into the stream, or with an error if the body breaks off before that.
 */
export function readBeginning(
  body: Readable,
  most: number,
  then: (error: Error | undefined, bytes: Buffer, whole: boolean) => void,
): void {
  const chunks: Buffer[] = []
  let length = 0
  const done = (error: Error | undefined, whole: boolean) => {
    body.off('data', onData).off('end', onEnd).off('close', onClose)
    // Later errors of a body that has been read are ignored, and must not be thrown.
    if (error || whole) body.on('error', () => {})
    body.off('error', onError)
    const [only, ...more] = chunks
    then(error, only && more.length === 0 ? only : Buffer.concat(chunks, length), whole)
  }
  const onData = (chunk: Buffer) => {
    chunks.push(chunk)
    length += chunk.length
    if (length <= most) return
    body.pause()
    const bytes = Buffer.concat(chunks.splice(0), length)
    chunks.push(bytes)
    body.unshift(bytes)
    done(undefined, false)
  }
  const onEnd = () => done(undefined, true)
  const onError = (error: Error) => done(error, false)
  const onClose = () => done(new Error('The connection was closed before the answer was complete'), false)
  body.on('data', onData).on('end', onEnd).on('error', onError).on('close', onClose)
}

/** The response in a JSON body, if it is an error, a tool error or an input request; undefined for a plain success. */
export function responseIn(bytes: Buffer): Response | undefined {
  // Most bodies have none of these words and need not be parsed.
  const matters = bytes.includes('"error"') || bytes.includes('"isError"') || bytes.includes('"input_required"')
  const message = matters ? readMessage(() => sourceOfBytes([bytes])) : undefined
  return message?.kind === 'response' ? message : undefined
}

/** What in an answer may say that the server has lost the session: an error, or a text that is no message. */
export function doubtfulIn(bytes: Buffer, type: string): DoubtfulAnswer | undefined {
  if (type === 'application/json' && !bytes.includes('"error"')) return undefined
  const response = responseIn(bytes)
  if (response) return response.outcome.kind === 'error' ? response : undefined
  return isMessage(bytes) ? undefined : { said: bytes.toString('utf8', 0, READ_FIRST) }
}

/** Whether a body is a JSON-RPC message, or a batch with one, whatever its content type. */
export function isMessage(bytes: Buffer): boolean {
  return heldMessage(() => sourceOfBytes([bytes])) !== undefined
}

/** Whether a body that is too large to be read looks like a JSON-RPC message, by its beginning. */
export function beginsMessage(bytes: Buffer): boolean {
  return BEGINNING.test(bytes.toString('latin1'))
}

/** How a stream that was held back goes on. `error`: it has broken off; `hasEnded`: it has ended. Either way, all of it is in `chunks`. */
interface Held {
  chunks: readonly Buffer[]
  error: Error | undefined
  hasEnded: boolean
}

/**
 * Reads an event stream until `decides` returns true for a chunk, until it is over, or for `most` milliseconds, and puts the
 * read bytes back into it, unless it is over.
 */
function holdBack(
  events: Readable,
  most: number,
  decides: (chunk: Buffer) => boolean,
  then: (held: Held) => void,
): void {
  const chunks: Buffer[] = []
  let length = 0
  const done = (error?: Error, hasEnded = false) => {
    clearTimeout(timer)
    events.off('data', onData).off('end', onEnd).off('close', onClose)
    // Later errors of a stream that is over are ignored, and must not be thrown.
    if (error || hasEnded) events.on('error', () => {})
    else {
      events.pause()
      if (length > 0) events.unshift(Buffer.concat(chunks, length))
    }
    events.off('error', onError)
    then({ chunks, error, hasEnded })
  }
  const onData = (chunk: Buffer) => {
    chunks.push(chunk)
    length += chunk.length
    if (decides(chunk) || length > READ_FIRST) done()
  }
  const onEnd = () => done(undefined, true)
  const onError = (error: Error) => done(error)
  const onClose = () => done(new Error('The connection was closed before the stream ended'))
  const timer = setTimeout(done, most)
  events.on('data', onData).on('end', onEnd).on('error', onError).on('close', onClose)
}

/**
 * Waits for the first message in an event stream, puts the read bytes back into it, and calls `then`: with `ended` if the
 * stream has ended without a message, with an error if it has broken off. Waits no longer than HELD.
 */
export function awaitMessage(events: Readable, then: (error: Error | undefined, ended: boolean) => void): void {
  const decoder = new SseDecoder()
  const hasMessage = (chunk: Buffer) =>
    decoder.push(chunk).some(({ data }) => heldMessage(() => repairedSourceOf(data).source))
  holdBack(events, HELD, hasMessage, ({ error, hasEnded }) => then(error, hasEnded))
}

/**
 * Waits for the first message in an event stream, but not long, and calls `then`: with the message if it is a response, and
 * with the stream, into which the read bytes have been put back; or with an error if the stream has broken off.
 */
export function awaitFirst(
  events: Readable,
  then: (error: Error | undefined, answer: Response | undefined, events: Readable) => void,
): void {
  const decoder = new SseDecoder(READ_FIRST, 'cut')
  let answer: Response | undefined
  const hasFirst = (chunk: Buffer) => {
    // Most answers are results.
    if (!chunk.includes('"error"') && chunk.includes(BRACE)) return true
    const first = decoder.push(chunk).find(({ data }) => data.length > 0)
    const message = first && readMessage(() => repairedSourceOf(first.data).source)
    if (message?.kind === 'response') answer = message
    return first !== undefined
  }
  holdBack(events, FIRST_WITHIN, hasFirst, ({ chunks, error, hasEnded }) => {
    // What came before a break passes: the client can resume after the ids in it.
    if (error && chunks.length > 0)
      then(undefined, undefined, Readable.from(brokenOff(chunks, error), { highWaterMark: 1 }))
    else then(error, answer, hasEnded ? Readable.from(chunks) : events)
  })
}

/** The chunks, and the break once they have been passed on: a stream that breaks forgets what has not been read or sent. */
async function* brokenOff(chunks: readonly Buffer[], error: Error): AsyncGenerator<Buffer> {
  yield* chunks
  await new Promise(setImmediate)
  throw error
}

/** Bytes that are remembered. */
interface Piece {
  bytes: Buffer
  hasLineEnd: boolean
}

/** An event stream on its way to the client. */
export class RelayedEvents {
  readonly #ids = new EventIds()
  #remembered: Piece[] = []
  #bytes = 0
  /** Reads the event in which the remembered bytes begin; undefined if they are the whole stream. */
  #ending: Ending | undefined
  /** The last forgotten bytes. A separator may begin in them. */
  #before = ''

  /** Reads the next bytes, with or without a line end. */
  push(chunk: Buffer, hasLineEnd: boolean): void {
    this.#remember(chunk, hasLineEnd)
    this.#ids.push(chunk, hasLineEnd)
  }

  /** Whether the last event is complete: nothing follows it but comments. */
  get isWhole(): boolean {
    if (this.#bytes === 0) return true
    const last = joined(this.#remembered)
    const start = lastEvent(this.#before, last) ?? (this.#ending ? undefined : 0)
    return start !== undefined && COMMENTS.test(last.subarray(start).toString('latin1'))
  }

  /** Whether the client may be able to resume the stream: its events have ids. */
  get isResumable(): boolean {
    return this.#ids.found
  }

  /**
   * The response in the stream, if there was one; only its ending, if it is larger than the remembered part. Read it once,
   * at the end.
   */
  get answer(): Response | Ending | undefined {
    const bytes = joined(this.#remembered)
    const start = this.#ending ? firstEvent(this.#before, bytes) : 0
    const events = new SseDecoder().push(bytes.subarray(start))
    for (const { data } of events.toReversed()) {
      const message = data.length === 0 ? undefined : readMessage(() => repairedSourceOf(data).source)
      if (message?.kind === 'response') return message
    }
    this.#ending?.push(bytes.subarray(0, start))
    return events.length === 0 || this.#ending?.ended ? this.#ending : undefined
  }

  #remember(chunk: Buffer, hasLineEnd: boolean): void {
    this.#remembered.push({ bytes: chunk, hasLineEnd })
    this.#bytes += chunk.length
    if (this.#remembered.length > MAX_PIECES) {
      const any = this.#remembered.some((piece) => piece.hasLineEnd)
      this.#remembered = [{ bytes: joined(this.#remembered), hasLineEnd: any }]
    }
    if (this.#bytes <= 2 * REMEMBERED) return
    const pieces = this.#remembered
    let excess = this.#bytes - REMEMBERED
    this.#remembered = []
    this.#bytes = REMEMBERED
    for (const piece of pieces) {
      const { bytes } = piece
      if (excess > 0) this.#forget(bytes.subarray(0, excess), piece.hasLineEnd)
      if (bytes.length > excess) this.#remembered.push(excess > 0 ? { ...piece, bytes: bytes.subarray(excess) } : piece)
      excess -= bytes.length
    }
  }

  /** Reads bytes before they are forgotten, if they belong to the last event in them. */
  #forget(bytes: Buffer, hasLineEnd: boolean): void {
    // Most of a large event has no line end.
    const start = hasLineEnd ? lastEvent(this.#before, bytes) : undefined
    if (start !== undefined || !this.#ending) this.#ending = new Ending()
    this.#ending.push(bytes.subarray(start ?? 0))
    this.#before = (this.#before + bytes.subarray(1 - SEPARATOR).toString('latin1')).slice(1 - SEPARATOR)
  }
}

/** The requests of a batch that a stream of events has not answered yet. */
export class UnansweredCalls {
  readonly #left: Map<string, Id>
  readonly #events: SseDecoder

  /** `limit`: most bytes of an event. The stream is ended at a larger one. */
  constructor(ids: readonly Id[], limit: number) {
    this.#left = new Map(ids.map((id) => [idKey(id), id]))
    this.#events = new SseDecoder(limit, 'cut')
  }

  get ids(): Id[] {
    return [...this.#left.values()]
  }

  push(chunk: Uint8Array): void {
    for (const { data } of this.#events.push(chunk))
      if (data.length > 0) this.#take(readMessage(() => repairedSourceOf(data).source))
  }

  #take(message: Message | undefined): void {
    if (message?.kind === 'batch') {
      const { source, elements } = message
      for (const { start, end } of elements) {
        const element = readMessage(() => sourceOf(cut(source, start, end)))
        if (element?.kind !== 'batch') this.#take(element)
      }
      return
    }
    const key = message?.kind === 'response' && message.id !== undefined ? keptKey(this.#left, message.id) : undefined
    if (key !== undefined) this.#left.delete(key)
  }
}

function joined(pieces: readonly Piece[]): Buffer {
  return Buffer.concat(pieces.map(({ bytes }) => bytes))
}

/** Where the first event in a piece begins; the length of the piece if none does. A separator may begin in `before`. */
function firstEvent(before: string, piece: Buffer): number {
  const bytes = Buffer.concat([Buffer.from(before, 'latin1'), piece])
  const ends = BETWEEN.map((between) => {
    const at = bytes.indexOf(between, Math.max(0, before.length - between.length))
    return at < 0 ? bytes.length : at + between.length
  })
  return Math.min(...ends) - before.length
}

/** Where the last event in a piece begins; undefined if none does. A separator may begin in `before`. */
function lastEvent(before: string, piece: Buffer): number | undefined {
  // Searches for one byte are much faster than those for several.
  if (!hasLineEnd(piece)) return undefined
  const bytes = Buffer.concat([Buffer.from(before, 'latin1'), piece])
  const ends = BETWEEN.map((between) => {
    const at = bytes.lastIndexOf(between)
    return at < 0 ? 0 : at + between.length
  })
  const start = Math.max(...ends) - before.length
  return start > 0 ? start : undefined
}
