/**
 * Frames of many requests and answers, on one connection between two replicas. Those of one turn of the event loop are one write.
 * Where the connection is not encrypted, that of requests is a record: a length, the frames, and a tag, which proves who has sent it,
 * and that it is the next one.
 */
import { timingSafeEqual } from 'node:crypto'
import type { Duplex } from 'node:stream'
import { TAG, type Tags } from './encryption.js'

/** The protocol, in `Upgrade` of HTTP. */
export const FRAMES = 'mcp-bridge-frames'

/** What a frame is about. */
export const HEAD = 1
export const DATA = 2
/** The other side takes no more, or sends no more. */
export const ABORT = 3
/** Of an answer that is read too slowly. */
export const PAUSE = 4
export const RESUME = 5
/** No more requests are to be sent on this connection. */
export const LEAVE = 6

export interface ReplicaFrame {
  kind: number
  /** The number of the request. */
  id: number
  bytes: Buffer
  /** Nothing of the request, or of the answer, follows. */
  isLast: boolean
}

export interface FramesOptions {
  /** The tags of what is sent, and of what is received; undefined without. */
  sent?: Tags | undefined
  received?: Tags | undefined
  take(frame: ReplicaFrame): void
  /** Called when there is room again, after `isFull`. */
  drained?(): void
  /** Called once when the connection is closed. */
  closed(): void
}

const LENGTH = 4
/** Length, kind and number of a frame. */
const FRAME = LENGTH + 1 + 4
const LAST = 0x80
/** Most bytes of a piece of a body in one frame. A record is sent when it has as many. */
const PIECE = 256 * 1024
/** Fewer bytes are copied together, because each buffer of a write costs more. */
const SMALL = 16 * 1024
/** Most bytes of a record. Heads of HTTP have bounds far below. */
const MAX_FRAMES = 1024 * 1024
const NOTHING = Buffer.alloc(0)

/** Both directions of a connection. */
export class Frames {
  readonly #socket: Duplex
  readonly #options: FramesOptions
  #sending: Uint8Array[] = []
  #sendingBytes = 0
  /** The frame whose bytes arrive, and the begin of one that cannot be taken yet. */
  #frame: { kind: number; id: number; left: number; isLast: boolean } | undefined
  #begun: Buffer = NOTHING
  #received: Buffer[] = []
  #receivedBytes = 0
  /** The bytes with which something can be read. */
  #wanted = LENGTH

  constructor(socket: Duplex, options: FramesOptions) {
    this.#socket = socket
    this.#options = options
    const take = options.received
      ? (bytes: Buffer) => this.#takeRecord(bytes)
      : (bytes: Buffer) => this.#takeFrames(bytes)
    socket.on('data', take)
    socket.on('drain', () => options.drained?.())
    socket.on('end', () => socket.destroy())
    socket.on('error', () => {})
    socket.once('close', () => options.closed())
  }

  /** Whether frames wait because the other side reads too slowly. */
  get isFull(): boolean {
    return this.#socket.writableNeedDrain
  }

  send(kind: number, id: number, bytes: Uint8Array = NOTHING, isLast = false): void {
    let at = 0
    do {
      const piece = bytes.length <= PIECE ? bytes : bytes.subarray(at, at + PIECE)
      at += PIECE
      this.#push(kind | (isLast && at >= bytes.length ? LAST : 0), id, piece)
    } while (at < bytes.length)
  }

  destroy(): void {
    this.#socket.destroy()
  }

  #push(kind: number, id: number, bytes: Uint8Array): void {
    const head = Buffer.allocUnsafe(FRAME)
    head.writeUInt32BE(bytes.length, 0)
    head[LENGTH] = kind
    head.writeUInt32BE(id, LENGTH + 1)
    if (this.#socket.destroyed) return
    if (this.#sending.length === 0) process.nextTick(() => this.#flush())
    this.#sending.push(head, bytes)
    this.#sendingBytes += FRAME + bytes.length
    if (this.#sendingBytes >= PIECE) this.#flush()
  }

  #flush(): void {
    if (this.#sending.length === 0) return
    const { sent } = this.#options
    const all = sent ? [lengthOf(this.#sendingBytes), ...this.#sending, sent(this.#sending)] : this.#sending
    const pieces = this.#sendingBytes < SMALL ? [Buffer.concat(all)] : all
    this.#sending = []
    this.#sendingBytes = 0
    this.#socket.cork()
    for (const piece of pieces) this.#socket.write(piece)
    this.#socket.uncork()
  }

  #takeRecord(bytes: Buffer): void {
    this.#received.push(bytes)
    this.#receivedBytes += bytes.length
    if (this.#receivedBytes < this.#wanted) return
    let rest = this.#received.length === 1 ? bytes : Buffer.concat(this.#received, this.#receivedBytes)
    this.#wanted = LENGTH
    while (rest.length >= LENGTH && !this.#socket.destroyed) {
      const end = LENGTH + rest.readUInt32BE(0) + TAG
      if (end > MAX_FRAMES) return this.destroy()
      this.#wanted = end
      if (rest.length < end) break
      this.#read(rest.subarray(LENGTH, end - TAG), rest.subarray(end - TAG, end))
      this.#wanted = LENGTH
      rest = rest.subarray(end)
    }
    this.#received = rest.length > 0 ? [rest] : []
    this.#receivedBytes = rest.length
  }

  /** Takes the frames of a record. One that nobody with the key has sent, or not now, ends the connection. */
  #read(frames: Buffer, tag: Buffer): void {
    const own = this.#options.received?.([frames])
    if (own && timingSafeEqual(own, tag)) this.#takeFrames(frames)
    else this.destroy()
  }

  /** Takes frames, and of a body what has arrived: to gather a large one would cost as much as all the rest. */
  #takeFrames(bytes: Buffer): void {
    const { take } = this.#options
    let rest = this.#begun.length > 0 ? Buffer.concat([this.#begun, bytes]) : bytes
    while (!this.#socket.destroyed) {
      if (!this.#frame) {
        if (rest.length < FRAME) break
        const length = rest.readUInt32BE(0)
        const kind = rest[LENGTH] as number
        if (length > MAX_FRAMES) return this.destroy()
        if ((kind & ~LAST) !== DATA && rest.length < FRAME + length) break
        this.#frame = { kind: kind & ~LAST, id: rest.readUInt32BE(LENGTH + 1), left: length, isLast: kind >= LAST }
        rest = rest.subarray(FRAME)
      }
      const { kind, id, left, isLast } = this.#frame
      if (rest.length === 0 && left > 0) break
      const piece = rest.subarray(0, left)
      rest = rest.subarray(piece.length)
      this.#frame.left -= piece.length
      const isWhole = piece.length === left
      if (isWhole) this.#frame = undefined
      take({ kind, id, bytes: piece, isLast: isLast && isWhole })
    }
    this.#begun = rest
  }
}

/** The head in a frame: a list as JSON. Undefined if it is none: a replica of another version, or another program on the way. */
export function headIn(bytes: Buffer): unknown[] | undefined {
  try {
    const head: unknown = JSON.parse(bytes.toString())
    return Array.isArray(head) ? head : undefined
  } catch {
    return undefined
  }
}

function lengthOf(bytes: number): Buffer {
  const length = Buffer.allocUnsafe(LENGTH)
  length.writeUInt32BE(bytes)
  return length
}
