/** The requests of the server that are open to a legacy client in one session, under ids that none of its other sessions uses. */
import {
  type Id,
  idKey,
  keptKey,
  type Notification,
  notification,
  type Request,
  type Response,
  readId,
  request,
} from '../../rpc/message.js'
import type { Wire } from '../../rpc/source.js'
import { edit, raw, write } from '../../rpc/splice.js'

export class Asked {
  /** Where the session stands among those that the client has had, from 1. */
  readonly #session: number
  /** The server's ids, by the keys of those that the client sees. The peer bounds how many are open. */
  readonly #open = new Map<string, Id>()

  constructor(session: number) {
    this.#session = session
  }

  /** A message that the server sends of its own accord, as the client gets it. */
  write(message: Request | Notification): Wire {
    const { kind, method, params } = message
    const text = typeof params === 'string' ? undefined : write(params)
    if (kind === 'request') {
      const shown = this.#shown(message.id)
      this.#open.set(idKey(shown), message.id)
      return request(shown, method, text)
    }
    if (method !== 'notifications/cancelled' || typeof params === 'string') return notification(method, text)
    const requestId = readId(raw(params, 'requestId') ?? 'null')
    return notification(method, requestId ? write(edit(params, { requestId: this.#shown(requestId) })) : text)
  }

  /** The client's answer under the id that the server knows; undefined where no such request is open. */
  answered(response: Response): Response | undefined {
    const key = response.id === undefined ? undefined : keptKey(this.#open, response.id)
    const id = key === undefined ? undefined : this.#open.get(key)
    if (key === undefined || id === undefined) return undefined
    this.#open.delete(key)
    return { ...response, id }
  }

  /** Closes all requests. Gives what tells the client that nobody waits for its answers any more. */
  takeBack(): Wire[] {
    const ids = [...this.#open.keys()]
    this.#open.clear()
    return ids.map((id) =>
      notification('notifications/cancelled', `{"requestId":${id},"reason":"The server has lost the session"}`),
    )
  }

  /** In the first session the server's own id. Servers count from 0, so the later ones would use the same ids again. */
  #shown(id: Id): Id {
    if (this.#session === 1) return id
    return (id.startsWith('"') ? `"${this.#session}.${id.slice(1)}` : `"${this.#session}:${id}"`) as Id
  }
}
