/** A legacy session on a channel of its own, HTTP+SSE or a pipe: all that is said to the client goes out in one place. */

import { ECHOED, printable } from '../../printable.js'
import type { Sender, Upstream } from '../../protocol/call.js'
import type { LegacyRevision } from '../../protocol/eras.js'
import { Fault } from '../../protocol/fault.js'
import type { Memory } from '../../protocol/memory.js'
import { methodTraits } from '../../protocol/methods.js'
import { error as errorMessage, type Message, type Request, result } from '../../rpc/message.js'
import type { Wire } from '../../rpc/source.js'
import type { Logger } from '../call-log.js'
import { answerLost, type Frame } from '../frames.js'
import { readBatch, together } from './batch.js'
import { openSession } from './open-session.js'
import type { ClientSession, SessionSettings } from './session.js'

export interface ConversationOptions {
  upstream: Upstream
  sender: Pick<Sender, 'principal' | 'credential'>
  transport: 'sse' | 'stdio'
  log: Logger
  memory: Memory
  settings: SessionSettings
  /**
   * Says one message, or `instead` where there is no memory for it. What it gives back resolves when there is room for more.
   */
  write(text: Wire, instead?: () => Wire): Promise<void> | undefined
}

/** Messages of the server that wait for the answer to `initialize` to be written. */
const MAX_EARLY = 256

export class Conversation {
  readonly #options: ConversationOptions
  #session: ClientSession | undefined
  #opening = false
  #closed = false

  constructor(options: ConversationOptions) {
    this.#options = options
  }

  /** What was negotiated; undefined before the session is open. */
  get revision(): LegacyRevision | undefined {
    return this.#session?.revision
  }

  get open(): number {
    return this.#session?.open ?? 0
  }

  /** Takes a message, and resolves when it has been answered, if it is to be. Rejects with a Fault where it is refused whole. */
  async take(message: Exclude<Message, { kind: 'invalid' }>): Promise<void> {
    if (message.kind === 'batch') return this.#takeAll(message)
    if (message.kind !== 'request') {
      this.#session?.take(message)
    } else if (message.method === 'initialize' && !this.#session) {
      await this.#openWith(message)
    } else {
      const { write } = this.#options
      const lost = () => answerLost(message.id)
      for await (const { text, last } of this.#answer(message)) {
        if (!last?.cancelled) await write(text, last && lost)
      }
    }
  }

  close(): void {
    this.#closed = true
    this.#session?.close()
  }

  async #openWith(request: Request): Promise<void> {
    if (this.#opening) throw new Fault('invalidRequest', 'The session is being opened already')
    this.#opening = true
    const { write } = this.#options
    // What the server says before the client has its answer waits until then.
    const early: Wire[] = []
    let opened = false
    const outlet = {
      deliver: (text: Wire) => {
        if (opened) write(text)?.catch(() => {})
        else if (early.length < MAX_EARLY) early.push(text)
      },
      isIdle: () => false,
      // A session that the server has lost is opened again.
      ended: () => {},
    }
    const { text, session } = await openSession(request, { ...this.#options, outlet })
    this.#opening = false
    this.#session = session
    if (this.#closed) return session?.close()
    await write(text)
    opened = true
    for (const message of early) await write(message)
    session?.listened()
  }

  async *#answer(request: Request): AsyncGenerator<Frame, void> {
    const last = { status: 200 }
    if (this.#session) {
      yield* this.#session.answer(request)
    } else if (request.method === 'ping') {
      yield { text: result(request.id, '{}'), last }
    } else {
      yield { text: errorMessage(request.id, outsideSession(request).toRpcError()), last }
    }
  }

  async #takeAll(batch: Message & { kind: 'batch' }): Promise<void> {
    const { requests, others, errors } = readBatch(batch)
    for (const message of others) this.#session?.take(message)
    const answers: Wire[] = [...errors]
    await Promise.all(
      requests.map(async (request) => {
        for await (const { text, last } of this.#answer(request)) {
          if (!last) await this.#options.write(text)
          else if (!last.cancelled) answers.push(text)
        }
      }),
    )
    if (answers.length > 0) await this.#options.write(together(answers))
  }
}

/** Who asks in this way whether the other era is spoken here has to hear that it is not: then it goes on to initialize. */
function outsideSession({ method }: Request): Fault {
  return methodTraits(method).eras === 'modern'
    ? new Fault('methodNotFound', `Method not found: ${printable(method, ECHOED)}`)
    : new Fault('invalidRequest', 'Session required: call initialize first')
}
