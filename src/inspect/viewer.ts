/** One reader of the inspector's events, over a stream of Server-Sent Events. It takes no memory while it does not read. */
import type { ServerResponse } from 'node:http'
import type { Seen } from '../ports/seen.js'
import { KEEP_ALIVE } from '../rpc/sse.js'
import type { Ring } from './ring.js'

/** What a viewer gets. */
export interface ViewerOptions {
  ring: Ring
  /** The number of the last event that it has. */
  after: number
  /** Identifies the ring, because a viewer that comes back to another one begins again; and says what time it is there. */
  hello: object
  /** The form in which an event with its text is shown; undefined if no texts are shown. */
  show: ((seen: Seen) => Seen) | undefined
}

/** Most bytes of new events while a viewer reads nothing of the previous ones. Then it is dropped. */
export const MAX_BEHIND = 1024 * 1024
/** Characters after which new events are written. */
const CHUNK = 64 * 1024
/** Milliseconds for which new events are gathered. */
const GATHER = 50
/** Milliseconds between comments that show that the stream is alive. */
const ALIVE = 15_000
/** Milliseconds in which a viewer that is dropped can read why. */
const FAREWELL = 30_000

/** Writes events to the response until it is closed. Returns the function that ends it. */
export function view(response: ServerResponse, { ring, after, hello, show }: ViewerOptions): () => void {
  let cursor = after > ring.last ? 0 : after
  /** What the ring had recorded when the viewer stopped reading. */
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
    let next = Math.max(cursor + 1, ring.first)
    while (blockedAt === undefined && next <= ring.last && !response.writableEnded) {
      let text = ''
      while (next <= ring.last && text.length < CHUNK) {
        // JSON that was made here has no line breaks.
        text += `id: ${next}\ndata: ${show ? JSON.stringify(show(ring.event(next))) : ring.json(next)}\n\n`
        cursor = next++
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
  write(`event: hello\ndata: ${JSON.stringify(hello)}\n\n`)
  flush()
  return () => {
    stop()
    response.end()
  }
}
