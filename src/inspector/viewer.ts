/** One reader of the inspector's events, over Server-Sent Events. A reader that stalls takes no memory. */
import type { ServerResponse } from 'node:http'
import { KEEP_ALIVE } from '../base/rpc/sse.js'
import type { RecordedEvent } from './recorder/events.js'
import type { Ring } from './ring.js'

/** The contents of a viewer's stream. */
export interface ViewerOptions {
  ring: Ring
  /** The number of the last event that it received. */
  after: number
  /**
   * Identifies the ring, because a viewer that reconnects to another one starts over; and its clock. The viewer also gets
   * the number of the event from which on all are stored, and the time when the ring was cleared.
   */
  hello: object
  /** Formats an event with its text; undefined if texts are not sent. */
  show: ((seen: RecordedEvent) => RecordedEvent) | undefined
}

/** Most bytes of new events while a viewer does not read. A slower viewer is disconnected. */
export const MAX_BEHIND = 1024 * 1024
/** New events are written once they have this many characters. */
const CHUNK = 64 * 1024
/** Milliseconds for which new events are collected. */
const GATHER = 50
/** Milliseconds between keep-alive comments. */
const ALIVE = 15_000
/** Milliseconds for a viewer to read why it is disconnected. */
const FAREWELL = 30_000

/** Writes events to the response until it is closed. Returns the function that ends it. */
export function view(response: ServerResponse, { ring, after, hello, show }: ViewerOptions): () => void {
  let cursor = after > ring.last ? 0 : after
  /** The ring's total bytes when the viewer stopped reading. */
  let blockedAt: number | undefined
  let gathering: NodeJS.Timeout | undefined

  const write = (text: string) => {
    if (response.write(text) || blockedAt !== undefined) return
    blockedAt = ring.recorded
    response.once('drain', () => {
      blockedAt = undefined
      flush()
    })
  }
  const flush = () => {
    gathering = undefined
    let next = ring.next(cursor)
    while (blockedAt === undefined && next !== undefined && !response.writableEnded) {
      let text = ''
      while (next !== undefined && text.length < CHUNK) {
        // This JSON has no line breaks, because it was made here.
        text += `id: ${next}\ndata: ${show ? JSON.stringify(show(ring.event(next))) : ring.json(next)}\n\n`
        cursor = next
        next = ring.next(next)
      }
      write(text)
    }
  }
  const unlisten = ring.listen(() => {
    if (blockedAt === undefined) gathering ??= setTimeout(flush, GATHER).unref()
    else if (ring.recorded - blockedAt > MAX_BEHIND) drop()
  })
  const alive = setInterval(() => {
    if (blockedAt === undefined) write(KEEP_ALIVE)
  }, ALIVE).unref()
  const stop = () => {
    unlisten()
    clearInterval(alive)
    clearTimeout(gathering)
  }
  const drop = () => {
    stop()
    const why = 'This viewer reads too slowly. Connect again with the number of the last event.'
    response.end(`event: dropped\ndata: ${JSON.stringify({ why, last: cursor })}\n\n`)
    setTimeout(() => response.destroy(), FAREWELL).unref()
  }

  response.once('close', stop)
  write(`event: hello\ndata: ${JSON.stringify({ ...hello, first: ring.first, cleared: ring.cleared })}\n\n`)
  flush()
  return () => {
    stop()
    response.end()
  }
}
