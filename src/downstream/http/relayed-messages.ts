/** Tells the inspector the messages of a relayed request. Each is the same on both wires. */
import type { MessageSeen } from '../../ports/seen.js'
import { type Message, parseMessage } from '../../rpc/message.js'
import { receivedHead } from '../../rpc/received.js'
import { lengthOf, sourceOfBytes } from '../../rpc/source.js'
import { type Json, raw } from '../../rpc/splice.js'
import { SseDecoder } from '../../rpc/sse.js'
import type { Logger } from '../logger.js'

/** What the messages belong to. */
interface About {
  call: string
  session: string | undefined
}

/** Most bytes of a message that are parsed. Of a larger one only the size is told. */
const MAX_PARSED = 64 * 1024

/** What passes for one call. */
export class RelayedMessages {
  readonly #logger: Logger
  readonly #about: About
  /** Undefined after an event that is too large: later ones are not told. */
  #events: SseDecoder | undefined = new SseDecoder(MAX_PARSED)

  constructor(logger: Logger, about: About) {
    this.#logger = logger
    this.#about = about
  }

  /** The client's message. */
  request(body: Uint8Array): void {
    this.#pass('client', [body], 'request')
  }

  /** The whole answer, or its beginning if that is larger than what is parsed. `length` is that of the whole. */
  answer(bytes: Uint8Array, length = bytes.length): void {
    this.#pass('server', [bytes], 'result', length)
  }

  /** A part of the answer that is a stream of events. */
  chunk(bytes: Uint8Array): void {
    if (!this.#events) return
    try {
      for (const { data } of this.#events.push(bytes)) if (data.length > 0) this.#pass('server', data, 'notification')
    } catch {
      this.#events = undefined
      const text = `Messages of ${this.#about.call} are missing: an event is larger than ${MAX_PARSED / 1024} KiB`
      this.#logger.telemetry?.watch?.witness({ kind: 'lost', text, server: this.#logger.telemetry.server })
    }
  }

  #pass(
    from: 'client' | 'server',
    text: readonly Uint8Array[],
    form: MessageSeen['form'],
    length = lengthOf(text),
  ): void {
    const { telemetry } = this.#logger
    if (!telemetry?.watch) return
    const { watch, server } = telemetry
    const message = length > MAX_PARSED ? undefined : read(text)
    const what = message && message.kind !== 'batch' && message.kind !== 'invalid' ? receivedHead(message) : undefined
    for (const hop of from === 'client' ? (['client', 'server'] as const) : (['server', 'client'] as const))
      watch.witness(
        {
          kind: 'message',
          hop,
          dir: hop === from ? 'in' : 'out',
          form: what?.form ?? form,
          method: what?.method,
          id: what?.id,
          bytes: length,
          changes: hop === from ? undefined : [],
          server,
          call: this.#about.call,
          session: this.#about.session,
        },
        text,
      )
  }
}

/** The `requestState` of a request that continues another one. */
export function stateIn(body: Uint8Array): Json | undefined {
  const message = body.length <= MAX_PARSED ? read([body]) : undefined
  return message?.kind === 'request' && typeof message.params !== 'string'
    ? raw(message.params, 'requestState')
    : undefined
}

function read(text: readonly Uint8Array[]): Message | undefined {
  try {
    return parseMessage(sourceOfBytes(text))
  } catch {
    return undefined
  }
}
