/** A legacy session on a channel of its own (HTTP+SSE or stdio), which carries all messages to the client. */

import { Fault } from '../../base/fault/fault.js'
import {
  error as errorMessage,
  type Message,
  type Notification,
  type Request,
  type Response,
  result,
} from '../../base/rpc/message.js'
import type { Wire } from '../../base/rpc/source.js'
import { ECHOED, printable } from '../../base/texts/printable.js'
import type { ProcessSession } from '../../mcp/protocol/classify.js'
import type { LegacyRevision } from '../../mcp/protocol/eras.js'
import { methodTraits } from '../../mcp/protocol/methods.js'
import { answerLost, type Frame, type Send } from '../frames.js'
import { readBatch, together } from './batch.js'
import { openSession } from './open-session.js'
import type { AboutRequest, ClientSession, OpenOptions, SessionPlace } from './session.js'

export interface ConversationOptions extends SessionPlace, Pick<OpenOptions, 'sender' | 'memory'> {
  transport: 'sse' | 'stdio'
  /**
   * Writes one message, or `instead` if there is no memory for it. The promise resolves when there is room for more;
   * undefined if there is room now.
   */
  write(text: Wire, instead?: () => Wire): Promise<void> | undefined
}

/** Most messages of the server that wait until the answer to `initialize` is written. More are dropped. */
const MAX_EARLY = 256
/** Most messages of the client that wait for the answer to `initialize`. */
const MAX_BEFORE_INITIALIZED = 256

/** Requests that are answered while `initialize` is in progress; the second `initialize` with an error. */
const EARLY: ReadonlySet<string> = new Set(['initialize', 'ping'])

/** One client on one channel: handles its messages, and writes the messages for it. */
export class Conversation {
  #options: ConversationOptions
  #session: ClientSession | undefined
  /** The session before it moved or before another one was opened, while requests are in flight in it. */
  #former: ClientSession | undefined
  /** Why the last `initialize` failed. Later requests of the client get the same error. */
  #failed: Fault | undefined
  /** `initialize` is in progress. */
  #opening = false
  /** Callbacks that wait for its answer, in order. */
  readonly #waiting: (() => void)[] = []
  #closed = false

  constructor(options: ConversationOptions) {
    this.#options = options
  }

  /** The negotiated revision; undefined before the session is open. */
  get revision(): LegacyRevision | undefined {
    return this.#session?.revision
  }

  /** The state of the session. It is open when the answer to `initialize` has been written. */
  get state(): ProcessSession {
    if (this.#opening) return 'opening'
    if (this.#session) return { revision: this.#session.revision }
    return this.#failed ? 'failed' : 'none'
  }

  /** Resolves when `initialize` has been answered; undefined if none is in progress. */
  get opened(): Promise<void> | undefined {
    return this.#opening ? new Promise((resolve) => this.#waiting.push(resolve)) : undefined
  }

  /** A promise to wait for before another message is read; undefined if there is room for more. */
  get room(): Promise<void> | undefined {
    return this.#waiting.length < MAX_BEFORE_INITIALIZED ? undefined : this.opened
  }

  /**
   * A promise that this message has to wait for; undefined if it need not wait. Scripts send all their messages at once,
   * without waiting for the answer to `initialize`. Throws a Fault if too many messages wait.
   */
  turn(message: Message): Promise<void> | undefined {
    if (!this.#opening || (message.kind === 'request' && EARLY.has(message.method))) return undefined
    if (this.#waiting.length >= MAX_BEFORE_INITIALIZED)
      throw new Fault('overloaded', `Over ${MAX_BEFORE_INITIALIZED} messages wait for the answer to initialize`, {
        retryAfter: 1,
      })
    return this.opened
  }

  /** Number of requests in flight, `initialize` among them. */
  get open(): number {
    return (this.#session?.open ?? 0) + (this.#opening ? 1 : 0)
  }

  /**
   * Handles a message. Resolves when it has been answered, if it needs an answer. Rejects with a Fault if it is
   * refused.
   */
  async take(message: Exclude<Message, { kind: 'invalid' }>, about: AboutRequest = {}): Promise<void> {
    if (this.#closed) return undefined
    if (message.kind === 'batch') return this.#takeAll(message, about)
    if (message.kind !== 'request') {
      this.#take(message)
    } else if (message.method === 'initialize' && (!this.#session || this.#options.transport === 'stdio')) {
      await this.#open(message, about)
    } else {
      const { write } = this.#options
      const lost = () => answerLost(message.id)
      const send: Send = ({ text, last }) => (this.#isUnwanted(last) ? undefined : write(text, last && lost))
      await this.#answer(message, send, about)
    }
  }

  /** Ends the session. */
  close(): void {
    this.#closed = true
    this.#session?.close()
    this.#former?.close()
  }

  /** Goes on at another server or group. Requests in flight end where they are. */
  move(to: SessionPlace): void {
    this.#options = { ...this.#options, ...to }
    const { opened } = this
    if (opened) opened.then(() => this.#move()).catch(() => {})
    else this.#move()
  }

  #move(): void {
    const session = this.#session
    if (!session || this.#closed) return
    try {
      this.#session = session.moved?.(this.#options)
    } catch (error) {
      this.#failed = Fault.from(error)
      this.#session = undefined
    }
    if (this.#session === session) return
    this.#session?.listened()
    this.#former?.close()
    this.#former = session
  }

  #take(message: Notification | Response): void {
    this.#session?.take(message)?.catch(() => {})
    const isForFormer = message.kind === 'response' || message.method === 'notifications/cancelled'
    if (isForFormer && this.#former && this.#former.open > 0) this.#former.take(message)?.catch(() => {})
  }

  async #open(request: Request, about: AboutRequest): Promise<void> {
    if (this.#opening) throw new Fault('invalidRequest', 'initialize is already in progress')
    this.#opening = true
    this.#leave()
    try {
      await this.#openWith(request, about)
    } finally {
      this.#opening = false
      for (const resume of this.#waiting.splice(0)) resume()
    }
  }

  /** Leaves the open session for another one. Requests in flight are answered all the same. */
  #leave(): void {
    const session = this.#session
    if (!session) return
    this.#session = undefined
    // Its process can serve the next session, unless it is busy.
    if (session.open === 0) return session.close()
    this.#former?.close()
    this.#former = session
  }

  async #openWith(request: Request, { headers }: AboutRequest): Promise<void> {
    const { write } = this.#options
    // Messages of the server wait until the client has its answer.
    const early: Wire[] = []
    let opened = false
    const outlet = {
      deliver: (text: Wire) => {
        if (opened) write(text)?.catch(() => {})
        else if (early.length < MAX_EARLY) early.push(text)
      },
      isIdle: () => false,
      // Nothing to do: a direct session is opened again if the server loses it.
      ended: () => {},
    }
    const { text, last, session } = await openSession(request, { ...this.#options, outlet, headers })
    this.#session = session
    this.#failed = last.fault
    if (this.#closed) return session?.close()
    await write(text)
    opened = true
    for (const message of early) await write(message)
    session?.listened()
  }

  async #answer(request: Request, send: Send, about: AboutRequest): Promise<void> {
    const last = { status: 200 }
    if (this.#session) await this.#session.answerClient(request, send, about)
    else if (request.method === 'ping') await send({ text: result(request.id, '{}'), last })
    else await send({ text: errorMessage(request.id, outsideSession(request, this.#failed).toRpcError()), last })
  }

  /** Whether nobody waits for an answer. */
  #isUnwanted(last: Frame['last']): boolean {
    return last !== undefined && (this.#closed || last.cancelled !== undefined)
  }

  async #takeAll(batch: Message & { kind: 'batch' }, about: AboutRequest): Promise<void> {
    const { requests, others, errors } = readBatch(batch)
    for (const message of others) this.#take(message)
    const answers: Wire[] = [...errors]
    const send: Send = ({ text, last }) => {
      if (!last) return this.#options.write(text)
      if (!this.#isUnwanted(last)) answers.push(text)
      return undefined
    }
    await Promise.all(requests.map((request) => this.#answer(request, send, about)))
    if (answers.length > 0) await this.#options.write(together(answers))
  }
}

/**
 * Refuses a request before `initialize`, or after it `failed`. A client that tries a modern method to detect the era gets
 * "method not found", and then sends `initialize`.
 */
function outsideSession({ method }: Request, failed: Fault | undefined): Fault {
  return methodTraits(method).eras === 'modern'
    ? new Fault('methodNotFound', `Method not found: ${printable(method, ECHOED)}`)
    : (failed ?? new Fault('invalidRequest', 'Session required: call initialize first'))
}
