/** The events of the inspector, the newest ones: a ring with bounds. Nothing secret is copied into it. */
import { createHash } from 'node:crypto'
import type { MessageSeen, Seen, Sight, Witness } from '../ports/seen.js'
import { MAX_CHANGES } from '../protocol/rules.js'
import { own } from '../rpc/own.js'
import { lengthOf, type Wire } from '../rpc/source.js'
import { SecretArguments } from './secret-arguments.js'

/** Whose payloads are kept: nobody's, those of calls that failed, or all. */
export type Payloads = 'off' | 'errors' | 'all'

/** What a ring holds at most. If one bound is reached, the oldest events leave. */
export interface RingBounds {
  calls: number
  /** Messages, and all other events that do not begin a call. */
  messages: number
  bytes: number
}

export const RING: RingBounds = { calls: 2_000, messages: 20_000, bytes: 16 * 1024 * 1024 }

/** Most characters kept of a payload, and of any other text. */
const MAX_PAYLOAD = 16 * 1024
const MAX_TEXT = 200
/** Most calls whose payloads wait for the outcome. */
const MAX_UNDECIDED = 1_000
/** Most session ids whose digests are remembered. */
const MAX_DIGESTS = 1_000
/** Most methods that are remembered. */
const MAX_METHODS = 200
/** Bytes that an event takes besides its texts, about. */
const EVENT_BYTES = 400
/** V8 copies shorter parts of a text, so they keep nothing else in memory. */
const SLICED = 13
/** Headers whose values cannot be secret. */
const SHOWN_HEADERS = new Set([
  'accept',
  'content-length',
  'content-type',
  'mcp-method',
  'mcp-name',
  'mcp-protocol-version',
  'retry-after',
  'traceparent',
  'transfer-encoding',
])

type Message = Extract<Seen, { kind: 'message' }>

/** The events of one bridge. */
export class Ring {
  readonly #bounds: RingBounds
  readonly #payloads: Payloads
  /** Until then the payloads of all calls are kept, in milliseconds since 1970. */
  #allUntil = 0
  readonly #now: () => number
  /** Consecutive events from `#head` on; what is before has left. */
  #events: Seen[] = []
  #head = 0
  #seq = 0
  #calls = 0
  #bytes = 0
  #recorded = 0
  readonly #weights: number[] = []
  /** With `errors`: messages of calls that have not ended, and their texts. */
  readonly #undecided = new Map<string, { message: Message; text: string; cut: number }[]>()
  readonly #digests = new Map<string, string>()
  readonly #methods = new Map<string, string>()
  /** The numbers of messages, by what identifies them. */
  readonly #numbers = new WeakMap<object, number>()
  readonly #listeners = new Set<() => void>()
  /** What the tools of the servers take that is secret. */
  readonly secretArguments = new SecretArguments()

  constructor({
    bounds = RING,
    payloads = 'off',
    /** Milliseconds since 1970. */
    now = () => performance.timeOrigin + performance.now(),
  }: { bounds?: RingBounds; payloads?: Payloads; now?: () => number } = {}) {
    this.#bounds = bounds
    this.#payloads = payloads
    this.#now = now
  }

  /** The number of the last event; 0 if there was none. */
  get last(): number {
    return this.#seq
  }

  /** Bytes that the kept events take, about. */
  get bytes(): number {
    return this.#bytes
  }

  /** Bytes of all events that were ever recorded, about. */
  get recorded(): number {
    return this.#recorded
  }

  /** Whose payloads are kept now, and in milliseconds since 1970 until when, if that ends by itself. */
  get kept(): { payloads: Payloads; until?: number } {
    if (this.#payloads !== 'all' && this.#now() < this.#allUntil) return { payloads: 'all', until: this.#allUntil }
    return { payloads: this.#payloads }
  }

  /** Keeps the payloads of all calls for some milliseconds. With 0, again those that are configured. */
  keepAll(milliseconds: number): void {
    this.#allUntil = this.#now() + milliseconds
  }

  /** Events after the one with this number, oldest first, at most `most`. If some of them have left, the next ones. */
  after(seq: number, most = Number.POSITIVE_INFINITY): readonly Seen[] {
    const first = this.#events[this.#head]?.seq
    if (first === undefined) return []
    const from = this.#head + Math.max(0, seq + 1 - first)
    return this.#events.slice(from, Math.min(this.#events.length, from + most))
  }

  /** Calls back after each event, until the returned function is called. */
  listen(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  readonly witness: Witness = (sight, text) => {
    const seen = sight.kind === 'message' ? this.#message(sight) : this.#kept(sight)
    if (seen.kind === 'message') {
      this.secretArguments.note(sight as Extract<Sight, { kind: 'message' }>, text)
      if (text !== undefined && (this.#payloads !== 'off' || seen.at < this.#allUntil)) this.#keepText(seen, text)
    } else if (seen.kind === 'call') this.#decide(seen)
    const weight = seen.kind === 'message' ? weightOfMessage(seen) : weightOf(seen)
    this.#events.push(seen)
    this.#weights.push(weight)
    this.#bytes += weight
    this.#recorded += weight
    if (beginsCall(seen)) this.#calls++
    this.#evict()
    for (const listener of this.#listeners) listener()
  }

  /** As `#kept`, for messages: they are most of the events. */
  #message(sight: Extract<Sight, { kind: 'message' }>): Message {
    const { method, id, session, http, changes, more, source } = sight
    const seen: Message = {
      v: 1,
      seq: ++this.#seq,
      at: this.#now(),
      kind: 'message',
      server: sight.server,
      call: sight.call,
      session: session === undefined ? undefined : this.#digestOf(session),
      hop: sight.hop,
      dir: sight.dir,
      form: sight.form,
      method: method === undefined ? undefined : this.#methodOf(method),
      id: typeof id === 'string' ? short(id) : id,
      bytes: sight.bytes,
    }
    if (sight.continues !== undefined) seen.continues = sight.continues
    if (http) seen.http = shown(http)
    // Rules are constants of the program, so they need no copy.
    if (changes) seen.changes = changes.slice(0, MAX_CHANGES).map(({ at, op, rule }) => ({ at: short(at), op, rule }))
    if (more) seen.more = more
    if (source && sight.dir === 'in') this.#numbers.set(source, seen.seq)
    else if (source) seen.of = this.#numbers.get(source)
    return seen
  }

  /** A copy of a method that keeps nothing else in memory: one for all messages. */
  #methodOf(method: string): string {
    const known = this.#methods.get(method)
    if (known !== undefined) return known
    const copy = short(method)
    if (this.#methods.size >= MAX_METHODS) this.#methods.clear()
    this.#methods.set(own(method.slice(0, MAX_TEXT)), copy)
    return copy
  }

  /** A copy of the event that keeps nothing else in memory, and has nothing that may be secret. */
  #kept(sight: Sight): Seen {
    const seen: Record<string, unknown> = { v: 1, seq: ++this.#seq, at: this.#now() }
    for (const key in sight) {
      const value = sight[key as keyof Sight] as unknown
      if (value !== undefined) seen[key] = typeof value === 'string' ? short(value) : value
    }
    const { session } = sight
    if (session !== undefined) seen['session'] = this.#digestOf(session)
    if (sight.kind === 'call') {
      seen['client'] = sideOf(sight.client)
      if (sight.upstream) seen['upstream'] = sideOf(sight.upstream)
    } else if (sight.kind === 'refused' && sight.path !== undefined)
      // The query may have a secret.
      seen['path'] = short(sight.path.split(/[?#]/, 1)[0] as string)
    return seen as unknown as Seen
  }

  #keepText(message: Message, wire: Wire): void {
    const text = beginningOf(wire)
    const cut = lengthOf(wire) - text.length
    if (this.#payloads === 'all' || message.at < this.#allUntil) {
      message.payload = { text, cut, hidden: 0 }
      return
    }
    const { call } = message
    if (call === undefined) return
    const waiting = this.#undecided.get(call)
    if (waiting) waiting.push({ message, text, cut })
    else this.#undecided.set(call, [{ message, text, cut }])
    this.#bytes += text.length
    // A call that lasts longer than so many others loses its payloads.
    if (this.#undecided.size > MAX_UNDECIDED || this.#bytes > this.#bounds.bytes) {
      const [oldest] = this.#undecided.keys()
      this.#forget(oldest as string)
    }
  }

  /** With `errors`: keeps or drops the payloads of a call that has ended. */
  #decide({ call, what, outcome }: Extract<Seen, { kind: 'call' }>): void {
    if (what !== 'ended' || call === undefined || this.#undecided.size === 0) return
    const waiting = this.#undecided.get(call) ?? []
    this.#forget(call)
    if (outcome === 'ok' || outcome === 'asks') return
    const first = this.#events[this.#head]?.seq ?? this.#seq
    for (const { message, text, cut } of waiting) {
      if (message.seq < first) continue
      message.payload = { text, cut, hidden: 0 }
      this.#bytes += text.length
      ;(this.#weights[this.#head + message.seq - first] as number) += text.length
    }
  }

  #forget(call: string): void {
    for (const { text } of this.#undecided.get(call) ?? []) this.#bytes -= text.length
    this.#undecided.delete(call)
  }

  #evict(): void {
    const { calls, messages, bytes } = this.#bounds
    while (
      this.#head < this.#events.length &&
      (this.#calls > calls || this.#events.length - this.#head - this.#calls > messages || this.#bytes > bytes)
    ) {
      if (beginsCall(this.#events[this.#head] as Seen)) this.#calls--
      this.#bytes -= this.#weights[this.#head] as number
      this.#events[this.#head] = undefined as unknown as Seen
      this.#head++
    }
    // Moved rarely, so that an event costs the same however many there are.
    if (this.#head > 1_024 && this.#head * 2 > this.#events.length) {
      this.#events.splice(0, this.#head)
      this.#weights.splice(0, this.#head)
      this.#head = 0
    }
  }

  #digestOf(session: string): string {
    const known = this.#digests.get(session)
    if (known !== undefined) return known
    const digest = createHash('sha256').update(session).digest('hex').slice(0, 8)
    if (this.#digests.size >= MAX_DIGESTS) this.#digests.clear()
    this.#digests.set(own(session), digest)
    return digest
  }
}

function beginsCall(seen: Seen): boolean {
  return seen.kind === 'call' && seen.what === 'begun'
}

function weightOf(seen: Seen): number {
  let weight = EVENT_BYTES
  for (const key in seen) {
    const value = seen[key as keyof Seen] as unknown
    if (typeof value === 'string') weight += value.length
  }
  return weight
}

function weightOfMessage({ changes, http, payload }: Message): number {
  let weight = EVENT_BYTES
  for (const { at, rule } of changes ?? []) weight += 64 + at.length + rule.length
  for (const name in http?.headers) weight += 64 + name.length + (http?.headers[name]?.length ?? 0)
  return weight + (payload?.text.length ?? 0)
}

/** At most the first characters of a text, in memory of their own. */
function short(text: string): string {
  const part = text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT - 1)}…` : text
  return part.length < SLICED ? part : own(part)
}

function sideOf({ era, revision, transport, name }: Extract<Sight, { kind: 'call' }>['client']) {
  return {
    era,
    ...(revision !== undefined && { revision: short(revision) }),
    ...(transport !== undefined && { transport }),
    ...(name !== undefined && { name: short(name) }),
  }
}

function shown({ status, headers }: NonNullable<MessageSeen['http']>): NonNullable<MessageSeen['http']> {
  const kept = Object.entries(headers).flatMap(([name, value]) => {
    const lower = name.toLowerCase()
    return SHOWN_HEADERS.has(lower) ? [[lower, short(value)] as const] : []
  })
  return { ...(status !== undefined && { status }), headers: Object.fromEntries(kept) }
}

const decoder = new TextDecoder()

/** The first characters of a text, in memory of their own. */
function beginningOf(wire: Wire): string {
  if (typeof wire === 'string') return own(wire.slice(0, MAX_PAYLOAD))
  let text = ''
  for (const piece of wire) {
    const room = MAX_PAYLOAD - text.length
    if (room <= 0) break
    text += typeof piece === 'string' ? piece.slice(0, room) : decoder.decode(piece.subarray(0, room))
  }
  return own(text)
}
