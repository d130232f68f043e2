/** Server-Sent Events (WHATWG HTML, section 9.2): an encoder, and a decoder with bounds. */

import { flat } from './lines.js'
import type { Wire } from './source.js'

/** One event. */
export interface SseEvent {
  /** `message` if the stream names none. */
  event: string
  data: string
  /** Set if this event sets an id. */
  id?: string
}

/** Number of pieces of a line after which they are joined. */
const LOOSE = 1_024
const LINE_FEED = 0x0a
const CARRIAGE_RETURN = 0x0d

/** An event stream exceeds a bound. */
export class SseError extends Error {
  override name = 'SseError'
}

/** Bounds in UTF-16 units. */
export interface SseBounds {
  line: number
  event: number
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
 * Decodes the text of an event stream, which may arrive in any chunks. Throws an SseError if a line or an event exceeds
 * its bound. An unfinished event at the end of the stream is dropped, as the standard requires.
 */
export class SseDecoder {
  /** Milliseconds to wait before reconnecting, if the server has set them. */
  retry: number | undefined
  readonly #bounds: SseBounds
  #rest: string[] = []
  /** Number of pieces at the end that were not joined yet. Each has more overhead than content. */
  #loose = 0
  #restLength = 0
  #skipLineFeed = false
  #atStart = true
  #data: string[] = []
  #dataLength = 0
  #event = ''
  #id: string | undefined

  constructor(bounds: SseBounds = { line: 4 * 1024 * 1024, event: 8 * 1024 * 1024 }) {
    this.#bounds = bounds
  }

  /** Characters of the current, incomplete event. */
  get pending(): number {
    return this.#restLength + this.#dataLength
  }

  push(chunk: string): SseEvent[] {
    const events: SseEvent[] = []
    let text = chunk
    if (this.#atStart && text !== '') {
      this.#atStart = false
      if (text.startsWith('\ufeff')) text = text.slice(1)
    }
    let start = 0
    if (this.#skipLineFeed && text !== '') {
      this.#skipLineFeed = false
      if (text.startsWith('\n')) start = 1
    }
    // Searched again only after it was passed, so that a chunk without carriage returns is searched for one only once.
    let feed = text.indexOf('\n', start)
    let carriage = text.indexOf('\r', start)
    while (feed >= 0 || carriage >= 0) {
      const end = feed < 0 ? carriage : carriage < 0 ? feed : Math.min(feed, carriage)
      this.#line(this.#join(text.slice(start, end)), events)
      start = end + 1
      if (end === carriage) {
        if (start === text.length) this.#skipLineFeed = true
        else if (text.charCodeAt(start) === 0x0a) start++
      }
      if (feed >= 0 && feed < start) feed = text.indexOf('\n', start)
      if (carriage >= 0 && carriage < start) carriage = text.indexOf('\r', start)
    }
    if (start < text.length) this.#keep(text.slice(start))
    return events
  }

  #keep(piece: string): void {
    this.#restLength += piece.length
    if (this.#restLength > this.#bounds.line) throw new SseError(`A line of over ${this.#bounds.line} characters`)
    this.#rest.push(piece)
    if (++this.#loose < LOOSE) return
    this.#rest.push(this.#rest.splice(-LOOSE).join(''))
    this.#loose = 0
  }

  #join(piece: string): string {
    if (this.#restLength + piece.length > this.#bounds.line)
      throw new SseError(`A line of over ${this.#bounds.line} characters`)
    if (this.#rest.length === 0) return piece
    const line = this.#rest.join('') + piece
    this.#rest = []
    this.#loose = 0
    this.#restLength = 0
    return line
  }

  #line(line: string, events: SseEvent[]): void {
    if (line === '') {
      this.#dispatch(events)
      return
    }
    const colon = line.indexOf(':')
    if (colon === 0) return
    const field = colon < 0 ? line : line.slice(0, colon)
    const value = colon < 0 ? '' : line.slice(line.charCodeAt(colon + 1) === 0x20 ? colon + 2 : colon + 1)
    switch (field) {
      case 'data':
        this.#dataLength += value.length + 1
        if (this.#dataLength > this.#bounds.event)
          throw new SseError(`An event of over ${this.#bounds.event} characters`)
        this.#data.push(value)
        break
      case 'event':
        this.#event = value
        break
      case 'id':
        if (!value.includes('\0')) this.#id = value
        break
      case 'retry':
        if (/^[0-9]{1,9}$/.test(value)) this.retry = Number(value)
        break
      default:
    }
  }

  /** Events without data are returned too: servers send them to set an id early. */
  #dispatch(events: SseEvent[]): void {
    const id = this.#id
    if (this.#data.length > 0 || id !== undefined) {
      events.push({
        event: this.#event || 'message',
        data: this.#data.join('\n'),
        ...(id === undefined ? {} : { id }),
      })
    }
    this.#data = []
    this.#dataLength = 0
    this.#event = ''
    this.#id = undefined
  }
}
