/** Tells the inspector the messages on one channel to a server. */
import { bytesOf, sightOf, tellArrived, tellSent } from './message.js'
import { type MessageSeen, UNRECORDED, type Witness } from './events.js'
import type { HttpRefusal } from '../protocol/refusal.js'
import type { Made } from './rules.js'
import { type Id, idKey, idValue, type Notification, type Request, type Response } from '../rpc/message.js'
import type { HttpHead } from '../upstream/transport/channel.js'

/** A bridge's inspector, for the channels to one server. */
export interface Watching {
  witness: Witness
  server: string
}

type Message = Pick<MessageSeen, 'form' | 'method' | 'id'>

/** What a message was made of, and its headers, if the transport has any. */
interface SentWith {
  made?: Made | undefined
  headers: Readonly<Record<string, string>>
}

/** Most open requests of the server whose calls are remembered. */
const MAX_ASKED = 1_000

export class ServerWatch {
  readonly #witness: Witness
  readonly #server: string
  readonly #isHttp: boolean
  /** The calls that open requests of the server belong to, by the keys of their ids. */
  readonly #asked = new Map<string, number>()

  /** `isHttp`: the messages have headers. */
  constructor({ witness, server }: Watching, isHttp: boolean) {
    this.#witness = witness
    this.#server = server
    this.#isHttp = isHttp
  }

  /** A message is sent to the server, for this call. `now` is its `performance.now()`, if it is known. */
  sent(
    { form, method, id }: Message,
    text: string,
    call: number | undefined,
    { made, headers }: SentWith,
    now?: number,
  ): void {
    if (call === UNRECORDED) return
    const sight = sightOf('server', 'out', this.#server, call, undefined, now)
    sight.form = form
    sight.method = method
    sight.id = id
    if (this.#isHttp) sight.http = { headers }
    tellSent(this.#witness, text, sight, made, 'server')
  }

  /** The answer to a request of the server is sent. */
  answered(form: 'result' | 'error', id: Id, text: string, more: SentWith): void {
    const key = idKey(id)
    this.sent({ form, id: idValue(id) }, text, this.#asked.get(key), more)
    this.#asked.delete(key)
  }

  /** The server has answered a message of this call with an HTTP status, and a body that is no message. */
  refused({ status, body, contentType }: HttpRefusal, call: number | undefined): void {
    if (call === UNRECORDED) return
    const sight = sightOf('server', 'in', this.#server, call, undefined, undefined)
    sight.form = 'error'
    sight.bytes = bytesOf(body)
    sight.http = { status, headers: { 'content-type': contentType } }
    this.#witness(sight, body)
  }

  /** A message of the server has arrived, for this call. `http` is the head of the response that it came in. */
  received(message: Request | Notification | Response, call: number | undefined, http: HttpHead | undefined): void {
    if (call !== UNRECORDED) {
      const sight = sightOf('server', 'in', this.#server, call, undefined, undefined)
      sight.http = http
      tellArrived(this.#witness, message, sight)
    }
    if (message.kind !== 'request' || call === undefined) return
    if (this.#asked.size >= MAX_ASKED) this.#asked.clear()
    this.#asked.set(idKey(message.id), call)
  }
}
