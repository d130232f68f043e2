/**
 * Consecutive events in columns. To keep an event of a call makes no object that lives on, so the garbage collector has
 * nothing to copy. The event is made when it is read.
 */
import type { CallSeen, Changes, Http, MessageSeen, Payload, Seen, Sight } from '../ports/seen.js'
import type { CallKind } from './call-kinds.js'
import { short } from './short.js'

type Message = Extract<Seen, { kind: 'message' }>
/** An event that is neither a message nor of a call, without its number and time. */
export type Other = Record<string, unknown> & Pick<Exclude<Seen, Message | CallSeen>, 'kind'>
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
  readonly #columns: ReturnType<typeof columnsOf>

  /** Has room for so many events at once. */
  constructor(most: number) {
    this.#columns = columnsOf(2 ** Math.ceil(Math.log2(most)))
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
    const slot = this.#take(at, code, weight, sight.call)
    const columns = this.#columns
    columns.amount[slot] = sight.bytes
    columns.further[slot] = sight.of ?? 0
    columns.text[slot] = NONE
    columns.server[slot] = sight.server
    columns.session[slot] = session
    columns.method[slot] = method
    columns.id[slot] = id
    columns.changed[slot] = sight.changed
    columns.shared[slot] = http
    columns.rare[slot] = sight.continues === undefined ? undefined : { continues: sight.continues }
    return this.next++
  }

  /** Notes where the text of a message is, and whether that waits for the end of the call to be shown. */
  addText(number: number, position: number, waits: boolean): void {
    const slot = number & this.#columns.mask
    this.#columns.text[slot] = position
    this.#columns.waits[slot] = waits ? 1 : 0
  }

  /** Adds the beginning or the end of a call that takes this many bytes, and returns its number. */
  addCall(at: number, weight: number, sight: Extract<Sight, { kind: 'call' }>, kind: CallKind): number {
    const { continues, why, trace } = sight
    const begins = sight.what === 'begun'
    const slot = this.#take(at, begins ? BEGUN : ENDED, weight, sight.call)
    if (begins) this.calls++
    const columns = this.#columns
    columns.amount[slot] = sight.ms ?? Number.NaN
    columns.further[slot] = sight.upstreamMs ?? Number.NaN
    columns.shared[slot] = kind
    const isRare = continues !== undefined || why !== undefined || trace !== undefined
    columns.rare[slot] = isRare ? rareOf(sight) : undefined
    return this.next++
  }

  /** Adds another event, and returns its number. */
  addOther(at: number, other: Other, weight: number): number {
    const slot = this.#take(at, OTHER, weight, undefined)
    this.#columns.shared[slot] = other
    return this.next++
  }

  /** Removes the first event. */
  shift(): void {
    const columns = this.#columns
    const slot = this.first++ & columns.mask
    this.bytes -= columns.weight[slot] as number
    if (columns.code[slot] === BEGUN) this.calls--
    // What others also use stays until it is written over.
    columns.shared[slot] = columns.changed[slot] = columns.id[slot] = columns.rare[slot] = undefined
  }

  /** The event with this number. `textAt` reads its text, if that is wanted. */
  read(number: number, textAt: ((text: number) => Payload | undefined) | undefined): Seen {
    const columns = this.#columns
    const slot = number & columns.mask
    const code = columns.code[slot] as number
    const at = Math.round((columns.at[slot] as number) * PRECISION) / PRECISION
    if (code === OTHER) return { v: 1, seq: number, at, ...columns.shared[slot] } as unknown as Seen
    return code < BEGUN ? this.#messageIn(slot, number, at, textAt) : this.#callIn(slot, number, at)
  }

  #messageIn(
    slot: number,
    number: number,
    at: number,
    textAt: ((text: number) => Payload | undefined) | undefined,
  ): Message {
    const columns = this.#columns
    const code = columns.code[slot] as number
    const changed = columns.changed[slot]
    const seen: Message = {
      v: 1,
      seq: number,
      at,
      kind: 'message',
      server: columns.server[slot],
      call: this.#callAt(slot),
      session: columns.session[slot],
      hop: code & SERVER ? 'server' : 'client',
      dir: code & OUT ? 'out' : 'in',
      form: FORMS[(code % OUT) as 0 | 1 | 2 | 3],
      method: columns.method[slot],
      id: columns.id[slot],
      bytes: columns.amount[slot] as number,
    }
    const http = columns.shared[slot]
    if (http) seen.http = http as Http<string>
    const rare = columns.rare[slot]
    if (rare?.continues !== undefined) seen.continues = rare.continues
    if (changed) seen.changes = changed.all
    if (changed && changed.more > 0) seen.more = changed.more
    if (columns.further[slot] !== 0) seen.of = columns.further[slot] as number
    const text = columns.text[slot] as number
    const payload = text === NONE || columns.waits[slot] ? undefined : textAt?.(text)
    if (payload) seen.payload = payload
    return seen
  }

  #callIn(slot: number, number: number, at: number): Seen {
    const columns = this.#columns
    const kind = columns.shared[slot] as CallKind
    const rare = columns.rare[slot]
    return {
      v: 1,
      seq: number,
      at,
      kind: 'call',
      what: kind.what,
      server: kind.server,
      call: this.#callAt(slot),
      continues: rare?.continues,
      session: kind.session,
      principal: kind.principal,
      client: kind.client,
      upstream: kind.upstream,
      method: kind.method,
      name: kind.name,
      relayed: kind.relayed,
      outcome: kind.outcome,
      code: kind.code,
      fault: kind.fault,
      blame: kind.blame,
      why: rare?.why,
      ms: shownTime(columns.amount[slot]),
      upstreamMs: shownTime(columns.further[slot]),
      trace: rare?.trace,
    }
  }

  /** Ends the wait of the texts of a call. `move` returns the new place of a text. */
  moveTexts(call: string, move: (text: number) => number | undefined): void {
    const { mask, code, text, waits } = this.#columns
    for (let number = this.next - 1; number >= this.first; number--) {
      const slot = number & mask
      if (this.#callAt(slot) !== call) continue
      if (code[slot] === BEGUN) return
      if (!waits[slot]) continue
      text[slot] = move(text[slot] as number) ?? NONE
      waits[slot] = 0
    }
  }

  /** The slot of the next event. */
  #take(at: number, code: number, weight: number, call: string | undefined): number {
    const columns = this.#columns
    const slot = this.next & columns.mask
    columns.at[slot] = at
    columns.code[slot] = code
    columns.weight[slot] = weight
    columns.waits[slot] = 0
    const number = call === undefined ? 0 : numberOf(call)
    columns.number[slot] = number
    columns.call[slot] = number === 0 ? call : undefined
    this.bytes += weight
    return slot
  }

  #callAt(slot: number): string | undefined {
    const number = this.#columns.number[slot] as number
    return number === 0 ? this.#columns.call[slot] : `c${number}`
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

/** Columns of this many slots, a power of 2. */
function columnsOf(slots: number) {
  return {
    mask: slots - 1,
    at: new Float64Array(slots),
    code: new Uint8Array(slots),
    weight: new Uint32Array(slots),
    /** The number of the call, or 0 if `call` has its id. */
    number: new Float64Array(slots),
    call: empty<string>(slots),
    /** Bytes of a message, or milliseconds of a call. */
    amount: new Float64Array(slots),
    /** The number of the message that was passed on, or milliseconds spent waiting for the server. */
    further: new Float64Array(slots),
    text: new Float64Array(slots),
    waits: new Uint8Array(slots),
    server: empty<string>(slots),
    session: empty<string>(slots),
    method: empty<string>(slots),
    id: empty<string | number>(slots),
    changed: empty<Changes>(slots),
    /** The HTTP head of a message, the kind of a call, or another event. */
    shared: empty<Http<string> | CallKind | Other>(slots),
    rare: empty<Rare>(slots),
  }
}

function empty<T>(slots: number): (T | undefined)[] {
  return new Array<T | undefined>(slots).fill(undefined)
}
