/** One ring for the events of several bridges, or of a file: they get numbers of their own, and their texts are kept. */
import { BoundedMap } from '../../base/limits/bounded.js'
import type { CallBody, Changes, KeptText, RecordedEvent, TraceEvent } from '../recorder/events.js'
import { Ring, type RingBounds } from '../ring.js'

/** Larger than the ring of a bridge, because it holds those of several. */
const MERGED: RingBounds = { calls: 10_000, messages: 100_000, bytes: 64 * 1024 * 1024 }
/** Most characters of all texts. */
const MAX_MERGED_TEXTS = 64 * 1024 * 1024
/** Most remembered numbers of a bridge's calls and events. */
const MAX_NUMBERS = 50_000

/** One source of events: a bridge, or a file. */
export class MergedSource {
  /** The number of the last event of the source. */
  last = 0
  /** A name for its only server. */
  title: string | undefined
  readonly #calls = new BoundedMap<string, number>(MAX_NUMBERS)
  readonly #numbers = new BoundedMap<number, number>(MAX_NUMBERS)
  /** Starts of calls that have not ended. */
  readonly #running = new Map<number, TraceEvent & CallBody>()
  readonly #merged: Merged
  readonly #bridge: string | undefined

  /** `bridge` is its name; undefined if there is only one source. */
  constructor(merged: Merged, bridge: string | undefined) {
    this.#merged = merged
    this.#bridge = bridge
  }

  /** The name of a server among all bridges. */
  serverName(name: string): string {
    if (this.#bridge === undefined) return name
    return `${this.title ?? name} (${this.#bridge})`
  }

  /** Records an event. One that was recorded before is ignored. */
  add(seen: RecordedEvent): void {
    if (seen.seq <= this.last) return
    this.last = seen.seq
    const event = this.#traceOf(seen)
    if (event.kind === 'call' && event.call !== undefined) {
      if (event.what === 'begun') this.#running.set(event.call, event)
      else this.#running.delete(event.call)
    }
    const number = this.#merged.ring.record(event)
    this.#numbers.set(seen.seq, number)
    if (seen.kind === 'message' && seen.payload) this.#merged.addText(number, seen.payload)
  }

  /** An event as the ring records it: with the names and numbers that it has here. */
  #traceOf(seen: RecordedEvent): TraceEvent {
    const { v: _v, seq: _seq, at, replica: _replica, server, call, continues, ...body } = seen
    const belonging = {
      bridge: this.#bridge ?? seen.bridge,
      server: server === undefined ? undefined : this.serverName(server),
      call: call === undefined ? undefined : this.#callOf(call),
      continues: continues === undefined ? undefined : this.#callOf(continues),
      session: seen.session,
      now: at - this.#merged.origin,
    }
    if (body.kind === 'call')
      return { ...body, ...belonging, member: body.member === undefined ? undefined : this.serverName(body.member) }
    if (body.kind !== 'message') return { ...body, ...belonging } as TraceEvent
    const { payload: _payload, changes, more = 0, of, ...message } = body
    return {
      ...message,
      ...belonging,
      changed: changes && changedBy(changes, more),
      of: of === undefined ? undefined : this.#numbers.get(of),
    }
  }

  /** The number that an event has here. */
  numberOf(seq: number): number | undefined {
    return this.#numbers.get(seq)
  }

  /** The source has ended, and its calls with it. */
  end(why: string): void {
    for (const begun of this.#running.values()) {
      const now = this.#merged.ring.time - this.#merged.origin
      this.#merged.ring.record({ ...begun, what: 'ended', now, outcome: 'cancelled', cancelled: 'bridge', why })
    }
    this.#running.clear()
  }

  /** Records an event of the source itself. */
  note(text: string): void {
    this.#merged.ring.record({ kind: 'config', bridge: this.#bridge, text })
  }

  #callOf(id: string): number {
    const known = this.#calls.get(id)
    if (known !== undefined) return known
    const call = this.#merged.newCall(this, id)
    this.#calls.set(id, call)
    return call
  }
}

export class Merged {
  readonly ring: Ring
  /** The origin of times, in milliseconds since 1970. */
  readonly origin = performance.timeOrigin
  #calls = 0
  /** Texts of messages, in which secrets are hidden already. The oldest leave. */
  readonly #texts = new Map<number, KeptText>()
  #textBytes = 0
  /** The source of each call, and its id there. */
  readonly #sources = new BoundedMap<number, { source: MergedSource; id: string }>(MAX_NUMBERS)

  /** `now` is in milliseconds since the origin. */
  constructor(now?: () => number) {
    this.ring = new Ring({ bounds: MERGED, isMerged: true, ...(now && { now }) })
  }

  addText(number: number, payload: KeptText): void {
    this.#texts.set(number, payload)
    this.#textBytes += payload.text.length
    while (this.#textBytes > MAX_MERGED_TEXTS) {
      const [[oldest, { text }] = [0, { text: '' }]] = this.#texts
      this.#texts.delete(oldest)
      this.#textBytes -= text.length
    }
  }

  /** The text of the event with this number. */
  textOf(number: number): KeptText | undefined {
    return this.#texts.get(number)
  }

  newCall(source: MergedSource, id: string): number {
    const call = ++this.#calls
    this.#sources.set(call, { source, id })
    return call
  }

  /** The source of a call, and its id there. */
  sourceOf(call: number): { source: MergedSource; id: string } | undefined {
    return this.#sources.get(call)
  }
}

function changedBy(all: Changes['all'], more: number): Changes {
  const size = JSON.stringify(all).length
  return { all, more, weight: size, size }
}
