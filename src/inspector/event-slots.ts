/**
 * Consecutive events in rows of arrays. Storing an event of a call allocates no long-lived object, so the garbage
 * collector has nothing to copy. A row fits into a cache line. The JSON of an event is made when it is read.
 */
import { withoutCredentials } from '../base/credentials/credentials.js'
import type { CallKind } from './call-kinds.js'
import { callKindJson, durationJson, membersJson, messageKindJson, timeJson } from './json.js'
import type { MessageKind } from './message-kinds.js'
import { type CallBody, type CallTrace, callId, type RecordedEvent } from './recorder/events.js'
import type { MessageTrace } from './recorder/message.js'
import { short } from './short.js'
import type { Other } from './stored-copies.js'

/** Members that few events have. */
type Rare = Pick<RecordedEvent, 'continues'> & Pick<CallBody, 'why' | 'trace'>

/** The codes of events. */
export const MESSAGE = 0
const BEGUN = 1
const ENDED = 2
export const OTHER = 3
/** The bits of a size in a code, and their position. */
const CODE_BITS = 2
const CODE_MASK = 2 ** CODE_BITS - 1
/** Columns of a row, as powers of 2. */
const SHIFT = 3
const VALUE_SHIFT = 2
/** The columns with numbers. */
const AT = 0
/** Bytes of a message, or milliseconds of a call. */
const AMOUNT = 1
/** The number of the forwarded message, or milliseconds spent waiting for the server. */
const FURTHER = 2
/** The position of the text, and where it is. */
const TEXT = 3
const PLACE = 4
/** The columns with other values: first the kind of a message or call, or another event. */
const KIND = 0
const ID = 1
const RARE = 2
/** The position of a text that is not stored. */
const NONE = -1

/** Where a text is: among the texts of all calls, visible or not, or among those that are kept longer. */
export type TextPlace = typeof PASSING | typeof HIDDEN | typeof LASTING
export const PASSING = 0
export const HIDDEN = 1
export const LASTING = 2

export interface PlacedText {
  position: number
  place: TextPlace
}

export class EventSlots {
  /** The numbers of the first event and of the one after the last. The slot of an event is its number modulo the capacity. */
  first = 1
  next = 1
  /** Number of start events. */
  calls = 0
  /** Approximate bytes of the events. */
  bytes = 0
  readonly #origin: number
  readonly #replicaJson: string
  readonly #mask: number
  /** The size and the code of each event: all that its removal reads. */
  readonly #sizes: Int32Array
  /** The number of the call of each event; 0 if it belongs to none. */
  readonly #calls: Float64Array
  readonly #numbers: Float64Array
  readonly #values: unknown[]

  /**
   * `most` is the most events it holds. Their times count from the origin, in milliseconds since 1970. `replica` is the id
   * of the recording replica, if there are several.
   */
  constructor(most: number, origin: number, replica?: string) {
    this.#origin = origin
    this.#replicaJson = replica === undefined ? '' : membersJson({ replica })
    const slots = 2 ** Math.ceil(Math.log2(most))
    this.#mask = slots - 1
    this.#sizes = new Int32Array(slots)
    this.#calls = new Float64Array(slots)
    this.#numbers = new Float64Array(slots << SHIFT)
    this.#values = new Array<unknown>(slots << VALUE_SHIFT).fill(undefined)
  }

  get length(): number {
    return this.next - this.first
  }

  /** Adds a message of this many bytes, and returns its number. The id must not be a slice of a larger text. */
  addMessage(
    at: number,
    weight: number,
    { bytes, of, call }: MessageTrace,
    kind: MessageKind,
    id: string | number | undefined,
  ): number {
    const slot = this.#take(at, MESSAGE, weight, call)
    const row = slot << SHIFT
    this.#numbers[row + AMOUNT] = bytes
    this.#numbers[row + FURTHER] = of ?? 0
    const values = this.#values
    const value = slot << VALUE_SHIFT
    values[value + KIND] = kind
    values[value + ID] = id
    return this.next++
  }

  /** Notes where a message's text is. */
  addText(number: number, position: number | undefined, place: TextPlace): void {
    const row = this.#slotOf(number) << SHIFT
    this.#numbers[row + TEXT] = position ?? NONE
    this.#numbers[row + PLACE] = place
  }

  /** Adds the start or the end of a call, of this many bytes. */
  addCall(at: number, weight: number, event: CallTrace, kind: CallKind): void {
    const { continues, why, trace } = event
    const begins = event.what === 'begun'
    const slot = this.#take(at, begins ? BEGUN : ENDED, weight, event.call)
    if (begins) this.calls++
    const row = slot << SHIFT
    this.#numbers[row + AMOUNT] = event.ms ?? Number.NaN
    this.#numbers[row + FURTHER] = event.upstreamMs ?? Number.NaN
    const value = slot << VALUE_SHIFT
    this.#values[value + KIND] = kind
    if (continues !== undefined || why !== undefined || trace !== undefined) this.#values[value + RARE] = rareOf(event)
    this.next++
  }

  /** Adds another event. */
  addOther(at: number, other: Other, weight: number, call?: number): void {
    this.#values[(this.#take(at, OTHER, weight, call) << VALUE_SHIFT) + KIND] = other
    this.next++
  }

  /** Removes the first event. */
  shift(): void {
    const slot = this.#slotOf(this.first++)
    const size = this.#sizes[slot] as number
    this.bytes -= size >> CODE_BITS
    if ((size & CODE_MASK) === BEGUN) this.calls--
    const values = this.#values
    const value = slot << VALUE_SHIFT
    values[value + KIND] = values[value + ID] = values[value + RARE] = undefined
  }

  /** Where an event's text is; undefined if it has none. */
  textOf(number: number): PlacedText | undefined {
    const row = this.#slotOf(number) << SHIFT
    const position = this.#numbers[row + TEXT] as number
    return position === NONE ? undefined : { position, place: this.#numbers[row + PLACE] as TextPlace }
  }

  /** The code of an event. */
  codeOf(number: number): number {
    return this.#codeAt(this.#slotOf(number))
  }

  /** The number of the call of an event; 0 if it belongs to none. */
  callOf(number: number): number {
    return this.#calls[this.#slotOf(number)] as number
  }

  /** The shared parts of a message. */
  messageKindOf(number: number): MessageKind {
    return this.#values[this.#slotOf(number) << VALUE_SHIFT] as MessageKind
  }

  /** The id of a message. */
  messageIdOf(number: number): string | number | undefined {
    return this.#values[(this.#slotOf(number) << VALUE_SHIFT) + ID] as string | number | undefined
  }

  /** An event that is neither a message nor part of a call. */
  otherOf(number: number): Other {
    return this.#values[this.#slotOf(number) << VALUE_SHIFT] as Other
  }

  /** The number of the call of an event (or 0), its server, and whether it is the end of the call. */
  groupOf(number: number): { call: number; server: string; isEnd: boolean } {
    const { server = '' } = this.#values[this.#slotOf(number) << VALUE_SHIFT] as { server?: string | undefined }
    return { call: this.callOf(number), server, isEnd: this.codeOf(number) === ENDED }
  }

  /** The numbers of the events of a call, newest first, until its start. */
  *eventsOf(call: number): Generator<number, void> {
    for (let number = this.next - 1; number >= this.first; number--) {
      const slot = this.#slotOf(number)
      if (this.#calls[slot] !== call) continue
      yield number
      if (this.#codeAt(slot) === BEGUN) return
    }
  }

  /** The JSON of the event with this number, without its text. */
  json(number: number): string {
    const slot = this.#slotOf(number)
    const row = slot << SHIFT
    const value = slot << VALUE_SHIFT
    const numbers = this.#numbers
    const values = this.#values
    const code = this.#codeAt(slot)
    const begin = `{"v":1,"seq":${number},"at":${timeJson(this.#origin + (numbers[row + AT] as number))}${this.#replicaJson}`
    if (code === OTHER) return `${begin},${JSON.stringify(values[value + KIND]).slice(1)}`
    const rare = values[value + RARE] as Rare | undefined
    const call = this.#callAt(slot)
    const more = `${call === undefined ? '' : `,"call":"${call}"`}${rare ? membersJson(rare) : ''}`
    const [amount, further] = [numbers[row + AMOUNT] as number, numbers[row + FURTHER] as number]
    if (code !== MESSAGE)
      return `${begin}${callKindJson(values[value + KIND] as CallKind)}${more}${durationJson('ms', amount)}${durationJson('upstreamMs', further)}}`
    const id = values[value + ID] as string | number | undefined
    const shownId = id === undefined ? '' : `,"id":${typeof id === 'number' ? id : JSON.stringify(id)}`
    const of = further === 0 ? '' : `,"of":${further}`
    return `${begin}${messageKindJson(values[value + KIND] as MessageKind)}${more}${shownId},"bytes":${amount}${of}}`
  }

  #slotOf(number: number): number {
    return number & this.#mask
  }

  /** Fills in the members of all events. Returns the slot of the next event, whose other values are undefined. */
  #take(at: number, code: number, weight: number, call = 0): number {
    const slot = this.#slotOf(this.next)
    const row = slot << SHIFT
    const numbers = this.#numbers
    numbers[row + AT] = at
    this.#sizes[slot] = (weight << CODE_BITS) | code
    this.#calls[slot] = call
    numbers[row + TEXT] = NONE
    this.bytes += weight
    return slot
  }

  #codeAt(slot: number): number {
    return (this.#sizes[slot] as number) & CODE_MASK
  }

  #callAt(slot: number): string | undefined {
    const call = this.#calls[slot] as number
    return call === 0 ? undefined : callId(call)
  }
}

function rareOf({ continues, why, trace }: CallTrace): Rare {
  return {
    continues: continues === undefined ? undefined : callId(continues),
    why: why === undefined ? undefined : short(withoutCredentials(why)),
    trace: trace === undefined ? undefined : short(trace),
  }
}
