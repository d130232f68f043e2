/** Gathers the calls of a running bridge for a recording: the texts of their messages with the client, until they end. */

import { BoundedMap } from '../../base/limits/bounded.js'
import { textOfWire, type Wire } from '../../base/rpc/source.js'
import { isRecord, recordIn } from '../record.js'
import type { CallBody, MessageBody, RecordEvent, Side, TraceEvent } from '../recorder/events.js'
import { bytesOf } from '../recorder/message.js'
import { redactor } from '../redact.js'
import { SecretArguments } from '../secret-arguments.js'
import type { JsonRecord } from '../try/types.js'
import { type ClientMessage, REPEATABLE, recordingCallOf } from './from-messages.js'
import type { RecordingCall } from './recording.js'

export interface GatheredOptions {
  /** Globs of JSON Pointers whose values are hidden, as `inspect.hide`. */
  hide: readonly string[]
  /** A call that can be repeated has ended. */
  found(call: RecordingCall): void
  /** A call cannot be recorded, for this reason. */
  left(why: string): void
}

/** A call in progress. */
interface OpenCall {
  server: string
  client: Side | undefined
  session: string | undefined
  messages: ClientMessage[]
  bytes: number
  /** Why it will not be recorded. */
  problem?: string
  /** The numbers of its parts. */
  numbers: number[]
}

/** Most calls in progress, most bytes of one, and most bytes of all. */
const MAX_OPEN_CALLS = 2_000
const MAX_OPEN_BYTES = 4 * 1024 * 1024
const MAX_ALL_OPEN_BYTES = 64 * 1024 * 1024
/** Most sessions whose clients have declared capabilities. */
const MAX_DECLARING_SESSIONS = 1_000

/** Makes recorded calls from the events of a bridge, as calls end. */
export class GatheredCalls {
  readonly #options: GatheredOptions
  readonly #redact: ReturnType<typeof redactor>
  readonly #secrets = new SecretArguments()
  /** By the numbers of their parts. */
  readonly #open = new Map<number, OpenCall>()
  #bytes = 0
  #isStopped = false
  /** By server and session. */
  readonly #capabilities = new BoundedMap<string, JsonRecord>(MAX_DECLARING_SESSIONS)

  constructor(options: GatheredOptions) {
    this.#options = options
    this.#redact = redactor(options.hide)
  }

  /** Gathers nothing more. */
  stop(): void {
    this.#isStopped = true
    this.#open.clear()
    this.#capabilities.clear()
  }

  readonly record: RecordEvent = (event, text) => {
    if (this.#isStopped) return 0
    if (event.kind === 'message') {
      this.#secrets.note(event, text)
      this.#message(event, text)
    } else if (event.kind === 'call' && event.call !== undefined) {
      if (event.what === 'begun') this.#begin(event, event.call)
      else this.#end(event, event.call)
    }
    return 0
  }

  #begin({ server = '', client, session, continues }: TraceEvent & CallBody, number: number): void {
    const first = continues === undefined ? undefined : this.#open.get(continues)
    const call = first ?? { server, client, session, messages: [], bytes: 0, numbers: [] }
    call.numbers.push(number)
    this.#open.set(number, call)
    if (this.#open.size <= MAX_OPEN_CALLS) return
    const [oldest] = this.#open.values()
    if (oldest) this.#forget(oldest)
  }

  #message({ call: number, hop, dir, form, bytes }: TraceEvent & MessageBody, text: Wire | undefined): void {
    const call = number === undefined || hop !== 'client' ? undefined : this.#open.get(number)
    if (!call || call.problem !== undefined || form === 'notification') return
    // A large answer is recorded up to a bound.
    const isWhole = text !== undefined && bytesOf(text) >= bytes
    if (!isWhole || bytes > MAX_OPEN_BYTES) return this.#leave(call, TOO_LARGE)
    call.messages.push({ dir, form, text: textOfWire(text) })
    call.bytes += bytes
    this.#bytes += bytes
    if (call.bytes > MAX_OPEN_BYTES) this.#leave(call, TOO_LARGE)
    if (this.#bytes > MAX_ALL_OPEN_BYTES) this.#leave(call, 'Too many large calls were in progress')
  }

  #end(event: TraceEvent & CallBody, number: number): void {
    const call = this.#open.get(number)
    const { outcome, method, session } = event
    if (!call || outcome === 'asks') return
    this.#forget(call)
    if (method === 'initialize') this.#opened(call, session)
    if (!REPEATABLE.has(method) || (outcome !== 'ok' && outcome !== 'tool_error' && outcome !== 'error')) return
    const made = call.problem ?? this.#recordingOf(call, session ?? call.session)
    if (typeof made === 'string') this.#options.left(made)
    else this.#options.found(made)
  }

  #recordingOf({ server, client, messages }: OpenCall, session: string | undefined): RecordingCall | string {
    const isHidden = (path: readonly string[]) => this.#secrets.has(server, path)
    return recordingCallOf({
      server,
      client,
      messages: messages.map((message) => ({ ...message, text: this.#redact(message.text, isHidden).text })),
      capabilities: this.#capabilities.get(keyOfSession(server, session)),
    })
  }

  /** Stores the capabilities that a legacy client declares. */
  #opened({ server, messages: [request] }: OpenCall, session: string | undefined): void {
    const params = recordIn(request?.text ?? '')?.['params']
    const capabilities = isRecord(params) ? params['capabilities'] : undefined
    if (isRecord(capabilities)) this.#capabilities.set(keyOfSession(server, session), capabilities)
  }

  #leave(call: OpenCall, problem: string): void {
    call.problem = problem
    this.#bytes -= call.bytes
    call.bytes = 0
    call.messages = []
  }

  #forget(call: OpenCall): void {
    this.#bytes -= call.bytes
    call.bytes = 0
    for (const number of call.numbers) this.#open.delete(number)
  }
}

const TOO_LARGE = 'Its messages are too large'

function keyOfSession(server: string, session: string | undefined): string {
  return JSON.stringify([server, session])
}
