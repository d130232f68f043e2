/** Server-Sent Events (WHATWG HTML, section 9.2): an encoder, and a decoder with bounds. */

import { Gathering } from './gathering.js'
import { flat } from './lines.js'
import { Outline } from './outline.js'
import { forgivingText, MARK_LENGTH, startsWith, startsWithMark, type Wire, whole } from './source.js'

/** One event. */
export interface SseEvent {
  /** `message` if the stream names none. */
  event: string
  /** The pieces in which the data arrived, not decoded: nothing for an event without data. */
  data: readonly Uint8Array[]
  /** Set if this event sets an id. */
  id?: string
  /** Bytes that are missing at the end of the data, because it is too large. */
  missing?: number
  /** The outline of the data, none of which was kept. */
  dropped?: Outline
  /** Why it was dropped, if it has more bytes than the limit. */
  tooLong?: string
  /** Set if this event sets the time to wait before reconnecting. */
  retry?: number
  /** All its bytes, with the comments before it, if they are kept; unless they are too many. */
  raw?: Uint8Array[]
}

/** An event of a server, which a client that has a session of the server itself gets as it came. */
export interface PassedEvent {
  id?: string | undefined
  retry?: number | undefined
  /** Undefined if its message is not the one that came. */
  raw?: readonly Uint8Array[] | undefined
  /** The stream that the client has opened for it; undefined on the stream of a request. */
  on?: PassedStream | undefined
}

/** A stream that a client has opened at the server. */
export interface PassedStream {
  /** Takes the message of an event; empty for an event without one. The promise resolves when there is room for more. */
  pass(message: Wire, event: PassedEvent): Promise<void> | undefined
  /** The server has ended it. */
  end(): void
}

/** The event of a message that was edited. */
export function edited(event: PassedEvent | undefined): PassedEvent | undefined {
  return event && { ...event, raw: undefined }
}

const SPACE = 0x20
const COLON = 0x3a
const LINE_FEED = 0x0a
const CARRIAGE_RETURN = 0x0d
const BETWEEN_LINES = Uint8Array.of(LINE_FEED)
/** The fields of events; and the longest that any can be, with a byte order mark, its colon and a space. */
const FIELDS = ['data', 'event', 'id', 'retry'] as const
const ENCODED = FIELDS.map((field) => new TextEncoder().encode(field))
const WITHIN = 16
/** Most bytes of an event, unless stated otherwise. */
const LIMIT = 16 * 1024 * 1024

/** An event of a stream exceeds its bound. */
export class SseError extends Error {
  override name = 'SseError'

  constructor(limit: number) {
    super(tooLong(limit))
  }
}

const tooLong = (limit: number) =>
  `The server sent an event of more than ${limit} bytes (limits.answerBytes), also where results.cut is set`

/** What to do with an event that is too long: fail, omit the rest of it, or keep only its outline. */
type Excess = 'fails' | 'cut' | 'outlined'

/** An event with a JSON text. Raw line breaks, which are legal only between tokens, become spaces. */
export function encodeEvent(json: Wire, { id, retry }: Pick<PassedEvent, 'id' | 'retry'> = {}): Wire {
  const head = id === undefined ? '' : `id: ${id}\n`
  const wait = retry === undefined ? '' : `retry: ${retry}\n`
  const start = `${head}${wait}event: message\ndata: `
  return typeof json === 'string' ? `${start}${flat(json)}\n\n` : [start, ...json.map(flat), '\n\n']
}

/**
 * Headers of an event stream beside its type. A proxy or an application must neither store, nor compress, nor gather it: an
 * event would arrive when the next ones do.
 */
export const EVENT_HEADERS = { 'cache-control': 'no-store, no-transform', 'x-accel-buffering': 'no' } as const

/** A comment line, which readers ignore. It keeps the connection from timing out. */
export const KEEP_ALIVE = ': keep-alive\n\n'

/**
 * Decodes an event stream that arrives in chunks. If an event has more than `limit` bytes, throws an SseError, unless `excess`
 * says otherwise. Drops an unfinished event at the end of the stream, as the standard requires.
 */
export class SseDecoder {
  /** Milliseconds to wait before reconnecting, if the server has set them. */
  retry: number | undefined
  readonly #limit: number
  readonly #excess: Excess
  #tooLong = false
  /** Bytes of the current event that are omitted. */
  #missing = 0
  /** The beginning of the current line. */
  readonly #line = new Gathering()
  #skipLineFeed = false
  #atStart = true
  /** The data of the current event; undefined if it has none. */
  #data: Uint8Array[] | undefined
  #dataLength = 0
  /** The outlines of the data of the current event and of the current line, if they are not stored. */
  #dropped: Outline | undefined
  #droppedLine: Outline | undefined
  #event = ''
  #id: string | undefined
  #retry: number | undefined
  /** All bytes of the current event; undefined if they are not kept. */
  #raw: Uint8Array[] | undefined
  #rawLength = 0
  #rawStarts = true

  /** With `keepsRaw`, events have all their bytes, and comments are events, too. */
  constructor(limit = LIMIT, excess: Excess = 'fails', keepsRaw = false) {
    this.#limit = limit
    this.#excess = excess
    if (keepsRaw) this.#raw = []
  }

  /** Bytes of the current, incomplete event. */
  get pending(): number {
    const line = this.#droppedLine && this.#droppedLine !== this.#dropped ? this.#droppedLine.length : 0
    return this.#line.length + line + (this.#dropped?.length ?? this.#dataLength)
  }

  /** Whether the current event exceeds the limit already. */
  get isTooLong(): boolean {
    return this.#tooLong
  }

  /** Bytes of the current event that are in memory. */
  get kept(): number {
    return Math.max(this.#line.length + (this.#dropped ? 0 : this.#dataLength), this.#rawLength)
  }

  /** Keeps only the outline of the data of the incomplete event, including the part that has not arrived yet. */
  skip(): void {
    if (this.#data) this.#dropped ??= new Outline(this.#data.splice(0))
    // The field of a line that has just begun is unknown.
    if (this.#line.length < WITHIN) return
    const { field, value } = fieldOf(this.#unmarked(whole(this.#line.take())))
    if (field !== 'data') this.#droppedLine = new Outline()
    else {
      this.#dropped?.add(BETWEEN_LINES)
      this.#droppedLine = this.#dropped ??= new Outline()
    }
    this.#droppedLine.add(value)
  }

  push(chunk: Uint8Array): SseEvent[] {
    const events: SseEvent[] = []
    let start = 0
    let from = 0
    if (this.#skipLineFeed && chunk.length > 0) {
      this.#skipLineFeed = false
      if (chunk[0] === LINE_FEED) start = 1
    }
    // Searched again only after it was passed, so that a chunk without carriage returns is searched for one only once.
    let feed = chunk.indexOf(LINE_FEED, start)
    let carriage = chunk.indexOf(CARRIAGE_RETURN, start)
    while (feed >= 0 || carriage >= 0) {
      const end = feed < 0 ? carriage : carriage < 0 ? feed : Math.min(feed, carriage)
      this.#keep(chunk.subarray(start, end))
      const before = events.length
      const isEnd = this.#take(this.#line.take(), events)
      start = end + 1
      if (end === carriage) {
        if (start === chunk.length) this.#skipLineFeed = true
        else if (chunk[start] === LINE_FEED) start++
      }
      if (isEnd && this.#raw) {
        this.#keepRaw(chunk.subarray(from, start))
        this.#giveRaw(events, before)
        from = start
      }
      if (feed >= 0 && feed < start) feed = chunk.indexOf(LINE_FEED, start)
      if (carriage >= 0 && carriage < start) carriage = chunk.indexOf(CARRIAGE_RETURN, start)
    }
    this.#keep(chunk.subarray(start))
    if (this.#raw) this.#keepRaw(chunk.subarray(from))
    return events
  }

  #keepRaw(piece: Uint8Array): void {
    if (piece.length === 0) return
    const isMarked = this.#rawStarts && startsWithMark(piece)
    this.#rawStarts = false
    this.#rawLength += piece.length
    // Comments have no bound of their own.
    if (this.#rawLength > 2 * this.#limit || this.#dropped) this.#raw = []
    else this.#raw?.push(isMarked ? piece.subarray(MARK_LENGTH) : piece)
  }

  /** Gives the bytes to the event that they are. Comments alone are an event without data. */
  #giveRaw(events: SseEvent[], before: number): void {
    const raw = this.#raw ?? []
    this.#raw = []
    this.#rawLength = 0
    const last = events.at(-1)
    if (raw.length === 0) return
    if (last && events.length > before) last.raw = raw
    else if (last?.event === '') last.raw?.push(...raw)
    else events.push({ event: '', data: [], raw })
  }

  #keep(piece: Uint8Array): void {
    if (piece.length === 0) return
    const room = this.#limit - this.pending
    const isOver = piece.length > room
    if (isOver && this.#excess === 'cut') {
      this.#missing += piece.length - room
      if (room > 0) this.#line.push(piece.subarray(0, room))
      return
    }
    if (isOver && this.#excess === 'fails') throw new SseError(this.#limit)
    if (this.#droppedLine) this.#droppedLine.add(piece)
    else this.#line.push(piece)
    if (!isOver) return
    this.#tooLong = true
    this.skip()
  }

  /**
   * Reads a line. Its field is read from the first piece, so a short first piece is joined with the others. Returns whether an
   * event ends with it.
   */
  #take(pieces: readonly Uint8Array[], events: SseEvent[]): boolean {
    if (this.#droppedLine) {
      this.#droppedLine = undefined
      return false
    }
    const [first, ...more] = pieces.length > 1 && (pieces[0]?.length ?? 0) < WITHIN ? [whole(pieces)] : pieces
    const line = first && this.#unmarked(first)
    if (!line || line.length === 0) {
      this.#dispatch(events)
      return true
    }
    const { field, value } = fieldOf(line)
    if (field === undefined) return false
    const all = value.length > 0 ? [value, ...more] : more
    if (field === 'data') this.#addData(all)
    else this.#set(field, forgivingText(all))
    return false
  }

  /** A line, without a byte order mark at the start of the stream. */
  #unmarked(line: Uint8Array): Uint8Array {
    const isMarked = this.#atStart && startsWithMark(line)
    this.#atStart = false
    return isMarked ? line.subarray(MARK_LENGTH) : line
  }

  #addData(value: readonly Uint8Array[]): void {
    if (this.#dropped) {
      for (const piece of [BETWEEN_LINES, ...value]) this.#dropped.add(piece)
      return
    }
    if (this.#data) this.#data.push(BETWEEN_LINES)
    this.#data ??= []
    for (const piece of value) {
      this.#data.push(piece)
      this.#dataLength += piece.length
    }
    this.#dataLength++
  }

  #set(field: 'event' | 'id' | 'retry', value: string): void {
    if (field === 'event') this.#event = value
    else if (field === 'id' && !value.includes('\0')) this.#id = value
    else if (field === 'retry' && /^[0-9]{1,9}$/.test(value)) this.retry = this.#retry = Number(value)
  }

  /** Events without data are returned too: servers send them to set an id early. */
  #dispatch(events: SseEvent[]): void {
    const id = this.#id
    const dropped = this.#dropped
    if (this.#data || dropped || id !== undefined) {
      const missing = this.#missing
      const event = { event: this.#event || 'message', data: this.#data ?? [] }
      const excess = dropped && this.#tooLong && { tooLong: tooLong(this.#limit) }
      const more = { ...(missing > 0 && { missing }), ...(dropped && { dropped }), ...excess }
      const retry = this.#raw && this.#retry !== undefined ? { retry: this.#retry } : undefined
      events.push({ ...event, ...(id !== undefined && { id }), ...more, ...retry })
    }
    this.#dropped = undefined
    this.#tooLong = false
    this.#missing = 0
    this.#data = undefined
    this.#dataLength = 0
    this.#event = ''
    this.#id = undefined
    this.#retry = undefined
  }
}

/** The field of a line, and its value. */
function fieldOf(line: Uint8Array): { field: (typeof FIELDS)[number] | undefined; value: Uint8Array } {
  const colon = line.subarray(0, WITHIN).indexOf(COLON)
  const length = colon < 0 ? line.length : colon
  const field = FIELDS[ENCODED.findIndex((name) => name.length === length && startsWith(line, name))]
  const rest = colon < 0 ? line.length : line[colon + 1] === SPACE ? colon + 2 : colon + 1
  return { field, value: line.subarray(rest) }
}
