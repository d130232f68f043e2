/**
 * Reads a relayed answer as it passes: how the call ended, and whether an error can be added if the server sends no
 * answer.
 */
import type { Readable } from 'node:stream'
import { type Message, parseMessage, type Response } from '../../rpc/message.js'
import { repairedSourceOf, sourceOfBytes } from '../../rpc/source.js'
import { FieldFilter, SseDecoder } from '../../rpc/sse.js'
import { RelayedEnding } from './relayed-ending.js'

/** Most bytes of an answer that are read before any of them is sent. */
export const READ_FIRST = 64 * 1024
/** Bytes at the end of an event stream that are remembered. */
const REMEMBERED = 16 * 1024
/** Most pieces of the remembered bytes before they are joined. */
const MAX_PIECES = 64
/** Fields of events that the modern era does not have, and that are removed for modern clients. */
const FOREIGN_FIELDS = ['id', 'retry']
/** The separators between two events, and the length of the longest. */
const BETWEEN = ['\n\n', '\r\r', '\r\n\r\n', '\n\r\n']
const SEPARATOR = 4
const LINE_ENDS = [0x0a, 0x0d]

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
  const message = matters ? read(() => sourceOfBytes([bytes])) : undefined
  return message?.kind === 'response' ? message : undefined
}

/** Whether a body is a JSON-RPC message, whatever its content type. */
export function isMessage(bytes: Buffer): boolean {
  const message = read(() => sourceOfBytes([bytes]))
  return message !== undefined && message.kind !== 'invalid'
}

/** An event stream on its way to the client. */
export class RelayedEvents {
  readonly #modern: boolean
  readonly #filter: FieldFilter
  #remembered: Buffer[] = []
  #bytes = 0
  /** Whether the remembered bytes are not the whole stream. */
  #forgot = false
  /** Reads the current event, if its beginning is forgotten; `#unread` is the number of its bytes still to be read. */
  #ending: RelayedEnding | undefined
  #unread = 0

  constructor(modern: boolean) {
    this.#modern = modern
    this.#filter = new FieldFilter(modern ? FOREIGN_FIELDS : ['id'])
  }

  /** Reads the next bytes. Returns those that the client gets. */
  push(chunk: Buffer): readonly Uint8Array[] {
    this.#remember(chunk)
    const filtered = this.#filter.push(chunk)
    return this.#modern ? filtered : [chunk]
  }

  /** Whether the last event is complete. */
  get isWhole(): boolean {
    if (this.#bytes === 0) return true
    const end = Buffer.concat(this.#remembered.slice(-4)).toString('latin1').slice(-4)
    return BETWEEN.some((between) => end.endsWith(between))
  }

  /** Whether the client may be able to resume the stream: its events have ids, and the client gets them. */
  get isResumable(): boolean {
    return !this.#modern && this.#filter.found
  }

  /** The response in the stream, if there was one. Of one that is larger than the remembered part, only its ending. */
  get answer(): Response | RelayedEnding | undefined {
    const bytes = Buffer.concat(this.#remembered)
    const start = this.#forgot ? firstBetween(bytes) : 0
    const events = start < 0 ? [] : new SseDecoder().push(bytes.subarray(start))
    for (const { data } of events.toReversed()) {
      const message = data.length === 0 ? undefined : read(() => repairedSourceOf(data).source)
      if (message?.kind === 'response') return message
    }
    if (!this.#forgot || events.length > 0) return undefined
    this.#ending?.push(bytes.subarray(bytes.length - this.#unread))
    this.#unread = 0
    return this.#ending
  }

  #remember(chunk: Buffer): void {
    this.#remembered.push(chunk)
    this.#bytes += chunk.length
    this.#unread += chunk.length
    if (this.#bytes <= 2 * REMEMBERED && this.#remembered.length <= MAX_PIECES) return
    const all = Buffer.concat(this.#remembered)
    if (all.length > REMEMBERED) this.#forget(all)
    this.#remembered = [all.subarray(-REMEMBERED)]
    this.#bytes = Math.min(all.length, REMEMBERED)
  }

  /** Reads what will be forgotten, if it belongs to the current event. */
  #forget(all: Buffer): void {
    this.#forgot = true
    const unread = all.subarray(all.length - this.#unread)
    const between = lastBetween(all)
    // A new event has begun, or this is the beginning of the stream.
    if (between >= all.length - this.#unread - SEPARATOR || !this.#ending) {
      this.#ending = new RelayedEnding()
      this.#ending.push(all.subarray(Math.max(0, between)))
    } else this.#ending.push(unread)
    this.#unread = 0
  }
}

/** The position of the first complete event; -1 if there is none. */
function firstBetween(bytes: Buffer): number {
  const ends = BETWEEN.map((between) => [bytes.indexOf(between), between.length] as const).filter(([at]) => at >= 0)
  return ends.length === 0 ? -1 : Math.min(...ends.map(([at, length]) => at + length))
}

/** The position of the last separator between two events, without one at the very end; -1 if there is none. */
function lastBetween(bytes: Buffer): number {
  // Most of a large event has no line end. These searches are much faster than those for several bytes.
  if (!LINE_ENDS.some((end) => bytes.includes(end))) return -1
  return Math.max(...BETWEEN.map((between) => bytes.lastIndexOf(between, bytes.length - between.length - 1)))
}

function read(source: () => Parameters<typeof parseMessage>[0]): Message | undefined {
  try {
    return parseMessage(source())
  } catch {
    return undefined
  }
}
