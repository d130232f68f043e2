/** The Streamable HTTP transport to servers: sessions with their streams of the server's own messages. */

import { Fault } from '../../base/fault/fault.js'
import { NOBODY } from '../../base/limits/memory.js'
import type { PassedStream } from '../../base/rpc/sse.js'
import { backoff } from '../../base/time/pause.js'
import { Deadline, within } from '../../base/time/time.js'
import type { Account } from '../../mcp/protocol/account.js'
import type { ServerSession } from '../../mcp/protocol/upstream.js'
import { refused } from './answers.js'
import { type Channel, ChannelError, type OpeningStream, type Transport } from './channel.js'
import { type OriginHeaders, OriginTransport } from './origin.js'
import { NONE, Posts } from './posts.js'
import { RETRY, Reading } from './reading.js'

/** Milliseconds for the DELETE that ends a session. */
const GOODBYE = 5_000
/** Milliseconds for the GET of `wantsSession`. */
const WANTS_WITHIN = 2_000
/** Number of attempts in a row after which a server counts as having no second stream. */
const MAX_CONFLICTS = 30
const nothing = () => {}

type OpenOptions = NonNullable<Parameters<Transport['open']>[0]>

export class HttpTransport extends OriginTransport implements Transport {
  readonly kind = 'http'

  async open({ stateless = false, session }: OpenOptions = {}): Promise<Channel> {
    const channel = new HttpChannel(this.origin, stateless)
    if (session) await channel.resume(session)
    return channel
  }
}

class HttpChannel extends Posts implements Channel {
  readonly transport = 'http'
  readonly shared = false

  get hasSession(): boolean {
    return this.sessionId !== undefined
  }

  get session(): ServerSession {
    const { address } = this.origin
    return {
      session: this.sessionId,
      path: this.path,
      cookies: this.cookies?.text,
      ...(address !== undefined && { address }),
    }
  }

  leave(): void {
    this.isLeft = true
    if (this.calls === 0) this.listening?.abort()
  }

  async resume({ session, path, cookies }: ServerSession): Promise<void> {
    this.sessionId = session
    this.path = path
    if (cookies !== undefined) await this.cookies?.adopt(cookies)
  }

  /**
   * A server that supports sessions answers a GET without a session with 400 (MCP 2025-11-25, basic/transports, session
   * management). A server that supports only 2026-07-28 answers every GET with 405.
   */
  async wantsSession(headers: OriginHeaders, account?: Account): Promise<boolean> {
    const reading = new Reading(undefined, undefined, () => reading.abort())
    const late = new Deadline(WANTS_WITHIN, () => reading.abort())
    try {
      const { status } = await this.get(headers, reading, account)
      return status === 400
    } catch {
      return false
    } finally {
      late.clear()
    }
  }

  /** Opens the GET stream and keeps it open. Resolves to false if the server has none. */
  listen(headers: OriginHeaders, account?: Account, tried = nothing): Promise<boolean> {
    this.listens = true
    return new Promise((resolve) => {
      this.#listen(headers, account, { opened: resolve, tried })
        .catch(() => {})
        .finally(() => {
          this.listens = false
          this.listening = undefined
          this.accepted.fail(new ChannelError('The stream on which the server was to answer has ended'))
          resolve(false)
        })
    })
  }

  async pass(stream: PassedStream, opening: OpeningStream): Promise<void> {
    const own = this.listening
    // Some servers have only one such stream in a session.
    if (own && !own.stream && opening.lastEventId === undefined) {
      opening.signal.addEventListener('abort', () => own.takeBack(), { once: true })
      return own.give(stream)
    }
    try {
      await this.#pass(stream, opening)
    } catch (error) {
      const isTaken = error instanceof ChannelError && error.refusal?.status === 409
      if (!isTaken || !own || own.stream) throw error
      own.abort()
      // Until the server notices.
      await this.pause(RETRY.least)
      await this.#pass(stream, opening)
    }
  }

  async #pass(stream: PassedStream, opening: OpeningStream): Promise<void> {
    const { headers = NONE, forwarded, account, principal = NOBODY, lastEventId, signal } = opening
    const began = new Promise<void>((resolve, reject) => {
      const reading = new Reading(this.receiver, undefined, (_headers, kind) => {
        if (kind === 'events') resolve()
        else {
          reject(new ChannelError('The server has no stream', { protocol: true }))
          reading.abort()
        }
      })
      Object.assign(reading, { principal, stream, keepsRaw: true })
      signal.addEventListener('abort', () => reading.abort(), { once: true })
      const after = lastEventId === undefined ? NONE : { 'last-event-id': lastEventId }
      const sent = { accept: 'text/event-stream', ...forwarded, ...this.headers(headers), ...after }
      this.askFollowing({ method: 'GET', headers: sent, principal }, reading, account)
        .then((answer) => {
          if (answer.kind === 'events') stream.end()
          else reject(refused(answer))
        })
        .catch((error: unknown) => {
          reject(error)
          stream.end()
        })
    })
    await began
  }

  async close(): Promise<number | undefined> {
    if (!this.alive) return undefined
    this.closing.abort()
    for (const reading of this.readings.values()) reading.abort()
    if (this.sessionId === undefined || this.isLeft) return undefined
    // A server may refuse the DELETE; then its session has to expire by itself.
    const path = this.path ?? this.origin.redirects.pathFor(NOBODY)
    const headers = this.headers(this.own)
    const request = { method: 'DELETE' as const, path, headers, cookies: this.cookies }
    const account = this.account
    let abort = () => {}
    const reader = {
      onStart: (end: () => void) => {
        abort = end
      },
      onHead: () => 'nothing' as const,
    }
    const leaving = this.origin.askOrigin(request, reader, account, AbortSignal.timeout(GOODBYE)).then(
      ({ status }) => status,
      () => undefined,
    )
    return within(leaving, GOODBYE, () => {
      abort()
      return undefined
    })
  }

  /** Resolves when the server has no stream, or no longer has one. */
  async #listen(
    headers: OriginHeaders,
    account: Account | undefined,
    { opened, tried }: { opened: (open: boolean) => void; tried: () => void },
  ): Promise<void> {
    let failures = 0
    let conflicts = 0
    let heard = false
    let hasNone = false
    let openedAt = 0
    const reading = new Reading(this.receiver, undefined, (_headers, kind) => {
      hasNone = kind !== 'events'
      // The body of another kind is not read, because it may have no end.
      if (hasNone) return reading.abort()
      openedAt = performance.now()
      // A stream with event ids continues where it stopped; without them, messages may have been lost.
      if (heard && reading.lastId === undefined) this.receiver?.missed()
      heard = true
      opened(true)
    })
    reading.keepsRaw = true
    this.listening = reading
    while (this.alive && !this.isLeft && !reading.aborted) {
      let isTaken = false
      try {
        const { status, kind } = await this.get(headers, reading, this.account ?? account)
        // If a server ends every stream at once, the pauses grow.
        if (kind === 'events')
          failures = performance.now() - openedAt < RETRY.usual && !reading.heard ? failures + 1 : 0
        // The server has not noticed yet that the last stream is broken, or another replica still has it.
        isTaken = status === 409 && ++conflicts < MAX_CONFLICTS
        if (status < 300) conflicts = 0
        else hasNone ||= !isTaken
      } catch (error) {
        hasNone ||= error instanceof Fault
        if (!hasNone && !(error instanceof ChannelError)) throw error
        failures++
        tried()
      }
      // Its client resumes it.
      if (reading.stream) return reading.stream.end()
      if (this.isLeft) return
      if (hasNone) {
        if (heard) this.receiver?.streamLost()
        return
      }
      if (isTaken) await this.pause(backoff(conflicts, { first: RETRY.least, most: RETRY.usual }))
      else await this.pause(backoff(failures, { first: reading.retry, most: RETRY.most }))
    }
  }
}
