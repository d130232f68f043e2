/** Streamable HTTP towards a server: a POST per message, answers as JSON or as events, streams taken up again. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { SseDecoder, SseEvent } from '../rpc/sse.js'
import { type Channel, ChannelError, type Outgoing, type Receiver, type Transport } from './channel.js'
import {
  type Answer,
  type AnswerHeaders,
  type BodyKind,
  type Headers,
  Origin,
  type OriginOptions,
  onSameOrigin,
} from './origin.js'

/** Milliseconds. */
const RETRY = { usual: 1_000, least: 100, most: 30_000 }
/** Milliseconds that a server may keep a stream open after the answer. */
const AFTER_ANSWER = 1_000
const MAX_REDIRECTS = 3
/** Times in a row that taking up a stream again may fail. */
const MAX_FAILURES = 3
const REFUSAL_BODY = 64 * 1024
/** Visible ASCII, as a session id has to be (MCP 2025-11-25, basic/transports, session management). */
const SESSION_ID = /^[\x21-\x7e]{1,1024}$/

export class HttpTransport implements Transport {
  readonly kind = 'http'
  readonly target: string
  readonly #origin: Origin

  constructor(options: OriginOptions) {
    this.#origin = new Origin(options)
    this.target = options.url.origin + options.url.pathname
  }

  open(): Promise<Channel> {
    return Promise.resolve(new HttpChannel(this.#origin))
  }

  close(): Promise<void> {
    return this.#origin.close()
  }
}

/** Where a stream of events stands: what it takes to take it up again. */
interface Position {
  lastId: string | undefined
  retry: number
}

class HttpChannel implements Channel {
  readonly transport = 'http'
  readonly shared = false
  readonly #origin: Origin
  readonly #aborts = new Map<number, () => void>()
  readonly #closing = new AbortController()
  #path: string
  #receiver: Receiver | undefined
  #sessionId: string | undefined

  constructor(origin: Origin) {
    this.#origin = origin
    this.#path = origin.url.pathname + origin.url.search
  }

  get alive(): boolean {
    return !this.#closing.signal.aborted
  }

  attach(receiver: Receiver): void {
    this.#receiver = receiver
  }

  async send(message: Outgoing): Promise<void> {
    if (!this.alive) throw new ChannelError('The channel is closed', { delivered: 'no' })
    const { exchange, headers = {} } = message
    const position: Position = { lastId: undefined, retry: RETRY.usual }
    try {
      await this.#post(message, position)
      if (exchange !== undefined) await this.#resume(exchange, headers, position)
    } finally {
      if (exchange !== undefined) this.#aborts.delete(exchange)
    }
  }

  abandon(exchange: number): void {
    this.#aborts.get(exchange)?.()
  }

  /** Opens the GET stream and keeps it open. Resolves to false where the server has none. */
  listen(headers: Headers): Promise<boolean> {
    return new Promise((resolve) => {
      this.#listen(headers, resolve).catch(() => resolve(false))
    })
  }

  async close(): Promise<void> {
    if (!this.alive) return
    this.#closing.abort()
    for (const abort of this.#aborts.values()) abort()
    if (this.#sessionId === undefined) return
    // A server may decline to have its session ended; then it will have to forget it by itself.
    const reader = { head: (): BodyKind => 'nothing' }
    await this.#origin
      .ask({ method: 'DELETE', path: this.#path, headers: this.#sessionHeader() }, reader)
      .catch(() => {})
  }

  async #post({ text, exchange, headers }: Outgoing, position: Position): Promise<void> {
    const question = {
      method: 'POST' as const,
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers },
      body: text,
    }
    const answer = await this.#ask(question, exchange, position, (status, answerHeaders) => {
      if (status < 300) this.#adoptSession(answerHeaders)
      return bodyKind(status, answerHeaders)
    })
    refuse(answer)
    if (exchange === undefined) return
    if (answer.kind === 'text') this.#receiver?.message(answer.text, exchange)
    else if (answer.kind === 'nothing') {
      const type = answer.headers['content-type'] ?? 'no content type'
      throw new ChannelError(`The server answered with ${answer.status} and ${type} instead of a message`, {
        protocol: true,
      })
    }
  }

  /**
   * A server may close a stream before the answer and be asked for the rest later (SEP-1699); a connection may break.
   * Either way the stream is taken up where it stopped, if it said where that was.
   */
  async #resume(exchange: number, headers: Headers, position: Position): Promise<void> {
    let failures = 0
    while (this.#receiver?.waiting(exchange)) {
      const { lastId } = position
      if (lastId === undefined) throw new ChannelError('The server closed the stream without an answer')
      await sleep(Math.min(Math.max(position.retry, RETRY.least), RETRY.most), undefined, {
        signal: this.#closing.signal,
      })
      const question = {
        method: 'GET' as const,
        headers: { accept: 'text/event-stream', ...headers, 'last-event-id': lastId },
      }
      try {
        const answer = await this.#ask(question, exchange, position, bodyKind)
        if (answer.status >= 300) throw new ChannelError('The server does not take up the stream again')
        failures = 0
      } catch (error) {
        if (++failures >= MAX_FAILURES || !(error instanceof ChannelError) || error.delivered !== 'maybe') throw error
      }
    }
  }

  async #listen(headers: Headers, opened: (open: boolean) => void): Promise<void> {
    const position: Position = { lastId: undefined, retry: RETRY.usual }
    for (let failures = 0; this.alive; ) {
      const { lastId } = position
      const question = {
        method: 'GET' as const,
        headers: { accept: 'text/event-stream', ...headers, ...(lastId !== undefined && { 'last-event-id': lastId }) },
      }
      try {
        const answer = await this.#ask(question, undefined, position, (status, answerHeaders) => {
          const kind = bodyKind(status, answerHeaders)
          if (status < 300 && kind === 'events') {
            failures = 0
            opened(true)
          }
          return kind
        })
        // 409: the server still sees the stream that has just broken.
        if (answer.status >= 300 && (answer.status !== 409 || ++failures > MAX_FAILURES)) return opened(false)
      } catch (error) {
        if (!(error instanceof ChannelError)) throw error
        failures++
      }
      const wait = Math.min(Math.max(position.retry * 2 ** failures, RETRY.least), RETRY.most)
      await sleep(wait, undefined, { signal: this.#closing.signal })
    }
  }

  async #ask(
    question: { method: 'GET' | 'POST'; headers: Headers; body?: string },
    exchange: number | undefined,
    position: Position,
    head: (status: number, headers: AnswerHeaders) => BodyKind,
  ): Promise<Answer> {
    for (let redirects = 0; ; redirects++) {
      let abort = () => {}
      let over: NodeJS.Timeout | undefined
      const onEvent = (event: SseEvent, decoder: SseDecoder) => {
        position.lastId = event.id ?? position.lastId
        position.retry = decoder.retry ?? position.retry
        if (event.data !== '' && event.event === 'message') this.#receiver?.message(event.data, exchange)
        if (exchange !== undefined && !this.#receiver?.waiting(exchange)) over ??= setTimeout(abort, AFTER_ANSWER)
      }
      const asked = { ...question, path: this.#path, headers: { ...question.headers, ...this.#sessionHeader() } }
      const closing = this.#closing.signal
      const onClose = () => abort()
      closing.addEventListener('abort', onClose)
      try {
        const answer = await this.#origin.ask(asked, { head, event: onEvent }, (stop) => {
          abort = stop
          if (exchange !== undefined) this.#aborts.set(exchange, stop)
        })
        if (!this.#follows(answer, redirects)) return answer
      } catch (error) {
        // A stream that broke after it had said where it stood can be taken up again.
        if (position.lastId === undefined || closing.aborted) throw error
        return { status: 200, kind: 'events', headers: {}, text: '' }
      } finally {
        clearTimeout(over)
        closing.removeEventListener('abort', onClose)
      }
    }
  }

  /** Redirects are followed on the same origin only, where no credential gets into other hands. */
  #follows({ status, headers }: Answer, redirects: number): boolean {
    if (status !== 307 && status !== 308) return false
    const target = onSameOrigin(headers['location'], this.#origin.url)
    if (!target || redirects >= MAX_REDIRECTS)
      throw new ChannelError('The server redirects to somewhere else', { delivered: 'no', protocol: true })
    this.#path = target.pathname + target.search
    return true
  }

  #adoptSession(headers: AnswerHeaders): void {
    const id = headers['mcp-session-id']
    if (id === undefined || this.#sessionId !== undefined) return
    if (!SESSION_ID.test(id))
      throw new ChannelError('The server gave a session id that is no visible ASCII', { protocol: true })
    this.#sessionId = id
  }

  #sessionHeader(): Headers {
    return this.#sessionId === undefined ? {} : { 'mcp-session-id': this.#sessionId }
  }
}

function bodyKind(status: number, headers: AnswerHeaders): BodyKind {
  if (status >= 300) return 'text'
  const type = headers['content-type']?.split(';', 1)[0]?.trim().toLowerCase()
  if (type === 'text/event-stream') return 'events'
  return type === 'application/json' ? 'text' : 'nothing'
}

function refuse({ status, headers, text }: Answer): void {
  if (status < 300) return
  const seconds = Number(headers['retry-after'])
  throw new ChannelError(`The server answered with HTTP ${status}`, {
    refusal: {
      status,
      body: text.slice(0, REFUSAL_BODY),
      contentType: headers['content-type'],
      retryAfter: Number.isFinite(seconds) && seconds >= 0 ? seconds : undefined,
    },
  })
}
