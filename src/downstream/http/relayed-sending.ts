/**
 * Sends one relayed request to the server: with the credential of the account, which is replaced if the server refuses it,
 * along redirects, and again after a failed connection.
 */

import type { Readable } from 'node:stream'
import type { FastifyRequest } from 'fastify'
import { type AccountRefusal, needsSignIn } from '../../fault/fault.js'
import type { RelayedRecorder } from '../../ports/recorder.js'
import { type Account, MAX_RETRIES, needsProof, refusedCredential } from '../../protocol/account.js'
import type { TraceContext } from '../../protocol/trace.js'
import type { Relayed, Revise, SessionCookies } from '../../protocol/upstream.js'
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

/** An answer of the server, as undici gives it: its headers, and its body as a stream. */
export interface RelayedResponse {
  statusCode: number
  headers: RelayedHeaders
  body: Readable & { dump(): Promise<void> }
}

/** The connections to the server: a dispatcher of undici. */
export interface RelayedConnections {
  request(options: object, done: (error: Error | null, response?: RelayedResponse) => void): void
}

/** The request, and the server to which it is sent. */
export interface SendingParts {
  request: FastifyRequest
  passing: Passing
  relayed: Relayed
  /** Undefined until undici is loaded. */
  connections: RelayedConnections | undefined
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
  answered(response: RelayedResponse): void
  failed(error: Error): void
  /** The account has no credential. */
  cannotSend(error: unknown): void
}

/** The highest HTTP status. */
const MAX_STATUS = 599

export class RelayedSending {
  readonly #parts: SendingParts
  readonly #sender: RelayedSender
  /** The account's `Authorization` and `DPoP`; undefined if it has none. */
  #authorization: string | undefined
  #proof: string | undefined
  #retries = 0

  constructor(parts: SendingParts, sender: RelayedSender) {
    this.#parts = parts
    this.#sender = sender
  }

  /** The path of the request at the server. */
  get path(): string {
    const { relayed, request } = this.#parts
    return relayed.redirects.pathFor(request.principal)
  }

  /** The headers to send to the server. */
  get headers(): RelayedHeaders {
    const { request, relayed, passing, sessions } = this.#parts
    const { cookies, trace } = this.#sender
    // `initialize` opens a session. A session id in it could give the client somebody else's session.
    const sent = { ...passing.context, ...sentOn(request.headers, !passing.opens) }
    const session = headerOf(sent, 'mcp-session-id')
    if (session !== undefined && sessions.isOurs(session)) delete sent['mcp-session-id']
    const credential = this.#authorization ?? request.credential
    if (credential !== undefined) sent['authorization'] = credential
    if (this.#proof !== undefined) sent['dpop'] = this.#proof
    if (trace) Object.assign(sent, { tracestate: undefined, ...trace })
    const all = { ...sent, 'accept-encoding': 'identity', ...relayed.headers }
    return cookies?.addTo(this.path, all) ?? all
  }

  /** Sends the request as soon as the credential of the account has been obtained. */
  start(): void {
    const { account } = this.#parts
    if (!account) return this.#send()
    try {
      const credential = account.authorization(this.#sender.signal)
      if (typeof credential === 'object' || needsProof(credential))
        return this.#sendAfter(this.#take(account, credential))
      this.#authorization = credential
      this.#send()
    } catch (error) {
      this.#sender.cannotSend(error)
    }
  }

  /** The server's refusal of the account's credential; undefined for other answers, or if it was replaced too often. */
  refusedBy({ statusCode, headers }: RelayedResponse): AccountRefusal | undefined {
    if (!this.#parts.account) return undefined
    const challenge = headers['www-authenticate']
    const refusal = refusedCredential(statusCode, challenge, this.#authorization, headerOf(headers, 'dpop-nonce'))
    return refusal && this.#retries++ < MAX_RETRIES ? refusal : undefined
  }

  /** Sends the request again with another credential. The server has not acted on the first attempt. */
  again(refusal: AccountRefusal): void {
    const { account } = this.#parts
    if (account) this.#sendAfter(this.#replace(account, refusal))
  }

  #sendAfter(obtaining: Promise<void>): void {
    obtaining.then(() => this.#sender.isOver || this.#send()).catch((error: unknown) => this.#sender.cannotSend(error))
  }

  /** A person may be asked to sign in for a client's request that waits for its answer. Rejects with a Fault. */
  async #replace(account: Account, refusal: AccountRefusal): Promise<void> {
    const { signal } = this.#sender
    try {
      await this.#take(account, account.refused(refusal, signal))
    } catch (error) {
      if (this.#parts.passing.endless || !needsSignIn(error) || !error.signInFor) throw error
      await this.#take(account, account.signIn(error.signInFor, signal))
    }
  }

  async #take(account: Account, obtaining: string | Promise<string | undefined>): Promise<void> {
    const { request, relayed } = this.#parts
    const authorization = await obtaining
    this.#authorization = authorization
    const at = { method: request.method, url: relayed.url.origin + this.path }
    this.#proof = needsProof(authorization) ? await account.proof?.({ authorization, ...at }) : undefined
  }

  /**
   * Sends the request, and follows redirects. Repeats it once after a failed connection, because the server may have closed
   * a kept-alive one; but only if it cannot act on the request twice.
   */
  #send(): void {
    const { request, relayed, passing, connections, messages } = this.#parts
    const sender = this.#sender
    const { signal } = sender
    const { redirects, url } = relayed
    const { method, principal } = request
    messages?.sent()
    const { headers } = this
    const body = request.body instanceof Uint8Array ? request.body : null
    if (body) headers['content-type'] ??= 'application/json'
    const ask = (path: string, times: number, again = false): void =>
      connections?.request({ method, headers, body, origin: url.origin, path, signal }, (error, response) => {
        if (error && !again && !signal.aborted && relayed.mayRepeat(error, passing.method))
          return ask(path, times, true)
        if (error || !response) return sender.failed(error ?? new Error('No answer'))
        const { statusCode: status } = response
        const next = redirects.next(principal, path, { status, headers: response.headers }, times)
        if (next !== undefined) {
          response.body.dump().catch(() => {})
          ask(next, times + 1, again)
        } else if (status > MAX_STATUS) {
          discard(response.body)
          sender.failed(new Error(`The server answered with HTTP ${status}`))
        } else sender.answered(response)
      })
    ask(redirects.pathFor(principal), 0)
  }
}

/** Destroys a body that is not read. It emits an error then, which must not be thrown. */
export function discard(body: Readable): void {
  body.on('error', () => {}).destroy()
}
