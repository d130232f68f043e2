/** Copies events for storage: without secrets, without long texts, and without slices of larger texts. */

import { withoutCredentials } from '../base/credentials/credentials.js'
import { shortDigest } from '../base/crypto/digest.js'
import { BoundedMap } from '../base/limits/bounded.js'
import { detach } from '../base/rpc/source.js'
import { shownPrincipal } from '../base/texts/principal.js'
import { type CallBody, callId, type MessageBody, type RecordedEvent, type TraceEvent } from './recorder/events.js'
import { MAX_SHORT_TEXT, short } from './short.js'

/** An event that is neither a message nor part of a call, without its number and time. */
export type Other = Record<string, unknown> & { kind: Exclude<RecordedEvent['kind'], (CallBody | MessageBody)['kind']> }

/** Most shared texts, and most cached digests of sessions. */
const MAX_TEXTS = 1_000
const MAX_DIGESTS = 1_000
/** Members with foreign texts, which may contain credentials, and how many of their characters are read. */
const WORDS = ['line', 'text', 'why', 'said']
const MAX_EXAMINED_TEXT = 2_000
/** Approximate bytes of an object without its texts. */
const OBJECT_BYTES = 300

/** Copies that keep nothing else in memory. Equal texts are copied once. */
export class StoredCopies {
  readonly #texts = new BoundedMap<string, string>(MAX_TEXTS)
  readonly #digests = new BoundedMap<string, string>(MAX_DIGESTS)
  #session: string | undefined
  #digest = ''
  /** The last shared text. */
  #last = ''
  readonly #hasDigests: boolean

  /** `hasDigests`: sessions are digests already. */
  constructor(hasDigests = false) {
    this.#hasDigests = hasDigests
  }

  /** A text that many events share. */
  recurring(text: string): string {
    if (text === this.#last) return this.#last
    const known = this.#texts.get(text)
    if (known !== undefined) {
      this.#last = known
      return known
    }
    if (text.length > MAX_SHORT_TEXT) return short(text)
    const copy = detach(text)
    this.#texts.set(copy, copy)
    return copy
  }

  /** The displayed form of a session id. */
  digestOf(session: string): string {
    // The messages of a call have the same text.
    if (session === this.#session) return this.#digest
    let digest = this.#digests.get(session)
    if (digest === undefined) {
      digest = (this.#hasDigests ? session : shortDigest(session)).slice(0, 8)
      this.#digests.set(detach(session), digest)
    }
    this.#session = session
    this.#digest = digest
    return digest
  }

  /** Another event, without its time. */
  eventOf(event: TraceEvent): Other {
    const kept: Record<string, unknown> = {}
    for (const key in event) {
      const value = event[key as keyof TraceEvent] as unknown
      if (value !== undefined && key !== 'now') kept[key] = typeof value === 'string' ? short(value) : value
    }
    for (const key of WORDS) {
      const text = event[key as keyof TraceEvent] as unknown
      if (typeof text === 'string') kept[key] = short(withoutCredentials(text.slice(0, MAX_EXAMINED_TEXT)))
    }
    if ('principal' in event && event.principal !== undefined) kept['principal'] = shownPrincipal(event.principal)
    if (event.call !== undefined) kept['call'] = callId(event.call)
    if (event.session !== undefined) kept['session'] = this.digestOf(event.session)
    if (event.kind === 'refused' && event.path !== undefined)
      // The query may contain a secret.
      kept['path'] = short(event.path.split(/[?#]/, 1)[0] as string)
    return kept as Other
  }
}

/** Approximate bytes of another event. */
export function weightOf(event: Other): number {
  let weight = OBJECT_BYTES
  for (const key in event) {
    const value = event[key]
    if (typeof value === 'string') weight += value.length
  }
  return weight
}
