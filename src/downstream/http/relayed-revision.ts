/**
 * Revises relayed answers that must not pass unchanged: JSON, and the events of a stream. What needs no change keeps its bytes.
 */
import { pipeline, type Readable, Transform, type TransformCallback } from 'node:stream'
import type { Reservation } from '../../limits/memory.js'
import { revisedResponse } from '../../protocol/revise.js'
import type { Revise } from '../../protocol/upstream.js'
import { Gathering } from '../../rpc/gathering.js'
import { type Message, parseMessage, response as responseMessage } from '../../rpc/message.js'
import { cut, type JsonSource, join, repairedSourceOf, sourceOf, sourceOfBytes } from '../../rpc/source.js'
import { encodeEvent, SseDecoder } from '../../rpc/sse.js'

/** Where an event ends, and the bytes of the longest such separator. */
const SEPARATOR = /\r\n\r\n|\n\r\n|\r\r|\n\n/g
const LONGEST_SEPARATOR = 4
/** Lines of an event that are kept when its data is replaced. */
const OTHER_FIELDS = /^(?:id|retry)(?::[^\r\n]*)?$/gm
/** An answer is in memory as received, as read, and as sent. */
export const REVISED_COPIES = 3

/** The body of an answer, revised; the same bytes if nothing changes or if it is no message. */
export async function revisedBody(bytes: Buffer, revise: Revise): Promise<Buffer> {
  const text = await revisedText(() => sourceOfBytes([bytes]), revise)
  return text === undefined ? bytes : Buffer.from(text)
}

/** An event stream with its answers revised. `limit`: most bytes of an event. Destroying it destroys the source. */
export function revisedEvents(source: Readable, options: RevisionOptions): Readable {
  return pipeline(source, new Revision(options), () => {})
}

interface RevisionOptions {
  revise: Revise
  limit: number
  /** For unfinished events. It is ended with the stream. */
  reservation: Reservation
}

class Revision extends Transform {
  readonly #options: RevisionOptions
  readonly #event = new Gathering()
  /** The last bytes of the unfinished event: a separator may begin in them. */
  #before = ''
  /** An event is too large: the reader of the stream ends it. */
  #isOver = false

  constructor(options: RevisionOptions) {
    super()
    this.#options = options
  }

  override _transform(chunk: Buffer, _encoding: string, done: TransformCallback): void {
    this.#take(chunk).then(() => done(), done)
  }

  override _flush(done: TransformCallback): void {
    this.#pass()
    done()
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#options.reservation.end()
    done(error)
  }

  async #take(chunk: Buffer): Promise<void> {
    const { limit, reservation } = this.#options
    let start = 0
    if (!this.#isOver) {
      const text = this.#before + chunk.toString('latin1')
      const offset = this.#before.length
      for (const { index, 0: separator } of text.matchAll(SEPARATOR)) {
        const end = index + separator.length - offset
        if (end <= start) continue
        this.#event.push(chunk.subarray(start, end))
        await this.#endEvent()
        start = end
      }
      this.#before = text.slice(Math.max(offset + start, text.length - LONGEST_SEPARATOR + 1))
    }
    this.#event.push(chunk.subarray(start))
    if (this.#event.length > limit) this.#isOver = true
    if (this.#isOver) this.#pass()
    else reservation.mustResize(this.#event.length * REVISED_COPIES)
  }

  /** Passes on what has been gathered, as received. */
  #pass(): void {
    for (const piece of this.#event.take()) this.push(piece)
  }

  async #endEvent(): Promise<void> {
    const bytes = Buffer.concat(this.#event.take())
    const [event] = new SseDecoder(bytes.length).push(bytes)
    const data = event?.data ?? []
    const text =
      event && event.event === 'message' && data.length > 0
        ? await revisedText(() => repairedSourceOf(data).source, this.#options.revise)
        : undefined
    if (text === undefined) return void this.push(bytes)
    const kept = bytes.toString('utf8').match(OTHER_FIELDS) ?? []
    this.push([...kept.map((line) => `${line}\n`), join([encodeEvent(text)].flat())].join(''))
  }
}

/** The text of a message whose results have been revised; undefined if nothing changes or if it cannot be read. */
async function revisedText(source: () => JsonSource, revise: Revise): Promise<string | undefined> {
  let message: Message
  try {
    message = parseMessage(source())
  } catch {
    return undefined
  }
  if (message.kind === 'batch') {
    const { source: all, elements } = message
    const texts = elements.map(({ start, end }) => cut(all, start, end))
    const revised = await Promise.all(texts.map((text) => revisedText(() => sourceOf(text), revise)))
    return revised.some((text) => text !== undefined)
      ? `[${revised.map((text, at) => text ?? texts[at]).join(',')}]`
      : undefined
  }
  if (message.kind !== 'response' || message.id === undefined) return undefined
  const revised = await revisedResponse(message, revise)
  return revised === message ? undefined : join(responseMessage(message.id, revised))
}
