/**
 * Sends one relayed request to the server: with the headers that go on, and again after a failed connection.
 */

import { Readable } from 'node:stream'
import type { FastifyRequest } from 'fastify'
import { Fault, needsSignIn } from '../../fault/fault.js'
import type { RelayedRecorder } from '../../ports/recorder.js'
import type { Account } from '../../protocol/account.js'
import type { TraceContext } from '../../protocol/trace.js'
import type { BodyFlow, Relayed, RelayedAnswer, RelayedSent, Revise, SessionCookies } from '../../protocol/upstream.js'
import type { Id } from '../../rpc/message.js'
import { headerOf } from '../../texts/headers.js'
import type { Signal } from '../../time/hang-up.js'
import { type RelayedHeaders, sentOn } from './relay-headers.js'
import type { RelayedSessions } from './relayed-sessions.js'

/** What is known about a request without parsing its body again. */
export interface Passing {
  method: string
  name?: string | undefined
  id?: Id | undefined
  /** The ids of the requests in a batch. */
  ids?: readonly Id[] | undefined
  /** The answer is an endless stream. */
  endless: boolean
  /** Whether it needs no answer; undefined if its body has not been parsed. */
  silent?: boolean | undefined
  /** The request is `initialize`, whose answer has the id of a session. */
  opens: boolean
  /** It continues a call in progress: the client answers a request of the server. */
  goesOn?: boolean
  /** Revises the results in the answer; undefined if it passes unchanged. */
  revise?: Revise | undefined
  /** The id of the request of the server that it answers. */
  answers?: Id | undefined
  /** What `_meta` says about the trace, for a request whose headers do not say it. */
  context?: Readonly<Record<string, string>> | undefined
}

/** The request, and the server to which it is sent. */
export interface SendingParts {
  request: FastifyRequest
  passing: Passing
  relayed: Relayed
  /** The account whose credential is sent, if the bridge signs in to the server. */
  account: Account | undefined
  sessions: Pick<RelayedSessions, 'isOurs'>
  /** Records the messages; undefined if they are not recorded. */
  messages: RelayedRecorder | undefined
}

/** Sends the request, and takes the answer. */
export interface RelayedSender {
  readonly signal: Signal
  readonly cookies: SessionCookies | undefined
  readonly trace: TraceContext | undefined
  /** The reply is over, or the request is answered in another way. */
  readonly isOver: boolean
  answered(answer: RelayedAnswer<Readable>): void
  failed(error: Error): void
  /** The account has no credential. */
  cannotSend(error: unknown): void
}

export class RelayedSending {
  readonly #parts: SendingParts
  readonly #sender: RelayedSender

  constructor(parts: SendingParts, sender: RelayedSender) {
    this.#parts = parts
    this.#sender = sender
  }

  /** The headers to send to the server, without the credential of an account, and without cookies. */
  get headers(): RelayedHeaders {
    const { request, passing, sessions } = this.#parts
    const { trace } = this.#sender
    // `initialize` opens a session. A session id in it could give the client somebody else's session.
    const sent = { ...passing.context, ...sentOn(request.headers, !passing.opens) }
    const session = headerOf(sent, 'mcp-session-id')
    if (session !== undefined && sessions.isOurs(session)) delete sent['mcp-session-id']
    const { credential } = request
    Object.assign(sent, credential)
    if (trace) Object.assign(sent, { tracestate: undefined, ...trace })
    return sent
  }

  /**
   * Sends the request. Repeats it once after a failed connection, because the server may have closed a kept-alive one; but
   * only if it cannot act on the request twice.
   */
  send(again = false): void {
    const { request, relayed, passing, messages, account } = this.#parts
    const sender = this.#sender
    const { principal } = request
    const { cookies } = sender
    const method = request.method as RelayedSent['method']
    messages?.sent()
    const { headers } = this
    const body = request.body instanceof Uint8Array ? request.body : undefined
    if (body) headers['content-type'] ??= 'application/json'
    relayed
      .send(
        { method, headers, body, principal, cookies, account: account && this.#patient(account) },
        sender.signal,
        (flow) => new Body(flow),
      )
      .then(
        (answer) => {
          if (!sender.isOver) sender.answered(answer)
          else if (answer.stream) discard(answer.stream)
        },
        (error: unknown) => {
          if (sender.isOver) return
          if (!(error instanceof Error) || error instanceof Fault) sender.cannotSend(error)
          else if (!again && !sender.signal.aborted && relayed.mayRepeat(error, passing.method)) this.send(true)
          else sender.failed(error)
        },
      )
  }

  /** The account for a client's request that waits for its answer: then a person may be asked to sign in. */
  #patient(account: Account): Account {
    if (this.#parts.passing.endless) return account
    return {
      authorization: (signal) => account.authorization(signal),
      refused: (refusal, signal) =>
        account.refused(refusal, signal).catch((error: unknown) => {
          if (!needsSignIn(error) || !error.signInFor) throw error
          return account.signIn(error.signInFor, signal)
        }),
      signIn: (...asked) => account.signIn(...asked),
      ...(account.proof && { proof: (proven) => account.proof?.(proven) as Promise<string> }),
      nonce: (nonce) => account.nonce?.(nonce),
    }
  }
}

/** The body of an answer. Destroying it ends the request. */
class Body extends Readable {
  readonly #flow: BodyFlow

  constructor(flow: BodyFlow) {
    super()
    this.#flow = flow
  }

  override _read(): void {
    this.#flow.resume()
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    if (!this.readableEnded) this.#flow.abort(error ?? new Error('The answer is not needed any more'))
    done(error)
  }
}

/** Destroys a body that is not read. It emits an error then, which must not be thrown. */
export function discard(body: Readable): void {
  body.on('error', () => {}).destroy()
}
