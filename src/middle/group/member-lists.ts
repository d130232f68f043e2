/** Asks servers of a group for pages of a list. */

import { Fault } from '../../base/fault/fault.js'
import { SMALL } from '../../base/limits/memory.js'
import { detach } from '../../base/rpc/source.js'
import { edit, type Json, NO_ORIGIN, type Payload, raw, sizeOf } from '../../base/rpc/splice.js'
import type { CacheHint, Call } from '../../mcp/protocol/call.js'
import { whoOf } from '../policy/who.js'
import type { Asked, ListStart, MemberQuestion } from './asking.js'
import { someAtOnce } from './at-once.js'
import type { Inside } from './inside.js'
import type { ListPage } from './list-page.js'
import type { ReadPage } from './listings.js'
import type { Member } from './member.js'
import type { Missing } from './missing.js'
import { type PartsEnd, partLog } from './part-log.js'
import { tellWaiting } from './waiting.js'

/** One page of a list of one server, or why there is none. */
export interface Part {
  who: string
  member: Member
  /** The server's cursor of the page; undefined for the first page. */
  cursor: Json | undefined
  /** Remembered, if the server is missing. */
  page: ListPage | undefined
  /** The same person received the page with other capabilities: the server may list something else to the caller. */
  isLikely: boolean
  /** The server's cursor of the next page. */
  next: Json | undefined
  missing: Missing | undefined
  /** The result without its list. */
  about: Payload | undefined
  hint: CacheHint | undefined
  /** What the page takes, or the whole result if that is more. */
  bytes: number
}

/** Longest `_meta` of a page that clients get: that of all pages is merged. In characters. */
const MAX_LIST_META = 64 * 1024

export class Parts {
  readonly #inside: Inside

  constructor(inside: Inside) {
    this.#inside = inside
  }

  /**
   * Asks for one page at each place, in order. Once the pages have `most` bytes, or memory is short, asks for no more of
   * them: there may be fewer parts than places, but there is at least one.
   */
  async some(call: Call, places: readonly ListStart[], most: number): Promise<Part[]> {
    const { memory } = this.#inside
    const reservation = memory.reserve(call.principal, SMALL)
    const { log, over } = partLog(call.log)
    const waiting = tellWaiting(
      call,
      places.map(({ member }) => member),
    )
    let bytes = 0
    let how: PartsEnd = 'cancelled'
    try {
      const parts = await someAtOnce(
        places,
        (place) => this.one({ ...call, log }, place),
        (part) => {
          waiting?.has(part.member)
          bytes += part.bytes
          return bytes >= most || reservation.resize(bytes) !== undefined
        },
      )
      how = 'failed'
      let fitting = 0
      const used = parts.findIndex((part) => {
        fitting += part.bytes
        return fitting > most
      })
      return used < 0 ? parts : parts.slice(0, Math.max(1, used))
    } finally {
      waiting?.over()
      reservation.end()
      over(how)
    }
  }

  /** Asks for one page. */
  async one(call: Call, place: ListStart): Promise<Part> {
    const { asking, kept, listings, plan, sleepers } = this.#inside
    const { known, first } = plan().wait
    const listing = { method: call.method, params: edit(call.params, { cursor: place.cursor }) }
    const who = whoOf(call)
    const restoring = kept?.restored(who, place.member)
    if (restoring) await restoring
    const likely = listings.likely(who, place.member, listing)
    if (likely && sleepers.sleeps(call, place.member)) {
      const isLikely = listings.known(who, place.member, listing) === undefined
      return { ...noPart(who, place.member, place.cursor), ...likely, isLikely, bytes: likely.page.bytes }
    }
    const [answer] = await asking.ask(call, [place], { most: likely ? known : first })
    const { question, asked } = answer as NonNullable<typeof answer>
    return this.#part(question, asked)
  }

  async #part(question: MemberQuestion, asked: Asked): Promise<Part> {
    const { who, member, call } = question
    const part = noPart(who, member, detach(raw(call.params, 'cursor')))
    if (asked.kind === 'none') return part
    if (asked.kind === 'missing') {
      // Remembered items of a missing server stay listed.
      const { listings } = this.#inside
      const known = listings.known(who, member, call)
      const shown = known ?? listings.likely(who, member, call)
      const bytes = shown?.page.bytes ?? 0
      return { ...part, page: shown?.page, isLikely: known !== shown, next: shown?.next, missing: asked, bytes }
    }
    const { result, cache: hint } = asked.reply
    let read: ReadPage
    try {
      read = await this.learn(question, result)
    } catch (error) {
      return { ...part, missing: { kind: 'missing', why: Fault.from(error), isLate: false } }
    }
    const { page, next } = read
    const about = this.#aboutIn(result, question)
    return { ...part, page, next, about, hint, bytes: Math.max(page.bytes, sizeOf(result)) }
  }

  /** The result without its list. The result itself would keep the whole message alive. */
  #aboutIn(result: Payload, { member, call }: MemberQuestion): Payload | undefined {
    const meta = detach(raw(result, '_meta'))
    if (meta === undefined || meta.length <= MAX_LIST_META) return edit(NO_ORIGIN, { _meta: meta })
    this.#inside.log.about(member, call.method, meta.length)
    return undefined
  }

  /** Remembers a page, unless its server has been replaced in the meantime: the new one may hide some items. */
  async learn({ who, member, call }: MemberQuestion, result: Payload) {
    const { kept, listings, plan, replaceFor, log } = this.#inside
    const replace = replaceFor(member)
    const read = await listings.read(member, call, result, replace)
    if (plan().members.includes(member)) {
      const isNew = listings.keep(who, member, call, read)
      kept?.learned(who, member, isNew)
    }
    log.see(member, call.method, read.page, (name) => replace('name', name))
    return read
  }
}

/** What there is of a server that has no such list. */
function noPart(who: string, member: Member, cursor: Json | undefined): Part {
  return {
    ...{ who, member, cursor },
    ...{ page: undefined, isLikely: false, next: undefined, missing: undefined, about: undefined, hint: undefined },
    bytes: 0,
  }
}
