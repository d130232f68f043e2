/**
 * Consecutive events in rows of two arrays. To keep an event of a call makes no object that lives on, so the garbage
 * collector has nothing to copy. A row is as long as a line of the processor's cache, so an event touches two lines. The
 * event is made when it is read.
 */
import type { CallSeen, Changes, Http, MessageSeen, Payload, Seen, Sight } from '../ports/seen.js'
import type { CallKind } from './call-kinds.js'
import type { Other } from './kept.js'
import { short } from './short.js'

type Message = Extract<Seen, { kind: 'message' }>
/** What few events have. */
type Rare = Pick<Sight, 'continues'> & Pick<CallSeen, 'why' | 'trace'>

const FORMS = ['request', 'result', 'error', 'notification'] as const
const FORM: Readonly<Record<MessageSeen['form'], number>> = { request: 0, result: 1, error: 2, notification: 3 }
/** The code of a message is the number of its form, with a bit each for its direction and its wire. */
const OUT = 4
const SERVER = 8
/** The codes of other events. */
const BEGUN = 16
const ENDED = 17
const OTHER = 18
/** Columns of a row, as a power of 2. */
const SHIFT = 3
/** The columns with numbers. */
const AT = 0
const CODE = 1
const WEIGHT = 2
/** The number of the call, or 0 if CALL has its id. */
const NUMBER = 3
/** Bytes of a message, or milliseconds of a call. */
const AMOUNT = 4
/** The number of the message that was passed on, or milliseconds spent waiting for the server. */
const FURTHER = 5
const TEXT = 6
const WAITS = 7
/** The columns with other values. */
const CALL = 0
const SERVER_NAME = 1
const SESSION = 2
const METHOD = 3
const ID = 4
const CHANGED = 5
/** The HTTP head of a message, the kind of a call, or another event. */
const SHARED = 6
const RARE = 7
/** The place of a text that was not kept. */
const NONE = -1
/** The time is shown in thousandths of a millisecond. */
const PRECISION = 1_000
/** Most digits of a call's id that is kept as a number. */
const DIGITS = 15
const [LETTER, ZERO, NINE] = [99, 48, 57]

export class Slots {
  /** The numbers of the first event and of the one after the last. The slot of an event is its number modulo their number. */
  first = 1
  next = 1
  /** Calls that have begun, among the events. */
  calls = 0
  /** Bytes that the events take, about. */
  bytes = 0
  readonly #origin: number
  readonly #mask: number
  readonly #numbers: Float64Array
  readonly #values: unknown[]

  /** Has room for so many events at once. Their times are counted from the origin, in milliseconds since 1970. */
  constructor(most: number, origin: number) {
    this.#origin = origin
    const slots = 2 ** Math.ceil(Math.log2(most))
    this.#mask = slots - 1
    this.#numbers = new Float64Array(slots << SHIFT)
    this.#values = new Array<unknown>(slots << SHIFT).fill(undefined)
  }

  get length(): number {
    return this.next - this.first
  }

  /**
   * Adds a message that takes this many bytes, and returns its number. The last arguments replace what the sight says: they
   * are kept, so they have to be in memory of their own.
   */
  addMessage(
    at: number,
    weight: number,
    sight: Extract<Sight, { kind: 'message' }>,
    method: string | undefined,
    id: string | number | undefined,
    session: string | undefined,
    http: Http<string> | undefined,
  ): number {
    const code = FORM[sight.form] + (sight.dir === 'out' ? OUT : 0) + (sight.hop === 'server' ? SERVER : 0)
    const row = this.#take(at, code, weight, sight.call)
    const numbers = this.#numbers
    numbers[row + AMOUNT] = sight.bytes
    numbers[row + FURTHER] = sight.of ?? 0
    const values = this.#values
    values[row + SERVER_NAME] = sight.server
    values[row + SESSION] = session
    values[row + METHOD] = method
    values[row + ID] = id
    values[row + CHANGED] = sight.changed
    values[row + SHARED] = http
    values[row + RARE] = sight.continues === undefined ? undefined : { continues: sight.continues }
    return this.next++
  }

  /** Notes where the text of a message is, and whether that waits for the end of the call to be shown. */
  addText(number: number, position: number, waits: boolean): void {
    const row = this.#rowOf(number)
    this.#numbers[row + TEXT] = position
    this.#numbers[row + WAITS] = waits ? 1 : 0
  }

  /** Adds the beginning or the end of a call that takes this many bytes, and returns its number. */
  addCall(at: number, weight: number, sight: Extract<Sight, { kind: 'call' }>, kind: CallKind): number {
    const { continues, why, trace } = sight
    const begins = sight.what === 'begun'
    const row = this.#take(at, begins ? BEGUN : ENDED, weight, sight.call)
    if (begins) this.calls++
    this.#numbers[row + AMOUNT] = sight.ms ?? Number.NaN
    this.#numbers[row + FURTHER] = sight.upstreamMs ?? Number.NaN
    this.#values[row + SHARED] = kind
    const isRare = continues !== undefined || why !== undefined || trace !== undefined
    this.#values[row + RARE] = isRare ? rareOf(sight) : undefined
    return this.next++
  }

  /** Adds another event, and returns its number. */
  addOther(at: number, other: Other, weight: number): number {
    const row = this.#take(at, OTHER, weight, undefined)
    this.#values[row + SHARED] = other
    return this.next++
  }

  /** Removes the first event. */
  shift(): void {
    const row = this.#rowOf(this.first++)
    const values = this.#values
    this.bytes -= this.#numbers[row + WEIGHT] as number
    if (this.#numbers[row + CODE] === BEGUN) this.calls--
    // What others also use stays until it is written over.
    values[row + SHARED] = values[row + CHANGED] = values[row + ID] = values[row + RARE] = undefined
  }

  /** The event with this number. `textAt` reads its text, if that is wanted. */
  read(number: number, textAt: ((text: number) => Payload | undefined) | undefined): Seen {
    const row = this.#rowOf(number)
    const code = this.#numbers[row + CODE] as number
    const at = Math.round((this.#origin + (this.#numbers[row + AT] as number)) * PRECISION) / PRECISION
    if (code === OTHER) return { v: 1, seq: number, at, ...(this.#values[row + SHARED] as Other) } as unknown as Seen
    return code < BEGUN ? this.#messageIn(row, number, at, textAt) : this.#callIn(row, number, at)
  }

  #messageIn(
    row: number,
    number: number,
    at: number,
    textAt: ((text: number) => Payload | undefined) | undefined,
  ): Message {
    const numbers = this.#numbers
    const values = this.#values
    const code = numbers[row + CODE] as number
    const changed = values[row + CHANGED] as Changes | undefined
    const seen: Message = {
      v: 1,
      seq: number,
      at,
      kind: 'message',
      server: values[row + SERVER_NAME] as string | undefined,
      call: this.#callAt(row),
      session: values[row + SESSION] as string | undefined,
      hop: code & SERVER ? 'server' : 'client',
      dir: code & OUT ? 'out' : 'in',
      form: FORMS[(code % OUT) as 0 | 1 | 2 | 3],
      method: values[row + METHOD] as string | undefined,
      id: values[row + ID] as string | number | undefined,
      bytes: numbers[row + AMOUNT] as number,
    }
    const http = values[row + SHARED] as Http<string> | undefined
    if (http) seen.http = http
    const rare = values[row + RARE] as Rare | undefined
    if (rare?.continues !== undefined) seen.continues = rare.continues
    if (changed) seen.changes = changed.all
    if (changed && changed.more > 0) seen.more = changed.more
    if (numbers[row + FURTHER] !== 0) seen.of = numbers[row + FURTHER] as number
    const text = numbers[row + TEXT] as number
    const payload = text === NONE || numbers[row + WAITS] ? undefined : textAt?.(text)
    if (payload) seen.payload = payload
    return seen
  }

  #callIn(row: number, number: number, at: number): Seen {
    const kind = this.#values[row + SHARED] as CallKind
    const rare = this.#values[row + RARE] as Rare | undefined
    return {
      v: 1,
      seq: number,
      at,
      kind: 'call',
      ...kind,
      call: this.#callAt(row),
      continues: rare?.continues,
      why: rare?.why,
      ms: shownTime(this.#numbers[row + AMOUNT]),
      upstreamMs: shownTime(this.#numbers[row + FURTHER]),
      trace: rare?.trace,
    }
  }

  /** Ends the wait of the texts of a call. `move` returns the new place of a text. */
  moveTexts(call: string, move: (text: number) => number | undefined): void {
    const numbers = this.#numbers
    for (let number = this.next - 1; number >= this.first; number--) {
      const row = this.#rowOf(number)
      if (this.#callAt(row) !== call) continue
      if (numbers[row + CODE] === BEGUN) return
      if (!numbers[row + WAITS]) continue
      numbers[row + TEXT] = move(numbers[row + TEXT] as number) ?? NONE
      numbers[row + WAITS] = 0
    }
  }

  /** Where the row of an event begins. */
  #rowOf(number: number): number {
    return (number & this.#mask) << SHIFT
  }

  /** Where the row of the next event begins. */
  #take(at: number, code: number, weight: number, call: string | undefined): number {
    const row = this.#rowOf(this.next)
    const numbers = this.#numbers
    const callNumber = call === undefined ? 0 : numberOf(call)
    numbers[row + AT] = at
    numbers[row + CODE] = code
    numbers[row + WEIGHT] = weight
    numbers[row + NUMBER] = callNumber
    numbers[row + TEXT] = NONE
    numbers[row + WAITS] = 0
    this.#values[row + CALL] = callNumber === 0 ? call : undefined
    this.bytes += weight
    return row
  }

  #callAt(row: number): string | undefined {
    const number = this.#numbers[row + NUMBER] as number
    return number === 0 ? (this.#values[row + CALL] as string | undefined) : `c${number}`
  }
}

/** The number in the id of a call, such as `c81`; 0 if it is another text. A number needs no text that lives on. */
function numberOf(call: string): number {
  if (call.length > 1 + DIGITS || call.charCodeAt(0) !== LETTER || call.charCodeAt(1) === ZERO) return 0
  let number = 0
  for (let i = 1; i < call.length; i++) {
    const code = call.charCodeAt(i)
    if (code < ZERO || code > NINE) return 0
    number = 10 * number + code - ZERO
  }
  return number
}

function rareOf({ continues, why, trace }: Rare): Rare {
  return {
    continues,
    why: why === undefined ? undefined : short(why),
    trace: trace === undefined ? undefined : short(trace),
  }
}

function shownTime(milliseconds: number | undefined): number | undefined {
  return Number.isNaN(milliseconds) ? undefined : milliseconds
}
