/** Forwards a request to another replica over a link, and returns its answer. */

import type { ForwardedAnswer, ForwardedRequest, Owned, OwnedByReplica } from '../ports/replicas.js'
import { Fault, type FaultName } from '../protocol/fault.js'
import { BODY, carriedHeaders, END, HEAD, type Head, piecesOf, type Question, say } from './frames.js'
import type { Broken, Link } from './links.js'

/** Bytes of an answer that may wait to be read before the other replica is paused. */
const HOLD_AT = 256 * 1024

/** The fault for a broken link: before anything of the request was sent, and after. */
const FAULTS: Readonly<Record<Owned, Record<Broken, [before: FaultName, after: FaultName]>>> = {
  call: {
    lost: ['suspendedCallLost', 'suspendedCallLost'],
    // The owner keeps its answer for a while, so repeating the request later is safe.
    away: ['storeUnavailable', 'storeUnavailable'],
    refused: ['overloaded', 'suspendedCallLost'],
  },
  session: {
    lost: ['sessionNotFound', 'replicaLost'],
    away: ['storeUnavailable', 'replicaLost'],
    refused: ['overloaded', 'replicaLost'],
  },
}
const MESSAGES: Readonly<Record<string, string>> = {
  suspendedCallLost: 'The replica that held this call is gone, and the call is lost',
  storeUnavailable: 'Redis is unavailable, so the replica that owns this is unreachable',
  overloaded: 'The replica that owns this is overloaded',
  sessionNotFound: 'Session not found: the replica that held it is gone; call initialize to open another',
  replicaLost: 'The replica that owns this session was lost during the request',
}

/** The fault for a link that broke; `said`: something of the request may have been sent. */
export function faultOf(why: Broken, what: Owned, said: boolean): Fault {
  const name = FAULTS[what][why][said ? 1 : 0]
  return new Fault(name, MESSAGES[name] as string, name === 'storeUnavailable' ? { retryAfter: 1 } : {})
}

/** Forwards a request over a link. Rejects with a Fault. */
export async function forward(
  link: Link,
  { what }: OwnedByReplica,
  { method, path, headers, body }: ForwardedRequest,
  signal: AbortSignal,
): Promise<ForwardedAnswer> {
  const answer = new Answer(link, what)
  const leave = () => answer.leave()
  signal.addEventListener('abort', leave, { once: true })
  if (signal.aborted) leave()
  const question: Question = { method, path, headers: carriedHeaders(headers, 'content-length') }
  // The whole request is in memory already, so waiting for room saves nothing.
  say(link, HEAD, question).catch(() => {})
  for (const piece of piecesOf(body)) say(link, BODY, piece).catch(() => {})
  say(link, END).catch(() => {})
  try {
    const { status, headers: answered } = await answer.head
    return { status, headers: answered, body: answer.read(() => signal.removeEventListener('abort', leave)) }
  } catch (error) {
    signal.removeEventListener('abort', leave)
    throw error
  }
}

/** An answer as it arrives. */
class Answer {
  readonly head: Promise<Head>
  readonly #link: Link
  readonly #what: Owned
  readonly #unread: Buffer[] = []
  #unreadBytes = 0
  #complete = false
  #fault: Fault | undefined
  #wake = () => {}
  #settle: { resolve(head: Head): void; reject(fault: Fault): void } | undefined

  constructor(link: Link, what: Owned) {
    this.#link = link
    this.#what = what
    this.head = new Promise((resolve, reject) => {
      this.#settle = { resolve, reject }
    })
    link.onPart = (part) => this.#take(part)
    link.onBroken = (why) => this.#fail(faultOf(why, what, link.said))
  }

  /** Cancels the answer: the client no longer waits for it. */
  leave(): void {
    this.#link.abandon()
    this.#fail(new Fault('requestTimeout', 'The client has disconnected'))
  }

  async *read(done: () => void): AsyncGenerator<Uint8Array, void> {
    try {
      for (;;) {
        const next = this.#unread.shift()
        if (next) {
          this.#unreadBytes -= next.length
          if (this.#unreadBytes < HOLD_AT) this.#link.hold(false)
          yield next
        } else if (this.#fault) throw this.#fault
        else if (this.#complete) return
        else
          await new Promise<void>((resolve) => {
            this.#wake = resolve
          })
      }
    } finally {
      done()
      if (!this.#complete) this.#link.abandon()
    }
  }

  #take(part: Buffer): void {
    const kind = part[0]
    const rest = part.subarray(1)
    if (kind === HEAD) {
      this.#settle?.resolve(JSON.parse(rest.toString('utf8')) as Head)
    } else if (kind === BODY) {
      this.#unread.push(rest)
      this.#unreadBytes += rest.length
      if (this.#unreadBytes >= HOLD_AT) this.#link.hold(true)
    } else {
      this.#complete = kind === END
      this.#link.end()
      if (kind !== END) this.#fail(faultOf('refused', this.#what, true))
    }
    this.#wake()
  }

  #fail(fault: Fault): void {
    this.#fault ??= fault
    this.#settle?.reject(fault)
    this.#wake()
  }
}
