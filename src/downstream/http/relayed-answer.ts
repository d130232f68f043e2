/** What a server's answer says while it passes by: enough to know how the call has ended, and to end it if the server does not. */
import { type Readable, Transform, type TransformCallback } from 'node:stream'
import { type Message, parseMessage, type Response } from '../../rpc/message.js'
import { sourceOf, sourceOfBytes } from '../../rpc/source.js'
import { encodeEvent, FieldFilter, SseDecoder } from '../../rpc/sse.js'

/** Bytes of an answer that are read before any of them is sent. */
export const READ_FIRST = 64 * 1024
/** Bytes at the end of a stream of events that are remembered. */
const REMEMBERED = 16 * 1024
/** Pieces that these may be in before they are put together. */
const MAX_PIECES = 64
/** Fields of events that the modern era does not have, and that its clients stumble over. */
const FOREIGN_FIELDS = ['id', 'retry']
/** What two events have between them. */
const BETWEEN = ['\n\n', '\r\r', '\r\n\r\n', '\n\r\n']

/**
 * Reads the beginning of a body. Gives all of it, or as much as `most`: then the stream is left with all that it had. Gives
 * the error where the body breaks off before.
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
    // From here on, nobody else listens for errors of a body that has been read.
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

/** The answer that a JSON body is, where it says something of how the call has ended; undefined for a plain success. */
export function responseIn(bytes: Buffer): Response | undefined {
  // Most bodies have none of these words, and are not read any further.
  const tells = bytes.includes('"error"') || bytes.includes('"isError"') || bytes.includes('"input_required"')
  const message = tells ? read(() => sourceOfBytes([bytes])) : undefined
  return message?.kind === 'response' ? message : undefined
}

/** Whether a body is a message, whatever its type says. */
export function isMessage(bytes: Buffer): boolean {
  const message = read(() => sourceOfBytes([bytes]))
  return message !== undefined && message.kind !== 'invalid'
}

/** A stream of events on its way to the client, which can be ended with an event of the bridge's own. */
export class RelayedEvents extends Transform {
  readonly #filter: FieldFilter | undefined
  readonly #atEnd: (events: RelayedEvents) => string | undefined
  #remembered: Buffer[] = []
  #bytes = 0
  /** Something came before what is remembered. */
  #forgot = false
  #hasIds = false

  /** `atEnd` gives the message that the stream is to end with, if it is to end with one. */
  constructor(modern: boolean, atEnd: (events: RelayedEvents) => string | undefined) {
    super()
    this.#filter = modern ? new FieldFilter(FOREIGN_FIELDS) : undefined
    this.#atEnd = atEnd
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    this.#remember(chunk)
    if (!this.#filter) this.push(chunk)
    else for (const part of this.#filter.push(chunk)) this.push(part)
    done()
  }

  override _flush(done: TransformCallback): void {
    // In the middle of an event, another would be taken for a part of it.
    const last = this.isWhole ? this.#atEnd(this) : undefined
    if (last !== undefined) this.push(encodeEvent(last))
    done()
  }

  /** Whether the stream stands between two events. */
  get isWhole(): boolean {
    if (this.#bytes === 0) return true
    const end = Buffer.concat(this.#remembered.slice(-4)).toString('latin1').slice(-4)
    return BETWEEN.some((between) => end.endsWith(between))
  }

  /** Whether its client may be able to take it up again where it broke off. */
  get isResumable(): boolean {
    return this.#hasIds
  }

  /** The response that has passed, if there was one; `not seen` where it may be too large to be remembered. */
  get answer(): Response | undefined | 'not seen' {
    const text = Buffer.concat(this.#remembered).toString('utf8')
    const start = this.#forgot ? firstBetween(text) : 0
    const events = start < 0 ? [] : new SseDecoder().push(text.slice(start))
    for (const { data } of events.toReversed()) {
      const message = data === '' ? undefined : read(() => sourceOf(data))
      if (message?.kind === 'response') return message
    }
    return this.#forgot && events.length === 0 ? 'not seen' : undefined
  }

  #remember(chunk: Buffer): void {
    this.#hasIds ||= chunk.includes('id:')
    this.#remembered.push(chunk)
    this.#bytes += chunk.length
    if (this.#bytes <= 2 * REMEMBERED && this.#remembered.length <= MAX_PIECES) return
    const enough = chunk.length >= REMEMBERED ? chunk : Buffer.concat(this.#remembered)
    this.#forgot ||= this.#bytes > REMEMBERED
    this.#remembered = [enough.subarray(-REMEMBERED)]
    this.#bytes = Math.min(enough.length, REMEMBERED)
  }
}

/** Where the first event begins of which nothing is missing. */
function firstBetween(text: string): number {
  const ends = BETWEEN.map((between) => [text.indexOf(between), between.length] as const).filter(([at]) => at >= 0)
  return ends.length === 0 ? -1 : Math.min(...ends.map(([at, length]) => at + length))
}

function read(source: () => Parameters<typeof parseMessage>[0]): Message | undefined {
  try {
    return parseMessage(source())
  } catch {
    return undefined
  }
}
