/** Server-Sent Events (WHATWG HTML, section 9.2): an encoder, and a decoder with bounds. */

import { Gathering } from './gathering.js'
import { flat } from './lines.js'
import { forgivingText, type Wire, whole } from './source.js'

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
}

const SPACE = 0x20
const COLON = 0x3a
const LINE_FEED = 0x0a
const CARRIAGE_RETURN = 0x0d
const BETWEEN_LINES = Uint8Array.of(LINE_FEED)
const BYTE_ORDER_MARK = Uint8Array.of(0xef, 0xbb, 0xbf)
/** The fields of events; and a length that each is within, with a byte order mark, its colon and the space after that. */
const FIELDS = ['data', 'event', 'id', 'retry'] as const
const ENCODED = FIELDS.map((field) => new TextEncoder().encode(field))
const WITHIN = 16
/** Most bytes of an event, unless stated otherwise. */
const LIMIT = 16 * 1024 * 1024

/** An event of a stream exceeds its bound. */
export class SseError extends Error {
  override name = 'SseError'
}

/** An event with a JSON text. Raw line breaks, which are legal only between tokens, become spaces. */
export function encodeEvent(json: Wire, { id, retry }: { id?: string; retry?: number } = {}): Wire {
  const head = id === undefined ? '' : `id: ${id}\n`
  const wait = retry === undefined ? '' : `retry: ${retry}\n`
  const start = `${head}${wait}event: message\ndata: `
  return typeof json === 'string' ? `${start}${flat(json)}\n\n` : [start, ...json.map(flat), '\n\n']
}

/**
 * Removes the lines of some fields from an event stream that passes through in chunks. It delays nothing else and
 * changes no other byte.
 */
export class FieldFilter {
  readonly #fields: readonly Uint8Array[]
  readonly #longest: number
  /** The start of a line that may have one of the fields. */
  #held: Uint8Array = new Uint8Array(0)
  #atStart = true
  #dropping = false
  /** The last byte was a carriage return: a following line feed belongs to the same line end. */
  #carriage: 'passed' | 'dropped' | undefined
  /** Whether there was a line with one of the fields. */
  found = false

  constructor(fields: readonly string[]) {
    const encoder = new TextEncoder()
    this.#fields = fields.map((field) => encoder.encode(`${field}:`))
    this.#longest = Math.max(...this.#fields.map(({ length }) => length))
  }

  /** The parts of a chunk to pass on. */
  push(chunk: Uint8Array): Uint8Array[] {
    const bytes = this.#held.length === 0 ? chunk : concat(this.#held, chunk)
    this.#held = new Uint8Array(0)
    const passed: Uint8Array[] = []
    let start = this.#carriage !== undefined && bytes[0] === LINE_FEED ? 1 : 0
    let from = this.#carriage === 'dropped' ? start : 0
    if (bytes.length > 0) this.#carriage = undefined
    let feed = bytes.indexOf(LINE_FEED, start)
    let carriage = bytes.indexOf(CARRIAGE_RETURN, start)
    while (start < bytes.length) {
      if (this.#atStart) {
        const line = bytes.subarray(start, start + this.#longest)
        if (this.#fields.some((field) => startsWith(line, field))) {
          passed.push(bytes.subarray(from, start))
          this.#dropping = true
          this.found = true
        } else if (line.length < this.#longest && this.#fields.some((field) => startsWith(field, line))) {
          this.#held = line.slice()
          break
        }
      }
      if (feed >= 0 && feed < start) feed = bytes.indexOf(LINE_FEED, start)
      if (carriage >= 0 && carriage < start) carriage = bytes.indexOf(CARRIAGE_RETURN, start)
      const end = feed < 0 ? carriage : carriage < 0 ? feed : Math.min(feed, carriage)
      this.#atStart = end >= 0
      start = end < 0 ? bytes.length : end + 1
      if (end >= 0 && end === carriage) {
        if (bytes[start] === LINE_FEED) start++
        else if (start === bytes.length) this.#carriage = this.#dropping ? 'dropped' : 'passed'
      }
      if (!this.#dropping) continue
      from = start
      this.#dropping = end < 0
    }
    if (!this.#dropping) passed.push(bytes.subarray(from, start))
    return passed.filter(({ length }) => length > 0)
  }
}

function startsWith(bytes: Uint8Array, prefix: Uint8Array): boolean {
  return bytes.length >= prefix.length && prefix.every((byte, at) => bytes[at] === byte)
}

function concat(a: Uint8Array, b: Uint8Array): Uint8Array {
  const joined = new Uint8Array(a.length + b.length)
  joined.set(a)
  joined.set(b, a.length)
  return joined
}

/** A comment line, which readers ignore. It keeps the connection from timing out. */
export const KEEP_ALIVE = ': keep-alive\n\n'

/**
 * Decodes an event stream, which may arrive in any chunks. If an event has more than `limit` bytes, throws an SseError, or,
 * if it `cuts`, leaves out the rest of it. An unfinished event at the end of the stream is dropped, as the standard requires.
 */
export class SseDecoder {
  /** Milliseconds to wait before reconnecting, if the server has set them. */
  retry: number | undefined
  readonly #limit: number
  readonly #cuts: boolean
  /** Bytes of the current event that are left out. */
  #missing = 0
  /** The beginning of the current line. */
  readonly #line = new Gathering()
  #skipLineFeed = false
  #atStart = true
  /** The data of the current event; undefined if it has none. */
  #data: Uint8Array[] | undefined
  #dataLength = 0
  #event = ''
  #id: string | undefined

  constructor(limit = LIMIT, { cuts = false } = {}) {
    this.#limit = limit
    this.#cuts = cuts
  }

  /** Bytes of the current, incomplete event. */
  get pending(): number {
    return this.#line.length + this.#dataLength
  }

  push(chunk: Uint8Array): SseEvent[] {
    const events: SseEvent[] = []
    let start = 0
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
      this.#take(this.#line.take(), events)
      start = end + 1
      if (end === carriage) {
        if (start === chunk.length) this.#skipLineFeed = true
        else if (chunk[start] === LINE_FEED) start++
      }
      if (feed >= 0 && feed < start) feed = chunk.indexOf(LINE_FEED, start)
      if (carriage >= 0 && carriage < start) carriage = chunk.indexOf(CARRIAGE_RETURN, start)
    }
    this.#keep(chunk.subarray(start))
    return events
  }

  #keep(piece: Uint8Array): void {
    if (piece.length === 0) return
    const room = this.#limit - this.pending
    if (piece.length > room && this.#cuts) {
      this.#missing += piece.length - room
      if (room > 0) this.#line.push(piece.subarray(0, room))
      return
    }
    if (piece.length > room)
      throw new SseError(`The server sent an event of more than ${this.#limit} bytes (limits.answerBytes)`)
    this.#line.push(piece)
  }

  /** Takes a line. Its field is read in the first piece, so that is made long enough. */
  #take(pieces: readonly Uint8Array[], events: SseEvent[]): void {
    const [first, ...more] = pieces.length > 1 && (pieces[0]?.length ?? 0) < WITHIN ? [whole(pieces)] : pieces
    const line = first && this.#atStart && startsWith(first, BYTE_ORDER_MARK) ? first.subarray(3) : first
    this.#atStart = false
    if (!line || line.length === 0) return this.#dispatch(events)
    const colon = line.subarray(0, WITHIN).indexOf(COLON)
    const field =
      FIELDS[ENCODED.findIndex((name) => name.length === (colon < 0 ? line.length : colon) && startsWith(line, name))]
    if (field === undefined) return
    const rest = colon < 0 ? line.length : line[colon + 1] === SPACE ? colon + 2 : colon + 1
    const value = rest < line.length ? [line.subarray(rest), ...more] : more
    if (field === 'data') this.#addData(value)
    else this.#set(field, forgivingText(value))
  }

  #addData(value: readonly Uint8Array[]): void {
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
    else if (field === 'retry' && /^[0-9]{1,9}$/.test(value)) this.retry = Number(value)
  }

  /** Events without data are returned too: servers send them to set an id early. */
  #dispatch(events: SseEvent[]): void {
    const id = this.#id
    if (this.#data || id !== undefined) {
      const missing = this.#missing
      const event = { event: this.#event || 'message', data: this.#data ?? [] }
      events.push({ ...event, ...(id !== undefined && { id }), ...(missing > 0 && { missing }) })
    }
    this.#missing = 0
    this.#data = undefined
    this.#dataLength = 0
    this.#event = ''
    this.#id = undefined
  }
}
