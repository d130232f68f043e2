/** What is kept of what a witness is told: nothing secret, no long text, and no part of a larger text. */
import { createHash } from 'node:crypto'
import type { Http, MessageSeen, Side, Sight } from '../ports/seen.js'
import { own } from '../rpc/own.js'
import type { Other } from './slots.js'

/** Most characters kept of a text. */
const MAX_TEXT = 200
/** Most texts that are remembered because they recur, most digests of sessions, and most sides of calls. */
const MAX_TEXTS = 1_000
const MAX_DIGESTS = 1_000
const MAX_SIDES = 16
/** Most heads of HTTP that are remembered because they recur. */
const MAX_HEADS = 200
/** Most characters of what identifies a head. */
const MAX_KEY = 1_000
/** V8 copies shorter parts of a text, so they keep nothing else in memory. */
const SLICED = 13
/** Bytes that an object takes besides its texts, about. */
const OBJECT_BYTES = 300
/** Headers whose values cannot be secret. */
const SHOWN_HEADERS = [
  'accept',
  'content-length',
  'content-type',
  'mcp-method',
  'mcp-name',
  'mcp-protocol-version',
  'retry-after',
  'traceparent',
  'transfer-encoding',
] as const

/** Copies that keep nothing else in memory. What recurs is copied once. */
export class Copies {
  readonly #texts = new Map<string, string>()
  readonly #digests = new Map<string, string>()
  readonly #heads = new Map<string, Http<string>>()
  readonly #sides: Side[] = []
  #session: string | undefined
  #digest = ''

  /** A text that recurs in many events. */
  recurring(text: string): string {
    const known = this.#texts.get(text)
    if (known !== undefined) return known
    if (text.length > MAX_TEXT) return short(text)
    if (this.#texts.size >= MAX_TEXTS) this.#texts.clear()
    const copy = own(text)
    this.#texts.set(copy, copy)
    return copy
  }

  /** What is shown of the id of a session. */
  digestOf(session: string): string {
    // The messages of a call have the same text.
    if (session === this.#session) return this.#digest
    let digest = this.#digests.get(session)
    if (digest === undefined) {
      digest = createHash('sha256').update(session).digest('hex').slice(0, 8)
      if (this.#digests.size >= MAX_DIGESTS) this.#digests.clear()
      this.#digests.set(own(session), digest)
    }
    this.#session = session
    this.#digest = digest
    return digest
  }

  /** The head of an HTTP message with the headers that may be shown. The messages of a session have few different ones. */
  headOf({ status, headers }: NonNullable<MessageSeen['http']>): Http<string> {
    let key = `${status}`
    for (const name of SHOWN_HEADERS) {
      const value = headers[name]
      key += typeof value === 'string' ? `\n${value}` : '\n'
    }
    const known = this.#heads.get(key)
    if (known) return known
    const kept: Record<string, string> = {}
    for (const name of SHOWN_HEADERS) {
      const value = headers[name]
      if (typeof value === 'string') kept[name] = short(value)
    }
    const head = { ...(status !== undefined && { status }), headers: kept }
    if (this.#heads.size >= MAX_HEADS) this.#heads.clear()
    if (key.length <= MAX_KEY) this.#heads.set(own(key), head)
    return head
  }

  /** A call that begins or ends, without its time. */
  callOf(sight: Extract<Sight, { kind: 'call' }>): Other & { kind: 'call' } {
    const { name, why, trace, continues, session, upstream } = sight
    return {
      kind: 'call',
      what: sight.what,
      server: sight.server === undefined ? undefined : this.recurring(sight.server),
      call: sight.call,
      continues,
      session: session === undefined ? undefined : this.digestOf(session),
      principal: this.recurring(sight.principal),
      client: this.#sideOf(sight.client),
      upstream: upstream && this.#sideOf(upstream),
      method: this.recurring(sight.method),
      name: name === undefined ? undefined : this.recurring(name),
      relayed: sight.relayed,
      outcome: sight.outcome,
      cancelled: sight.cancelled,
      code: sight.code,
      fault: sight.fault,
      blame: sight.blame,
      why: why === undefined ? undefined : short(why),
      ms: sight.ms,
      upstreamMs: sight.upstreamMs,
      trace: trace === undefined ? undefined : short(trace),
    }
  }

  /** Another event, without its time. */
  eventOf(sight: Sight): Other {
    const kept: Record<string, unknown> = {}
    for (const key in sight) {
      const value = sight[key as keyof Sight] as unknown
      if (value !== undefined && key !== 'now') kept[key] = typeof value === 'string' ? short(value) : value
    }
    if (sight.session !== undefined) kept['session'] = this.digestOf(sight.session)
    if (sight.kind === 'refused' && sight.path !== undefined)
      // The query may have a secret.
      kept['path'] = short(sight.path.split(/[?#]/, 1)[0] as string)
    return kept as Other
  }

  #sideOf(side: Side): Side {
    for (const known of this.#sides) if (isSame(known, side)) return known
    const { era, revision, transport, name } = side
    const copy = {
      era,
      ...(revision !== undefined && { revision: short(revision) }),
      ...(transport !== undefined && { transport }),
      ...(name !== undefined && { name: short(name) }),
    }
    if (this.#sides.length < MAX_SIDES) this.#sides.push(copy)
    return copy
  }
}

function isSame(one: Side, other: Side): boolean {
  return (
    one.era === other.era &&
    one.revision === other.revision &&
    one.transport === other.transport &&
    one.name === other.name
  )
}

/** Bytes that a call takes that begins or ends, about. */
export function weightOfCall({ name, why }: Extract<Sight, { kind: 'call' }>): number {
  return OBJECT_BYTES + Math.min(name?.length ?? 0, MAX_TEXT) + Math.min(why?.length ?? 0, MAX_TEXT)
}

/** Bytes that a head of HTTP takes, about. */
export function weightOfHead({ headers }: Http<string>): number {
  let weight = OBJECT_BYTES
  for (const name in headers) weight += (headers[name] as string).length
  return weight
}

/** Bytes that another event takes, about. */
export function weightOf(event: Other): number {
  let weight = OBJECT_BYTES
  for (const key in event) {
    const value = event[key]
    if (typeof value === 'string') weight += value.length
  }
  return weight
}

/** At most the first characters of a text, in memory of their own. */
export function short(text: string): string {
  const part = text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT - 1)}…` : text
  return part.length < SLICED ? part : own(part)
}
