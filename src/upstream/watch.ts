/** Tells the inspector the messages on one channel to a server. */
import { tellArrived } from '../ports/received.js'
import type { Sight, Witness } from '../ports/seen.js'
import { changesOf, type Made, receivedFor } from '../protocol/rules.js'
import { type Id, idKey, idValue, type Notification, type Request, type Response } from '../rpc/message.js'
import type { HttpHead } from './transport/channel.js'

/** A bridge's inspector, for the channels to one server. */
export interface Watching {
  witness: Witness
  server: string
}

type Message = {
  form: 'request' | 'notification' | 'result' | 'error'
  method?: string
  id?: string | number | undefined
}

/** What a message was made of, and its headers, if the transport has any. */
interface SentWith {
  made?: Made | undefined
  headers: Readonly<Record<string, string>>
}

/** Most open requests of the server whose calls are remembered. */
const MAX_ASKED = 1_000

export class Watch {
  readonly #witness: Witness
  readonly #server: string
  readonly #isHttp: boolean
  /** The calls that open requests of the server belong to, by the keys of their ids. */
  readonly #asked = new Map<string, string>()

  /** `isHttp`: the messages have headers. */
  constructor({ witness, server }: Watching, isHttp: boolean) {
    this.#witness = witness
    this.#server = server
    this.#isHttp = isHttp
  }

  /** A message is sent to the server, for this call. */
  sent({ form, method, id }: Message, text: string, call: string | undefined, { made, headers }: SentWith): void {
    const sight: Sight = {
      kind: 'message',
      server: this.#server,
      call,
      continues: undefined,
      session: undefined,
      now: undefined,
      hop: 'server',
      dir: 'out',
      form,
      method,
      id,
      bytes: text.length,
      http: this.#isHttp ? { headers } : undefined,
      changed: changesOf(form, method, made, 'server'),
      of: receivedFor(made)?.seen,
    }
    this.#witness(sight, text)
  }

  /** The answer to a request of the server is sent. */
  answered(form: 'result' | 'error', id: Id, text: string, more: SentWith): void {
    const key = idKey(id)
    this.sent({ form, id: idValue(id) }, text, this.#asked.get(key), more)
    this.#asked.delete(key)
  }

  /** A message of the server has arrived, for this call. `http` is the head of the response that it came in. */
  received(message: Request | Notification | Response, call: string | undefined, http: HttpHead | undefined): void {
    const about = { hop: 'server', http, server: this.#server, call, session: undefined, now: undefined } as const
    tellArrived(this.#witness, message, about)
    if (message.kind !== 'request' || call === undefined) return
    if (this.#asked.size >= MAX_ASKED) this.#asked.clear()
    this.#asked.set(idKey(message.id), call)
  }
}
