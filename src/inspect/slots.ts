/**
 * Consecutive events in columns. To keep a message makes no object that lives on, so the garbage collector has nothing to
 * copy. The event of a message is made when it is read.
 */
import type { Changes, MessageSeen, Payload, Seen } from '../ports/seen.js'

type Message = Extract<Seen, { kind: 'message' }>
/** An event that is no message, without its number and time. */
export type Other = Record<string, unknown> & Pick<Exclude<Seen, Message>, 'kind'>

/** A message without its number and time. All of it is kept, so it has to be in memory of its own. */
export interface Kept extends Pick<MessageSeen, 'hop' | 'dir' | 'form' | 'method' | 'id' | 'bytes' | 'of'> {
  server: string | undefined
  call: string | undefined
  session: string | undefined
  changed: Changes | undefined
  /** What few messages have. */
  more: (Pick<MessageSeen, 'http'> & { continues?: string | undefined }) | undefined
  /** Where its text is, and whether that waits for the end of the call to be shown. */
  text: number | undefined
  waits: boolean
}

const FORMS = ['request', 'result', 'error', 'notification'] as const
/** The code of a message is the number of its form, with a bit each for its direction and its wire. */
const OUT = 4
const SERVER = 8
/** The codes of other events. */
const BEGUN = 16
const OTHER = 17
/** The place of a text that was not kept. */
const NONE = -1
/** Events that there is room for at first. */
const FEW = 1_024
/** The time is shown in thousandths of a millisecond. */
const PRECISION = 1_000

export class Slots {
  /** The numbers of the first event and of the one after the last. The slot of an event is its number modulo their number. */
  first = 1
  next = 1
  /** Calls that have begun, among the events. */
  calls = 0
  /** Bytes that the events take, about. */
  bytes = 0
  #columns = columnsOf(FEW)

  get length(): number {
    return this.next - this.first
  }

  /** Adds a message that takes this many bytes, and returns its number. */
  addMessage(at: number, kept: Kept, weight: number): number {
    const { hop, dir, form } = kept
    const code = FORMS.indexOf(form) + (dir === 'out' ? OUT : 0) + (hop === 'server' ? SERVER : 0)
    const slot = this.#take(at, code, weight)
    const columns = this.#columns
    columns.size[slot] = kept.bytes
    columns.of[slot] = kept.of ?? 0
    columns.text[slot] = kept.text ?? NONE
    columns.waits[slot] = kept.waits ? 1 : 0
    columns.server[slot] = kept.server
    columns.call[slot] = kept.call
    columns.session[slot] = kept.session
    columns.method[slot] = kept.method
    columns.id[slot] = kept.id
    columns.changed[slot] = kept.changed
    columns.other[slot] = kept.more
    return this.next++
  }

  /** Adds another event, and returns its number. */
  addOther(at: number, other: Other, weight: number): number {
    const begins = other.kind === 'call' && other['what'] === 'begun'
    const slot = this.#take(at, begins ? BEGUN : OTHER, weight)
    if (begins) this.calls++
    const columns = this.#columns
    columns.call[slot] = other['call'] as string | undefined
    columns.waits[slot] = 0
    columns.other[slot] = other
    return this.next++
  }

  /** Removes the first event. */
  shift(): void {
    const columns = this.#columns
    const slot = this.first++ & columns.mask
    this.bytes -= columns.weight[slot] as number
    if (columns.code[slot] === BEGUN) this.calls--
    // What others also use stays until it is written over.
    columns.other[slot] = columns.changed[slot] = columns.id[slot] = undefined
  }

  /** The event with this number. `textAt` reads its text, if that is wanted. */
  read(number: number, textAt: ((text: number) => Payload | undefined) | undefined): Seen {
    const columns = this.#columns
    const slot = number & columns.mask
    const code = columns.code[slot] as number
    const at = Math.round((columns.at[slot] as number) * PRECISION) / PRECISION
    const other = columns.other[slot]
    if (code >= BEGUN) return { v: 1, seq: number, at, ...other } as unknown as Seen
    const changed = columns.changed[slot]
    const seen: Message = {
      v: 1,
      seq: number,
      at,
      kind: 'message',
      server: columns.server[slot],
      call: columns.call[slot],
      session: columns.session[slot],
      hop: code & SERVER ? 'server' : 'client',
      dir: code & OUT ? 'out' : 'in',
      form: FORMS[(code % OUT) as 0 | 1 | 2 | 3],
      method: columns.method[slot],
      id: columns.id[slot],
      bytes: columns.size[slot] as number,
    }
    if (other) Object.assign(seen, other)
    if (changed) seen.changes = changed.all
    if (changed && changed.more > 0) seen.more = changed.more
    if (columns.of[slot] !== 0) seen.of = columns.of[slot] as number
    const text = columns.text[slot] as number
    const payload = text === NONE || columns.waits[slot] ? undefined : textAt?.(text)
    if (payload) seen.payload = payload
    return seen
  }

  /** Ends the wait of the texts of a call. `move` returns the new place of a text. */
  moveTexts(call: string, move: (text: number) => number | undefined): void {
    const { mask, code, call: calls, text, waits } = this.#columns
    for (let number = this.next - 1; number >= this.first; number--) {
      const slot = number & mask
      if (calls[slot] !== call) continue
      if (code[slot] === BEGUN) return
      if (!waits[slot]) continue
      text[slot] = move(text[slot] as number) ?? NONE
      waits[slot] = 0
    }
  }

  /** The slot of the next event. */
  #take(at: number, code: number, weight: number): number {
    if (this.length > this.#columns.mask) this.#grow()
    const columns = this.#columns
    const slot = this.next & columns.mask
    columns.at[slot] = at
    columns.code[slot] = code
    columns.weight[slot] = weight
    this.bytes += weight
    return slot
  }

  /** Doubles the number of slots. */
  #grow(): void {
    const before = this.#columns
    const after = columnsOf(2 * (before.mask + 1))
    for (let number = this.first; number < this.next; number++) {
      const [from, to] = [number & before.mask, number & after.mask]
      for (const name of COLUMNS) (after[name] as unknown[])[to] = before[name][from]
    }
    this.#columns = after
  }
}

/** Columns of this many slots, a power of 2. */
function columnsOf(slots: number) {
  return {
    mask: slots - 1,
    at: new Float64Array(slots),
    code: new Uint8Array(slots),
    weight: new Uint32Array(slots),
    size: new Float64Array(slots),
    of: new Float64Array(slots),
    text: new Float64Array(slots),
    waits: new Uint8Array(slots),
    server: empty<string>(slots),
    call: empty<string>(slots),
    session: empty<string>(slots),
    method: empty<string>(slots),
    id: empty<string | number>(slots),
    changed: empty<Changes>(slots),
    other: empty<object>(slots),
  }
}

function empty<T>(slots: number): (T | undefined)[] {
  return new Array<T | undefined>(slots).fill(undefined)
}

type Columns = ReturnType<typeof columnsOf>
const COLUMNS = Object.keys(columnsOf(1)).filter((name) => name !== 'mask') as Exclude<keyof Columns, 'mask'>[]
