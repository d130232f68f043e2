/** Records the messages of a relayed request. Each is the same on both wires. */
import { MAX_RELAYED_LIST } from '../limits/constants.js'
import type { Reservation } from '../limits/memory.js'
import type { RecordedHeaders, RelayedRecorder } from '../ports/recorder.js'
import type { LegacyRevision } from '../protocol/eras.js'
import { Gathering } from '../rpc/gathering.js'
import { type Head, headIn } from '../rpc/head.js'
import { lengthOf, whole } from '../rpc/source.js'
import { SseDecoder } from '../rpc/sse.js'
import { ChangeList } from './change-list.js'
import type { MessageBody, RecordEvent } from './events.js'
import { traceOf } from './message.js'
import type { RecordedQuestions } from './questions.js'
import { MAX_READ, revisionIn, withdrawnIn } from './relayed-bodies.js'

/** The context of the messages. */
interface About {
  call: number
  session: string | undefined
  /** The open requests of the server, by the keys that `questionKey` makes. */
  questions: RecordedQuestions
  /** The request is `initialize`. */
  opens: boolean
  /** Reserves memory for the list that the request asks for; undefined if it asks for another thing. */
  listed: Reservation | undefined
}

/** The empty list of changes: a relayed message is the same on both wires. */
const UNCHANGED = new ChangeList(() => '')

/** The messages of one relayed call. */
export class RelayedMessages implements RelayedRecorder {
  readonly #record: RecordEvent
  readonly #server: string
  readonly #about: About
  /** Reads an answer that is a stream of events. */
  #events: SseDecoder | undefined
  /** The beginning of an answer that comes in parts, and the bytes of all parts. */
  readonly #beginning = new Gathering()
  #length = 0
  #limit: number | undefined
  /** The client's message, and the number of its event. */
  #request: { text: readonly Uint8Array[]; head: Head | undefined; number: number | undefined } | undefined
  /** The negotiated revision in the answer to `initialize`. */
  revision: LegacyRevision | undefined

  constructor(record: RecordEvent, server: string, about: About) {
    this.#record = record
    this.#server = server
    this.#about = about
  }

  /** The client's request has arrived, with the headers to record. */
  received(body: Uint8Array, headers?: RecordedHeaders): void {
    const text = [body]
    this.#request = {
      text,
      ...this.#message('client', 'in', text, { form: 'request', received: headers && { headers } }),
    }
  }

  /** The request is sent to the server. */
  sent(): void {
    if (!this.#request) return
    const { text, head, number } = this.#request
    this.#message('server', 'out', text, { form: 'request', head, changed: UNCHANGED, of: number })
  }

  /** The whole answer, with its HTTP status. */
  answer(bytes: Uint8Array, status: number): void {
    this.#answer([bytes], bytes.length, status, 'result')
  }

  /** A part of a streamed answer. */
  part(bytes: Uint8Array): void {
    this.#length += bytes.length
    const room = this.#most - this.#beginning.length
    if (room > 0) this.#beginning.push(bytes.subarray(0, room))
  }

  /** All parts of the answer have arrived. */
  partsEnded(status: number, form: 'result' | 'error'): void {
    this.#answer(this.#beginning.take(), this.#length, status, form)
  }

  /** A part of an event stream. */
  chunk(bytes: Uint8Array): void {
    this.#events ??= new SseDecoder(this.#most, 'cut')
    for (const { data, missing = 0 } of this.#events.push(bytes)) {
      if (data.length === 0) continue
      // A notification has its method near its beginning. A large message without one is the answer.
      const [form, id] = missing > 0 ? (['result', this.#id] as const) : (['notification', undefined] as const)
      this.#pass(data, { form, id, length: lengthOf(data) + missing })
    }
  }

  /** An answer of the server that is not forwarded, because it is not a message. */
  refused(bytes: Uint8Array, status: number): void {
    this.#message('server', 'in', [bytes], { form: 'error', received: { status, headers: {} } })
  }

  /** The bridge's own answer to the client, in place of the server's. */
  own(text: string, status: number): void {
    this.#message('client', 'out', [Buffer.from(text)], { form: 'error', sent: statusOf(status) })
  }

  /** The request has ended: no further messages. */
  close(): void {
    this.#about.listed?.end()
  }

  /** Most bytes of the answer that are read. */
  get #most(): number {
    const { listed } = this.#about
    this.#limit ??= listed && listed.resize(MAX_RELAYED_LIST) === undefined ? MAX_RELAYED_LIST : MAX_READ
    return this.#limit
  }

  #answer(text: readonly Uint8Array[], length: number, status: number, form: 'result' | 'error'): void {
    const http = statusOf(status)
    this.#pass(text, { form, id: this.#id, length, received: http, sent: http })
  }

  /** Records a message of the server on both wires. */
  #pass(text: readonly Uint8Array[], message: Passing): void {
    const { call, session, questions, opens } = this.#about
    const now = performance.now()
    const { head, number } = this.#message('server', 'in', text, { ...message, now })
    this.#message('client', 'out', text, { ...message, now, head, changed: UNCHANGED, of: number })
    if (opens && head?.form === 'result') this.revision = revisionIn(text)
    if (head?.form === 'request' && head.id !== undefined && session !== undefined)
      questions.asked(questionKey(session, head.id), head.method, call)
    if (head?.method === 'notifications/cancelled' && session !== undefined) {
      const id = withdrawnIn(text)
      if (id !== undefined) questions.withdrawn(questionKey(session, id))
    }
  }

  get #id(): string | number | undefined {
    return this.#request?.head?.id
  }

  #message(
    hop: 'client' | 'server',
    dir: 'in' | 'out',
    text: readonly Uint8Array[],
    { form, id, length = lengthOf(text), now, changed, of, ...rest }: Passing,
  ): { head: Head | undefined; number: number } {
    const { head = headIn(whole(text)), received, sent } = rest
    const trace = traceOf(hop, dir, this.#server, this.#about.call, this.#about.session, now)
    trace.form = head?.form ?? form
    trace.method = head?.method
    trace.id = head ? head.id : id
    trace.bytes = length
    trace.http = dir === 'in' ? received : sent
    trace.changed = changed
    trace.of = of
    return { head, number: this.#record(trace, text) }
  }
}

/** The known facts about a relayed message, besides its text. */
interface Passing {
  /** Its form and id, if its head cannot be read. */
  form: MessageBody['form']
  id?: string | number | undefined
  /** Its head, if it was read before. */
  head?: Head | undefined
  /** Bytes of the whole message, if the text is its beginning. */
  length?: number
  /** Its HTTP heads: as it came in, and as it goes out. */
  received?: MessageBody['http']
  sent?: MessageBody['http']
  now?: number | undefined
  changed?: MessageBody['changed']
  of?: number | undefined
}

function statusOf(status: number): MessageBody['http'] {
  return status === 200 ? undefined : { status, headers: {} }
}

/** Identifies a request of a server in all sessions. */
export function questionKey(session: string, id: string | number): string {
  return `${session} ${JSON.stringify(id)}`
}
