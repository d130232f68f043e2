/** What is kept of what a witness is told: nothing secret, no long text, and no part of a larger text. */

import { createHash } from 'node:crypto'
import { withoutCredentials } from '../credentials.js'
import { type CallSeen, callId, type MessageSeen, type Seen, type Sight } from '../ports/seen.js'
import { shownPrincipal } from '../printable.js'
import { own } from '../rpc/own.js'
import { MAX_TEXT, short } from './short.js'

/** An event that is neither a message nor of a call, without its number and time. */
export type Other = Record<string, unknown> & { kind: Exclude<Seen['kind'], (CallSeen | MessageSeen)['kind']> }

/** Most texts that are remembered because they recur, and most digests of sessions. */
const MAX_TEXTS = 1_000
const MAX_DIGESTS = 1_000
/** Members with texts of others, which may have credentials, and the characters of these that are read. */
const WORDS = ['line', 'text', 'why', 'said']
const MAX_READ = 2_000
/** Bytes that an object takes besides its texts, about. */
const OBJECT_BYTES = 300

/** Copies that keep nothing else in memory. What recurs is copied once. */
export class Copies {
  readonly #texts = new Map<string, string>()
  readonly #digests = new Map<string, string>()
  #session: string | undefined
  #digest = ''
  /** The last text that recurred. */
  #last = ''

  /** A text that recurs in many events. */
  recurring(text: string): string {
    if (text === this.#last) return this.#last
    const known = this.#texts.get(text)
    if (known !== undefined) {
      this.#last = known
      return known
    }
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

  /** Another event, without its time. */
  eventOf(sight: Sight): Other {
    const kept: Record<string, unknown> = {}
    for (const key in sight) {
      const value = sight[key as keyof Sight] as unknown
      if (value !== undefined && key !== 'now') kept[key] = typeof value === 'string' ? short(value) : value
    }
    for (const key of WORDS) {
      const text = sight[key as keyof Sight] as unknown
      if (typeof text === 'string') kept[key] = short(withoutCredentials(text.slice(0, MAX_READ)))
    }
    if ('principal' in sight && sight.principal !== undefined) kept['principal'] = shownPrincipal(sight.principal)
    if (sight.call !== undefined) kept['call'] = callId(sight.call)
    if (sight.session !== undefined) kept['session'] = this.digestOf(sight.session)
    if (sight.kind === 'refused' && sight.path !== undefined)
      // The query may have a secret.
      kept['path'] = short(sight.path.split(/[?#]/, 1)[0] as string)
    return kept as Other
  }
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
