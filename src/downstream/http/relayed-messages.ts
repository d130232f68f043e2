/** Tells the inspector the messages of a relayed request. Each is the same on both wires. */
import { sightOf } from '../../ports/message-sight.js'
import { callId, type MessageSeen } from '../../ports/seen.js'
import { ChangeList } from '../../protocol/change-list.js'
import type { LegacyRevision } from '../../protocol/eras.js'
import { negotiated } from '../../protocol/legacy-server.js'
import { headIn } from '../../rpc/head.js'
import { idValue, parseMessage } from '../../rpc/message.js'
import { lengthOf, sourceOfBytes, whole } from '../../rpc/source.js'
import { type Json, raw } from '../../rpc/splice.js'
import { SseDecoder } from '../../rpc/sse.js'
import { cancelledId } from '../legacy/in-flight.js'
import type { Logger } from '../logger.js'
import type { Watch } from '../watch.js'
import type { Headers } from '../watched-messages.js'
import type { WatchedQuestions } from '../watched-questions.js'

/** What the messages belong to. */
interface About {
  call: number
  session: string | undefined
  /** The open requests of the server, by the keys that `questionKey` makes. */
  questions: WatchedQuestions
  /** The request is `initialize`. */
  opens: boolean
}

/** Most bytes of a message that is read. Of a larger one only the size is told. */
const MAX_READ = 64 * 1024
const STATE = Buffer.from('"requestState"')
const UNCHANGED = new ChangeList(() => '')

/** What passes for one call. */
export class RelayedMessages {
  readonly #logger: Logger
  readonly #about: About
  /** Reads an answer that is a stream of events; null after an event that is too large: later ones are not told. */
  #events: SseDecoder | null | undefined
  /** The revision that the answer to `initialize` has agreed on. */
  revision: LegacyRevision | undefined

  constructor(logger: Logger, about: About) {
    this.#logger = logger
    this.#about = about
  }

  /** The client's message, and its headers if they are to be shown. */
  request(body: Uint8Array, headers?: Headers): void {
    this.#pass('client', [body], 'request', body.length, headers && { headers })
  }

  /**
   * The whole answer with its HTTP status, or its beginning if that is larger than what is read. `length` is that of the
   * whole.
   */
  answer(bytes: Uint8Array, status: number, length = bytes.length): void {
    const http = status === 200 ? undefined : { status, headers: {} }
    this.#pass('server', [bytes], 'result', length, http, http)
  }

  /** A part of the answer that is a stream of events. */
  chunk(bytes: Uint8Array): void {
    if (this.#events === null) return
    this.#events ??= new SseDecoder(MAX_READ)
    try {
      for (const { data } of this.#events.push(bytes)) if (data.length > 0) this.#pass('server', data, 'notification')
    } catch {
      this.#events = null
      const text = `Messages of ${callId(this.#about.call)} are missing: an event is larger than ${MAX_READ / 1024} KiB`
      this.#logger.telemetry?.watch?.witness({ kind: 'lost', text, server: this.#logger.telemetry.server })
    }
  }

  #pass(
    from: 'client' | 'server',
    text: readonly Uint8Array[],
    form: MessageSeen['form'],
    length = lengthOf(text),
    received?: MessageSeen['http'],
    sent?: MessageSeen['http'],
  ): void {
    const { telemetry } = this.#logger
    if (!telemetry?.watch) return
    const { watch, server } = telemetry
    const { call, session, questions, opens } = this.#about
    const head = length > MAX_READ ? undefined : headIn(whole(text))
    if (opens && head?.form === 'result') this.revision = revisionIn(text)
    const now = performance.now()
    let of: number | undefined
    for (const hop of from === 'client' ? (['client', 'server'] as const) : (['server', 'client'] as const)) {
      const sight = sightOf(hop, hop === from ? 'in' : 'out', server, call, session, now)
      sight.form = head?.form ?? form
      sight.method = head?.method
      sight.id = head?.id
      sight.bytes = length
      sight.http = hop === from ? received : sent
      sight.changed = hop === from ? undefined : UNCHANGED
      sight.of = of
      of = watch.witness(sight, text)
    }
    if (from === 'server' && head?.form === 'request' && head.id !== undefined && session !== undefined)
      questions.asked(questionKey(session, head.id), head.method, call)
    if (from === 'server' && head?.method === 'notifications/cancelled' && session !== undefined) {
      const id = withdrawnIn(text)
      if (id !== undefined) questions.withdrawn(questionKey(session, id))
    }
  }
}

/** Identifies a request of a server in all sessions. */
export function questionKey(session: string, id: string | number): string {
  return `${session} ${JSON.stringify(id)}`
}

function revisionIn(answer: readonly Uint8Array[]): LegacyRevision | undefined {
  try {
    const message = parseMessage(sourceOfBytes(answer))
    return message.kind === 'response' ? negotiated(message) : undefined
  } catch {
    return undefined
  }
}

/** The id of the request that the server cancels. */
function withdrawnIn(cancellation: readonly Uint8Array[]): string | number | undefined {
  try {
    const message = parseMessage(sourceOfBytes(cancellation))
    const id = message.kind === 'notification' ? cancelledId(message.params) : undefined
    return id && idValue(id)
  } catch {
    return undefined
  }
}

/** What a client calls itself in `initialize`. */
export function clientIn(watch: Watch, body: Uint8Array): string | undefined {
  if (body.length > MAX_READ) return undefined
  try {
    const message = parseMessage(sourceOfBytes([body]))
    return message.kind === 'request' ? watch.clientOf(message, undefined) : undefined
  } catch {
    return undefined
  }
}

/** The `requestState` of a request that continues another one. */
export function stateIn(body: Uint8Array): Json | undefined {
  // Most requests have none and need not be parsed.
  if (body.length > MAX_READ || !(body instanceof Buffer) || !body.includes(STATE)) return undefined
  try {
    const message = parseMessage(sourceOfBytes([body]))
    return message.kind === 'request' && typeof message.params !== 'string'
      ? raw(message.params, 'requestState')
      : undefined
  } catch {
    return undefined
  }
}
