/** A legacy session that is identified by its channel (HTTP+SSE or stdio): all messages to the client go out there. */

import { ECHOED, printable } from '../../printable.js'
import type { Sender, Upstream } from '../../protocol/call.js'
import type { LegacyRevision } from '../../protocol/eras.js'
import { Fault } from '../../protocol/fault.js'
import type { Memory } from '../../protocol/memory.js'
import { methodTraits } from '../../protocol/methods.js'
import { error as errorMessage, type Message, type Request, result } from '../../rpc/message.js'
import type { Wire } from '../../rpc/source.js'
import { answerLost, type Send } from '../frames.js'
import type { Logger } from '../logger.js'
import type { Headers } from '../watched-messages.js'
import { readBatch, together } from './batch.js'
import { openSession } from './open-session.js'
import type { ClientSession, SessionSettings } from './session.js'

/** What a conversation needs. */
export interface ConversationOptions {
  upstream: Upstream
  sender: Pick<Sender, 'principal' | 'credential'>
  transport: 'sse' | 'stdio'
  log: Logger
  memory: Memory
  settings: SessionSettings
  /**
   * Writes one message, or `instead` if there is no memory for it. The promise resolves when there is room for more;
   * undefined if there is room now.
   */
  write(text: Wire, instead?: () => Wire): Promise<void> | undefined
}

/** Most messages of the server that wait until the answer to `initialize` is written. More are dropped. */
const MAX_EARLY = 256

/** One client on one channel: answers what it sends, and writes what is for it. */
export class Conversation {
  readonly #options: ConversationOptions
  #session: ClientSession | undefined
  #opening = false
  #closed = false

  constructor(options: ConversationOptions) {
    this.#options = options
  }

  /** The negotiated revision; undefined before the session is open. */
  get revision(): LegacyRevision | undefined {
    return this.#session?.revision
  }

  /** Number of requests in flight. */
  get open(): number {
    return this.#session?.open ?? 0
  }

  /**
   * Handles a message. Resolves when it has been answered, if it needs an answer. Rejects with a Fault if it is
   * refused. `headers` are those of its HTTP request, for the inspector.
   */
  async take(message: Exclude<Message, { kind: 'invalid' }>, headers?: Headers): Promise<void> {
    if (message.kind === 'batch') return this.#takeAll(message, headers)
    if (message.kind !== 'request') {
      this.#session?.take(message)
    } else if (message.method === 'initialize' && !this.#session) {
      await this.#openWith(message, headers)
    } else {
      const { write } = this.#options
      const lost = () => answerLost(message.id)
      await this.#answer(
        message,
        ({ text, last }) => (last?.cancelled ? undefined : write(text, last && lost)),
        headers,
      )
    }
  }

  /** Ends the session. */
  close(): void {
    this.#closed = true
    this.#session?.close()
  }

  async #openWith(request: Request, headers: Headers): Promise<void> {
    if (this.#opening) throw new Fault('invalidRequest', 'initialize is already in progress')
    this.#opening = true
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
      // Nothing to do: if the server loses its session, the tunnel opens another one.
      ended: () => {},
    }
    const { text, session } = await openSession(request, { ...this.#options, outlet, headers })
    this.#opening = false
    this.#session = session
    if (this.#closed) return session?.close()
    await write(text)
    opened = true
    for (const message of early) await write(message)
    session?.listened()
  }

  async #answer(request: Request, send: Send, headers: Headers): Promise<void> {
    const last = { status: 200 }
    if (this.#session) await this.#session.answer(request, send, undefined, headers)
    else if (request.method === 'ping') await send({ text: result(request.id, '{}'), last })
    else await send({ text: errorMessage(request.id, outsideSession(request).toRpcError()), last })
  }

  async #takeAll(batch: Message & { kind: 'batch' }, headers: Headers): Promise<void> {
    const { requests, others, errors } = readBatch(batch)
    for (const message of others) this.#session?.take(message)
    const answers: Wire[] = [...errors]
    const send: Send = ({ text, last }) => {
      if (!last) return this.#options.write(text)
      if (!last.cancelled) answers.push(text)
      return undefined
    }
    await Promise.all(requests.map((request) => this.#answer(request, send, headers)))
    if (answers.length > 0) await this.#options.write(together(answers))
  }
}

/**
 * Refuses a request before `initialize`. A client that tries a modern method to detect the era gets "method not found",
 * and then sends `initialize`.
 */
function outsideSession({ method }: Request): Fault {
  return methodTraits(method).eras === 'modern'
    ? new Fault('methodNotFound', `Method not found: ${printable(method, ECHOED)}`)
    : new Fault('invalidRequest', 'Session required: call initialize first')
}
