/**
 * The open requests of the server to a legacy client, in one of the client's successive sessions. Gives them ids that are
 * unique across these sessions.
 */
import {
  type Id,
  idKey,
  keptKey,
  type Notification,
  notification,
  type Request,
  type Response,
  request,
} from '../../base/rpc/message.js'
import type { Wire } from '../../base/rpc/source.js'
import { edit } from '../../base/rpc/splice.js'
import { cancelledId } from '../../mcp/protocol/cancelled.js'

export class OpenServerRequests {
  /** The number of this session among the client's successive sessions, from 1. */
  readonly #session: number
  /** The server's ids, by the keys of the ids that the client sees. The peer bounds their number. */
  readonly #open = new Map<string, Id>()

  constructor(session: number) {
    this.#session = session
  }

  /** Encodes a request or notification of the server for the client, and remembers a request as open. */
  write(message: Request | Notification): Wire {
    if (message.kind === 'request') {
      const id = this.#clientId(message.id)
      this.#open.set(idKey(id), message.id)
      return plain({ ...message, id })
    }
    const { method, params } = message
    const requestId = method === 'notifications/cancelled' ? cancelledId(params) : undefined
    if (requestId === undefined || typeof params === 'string') return plain(message)
    return plain({ ...message, params: edit(params, { requestId: this.#clientId(requestId) }) })
  }

  /** Returns the client's answer with the server's id; undefined if no such request is open. */
  answered(response: Response): Response | undefined {
    const key = response.id === undefined ? undefined : keptKey(this.#open, response.id)
    const id = key === undefined ? undefined : this.#open.get(key)
    if (key === undefined || id === undefined) return undefined
    this.#open.delete(key)
    return { ...response, id }
  }

  /** Closes all requests. Returns a cancellation of each for the client. */
  takeBack(): Wire[] {
    const ids = [...this.#open.keys()]
    this.#open.clear()
    return ids.map((id) =>
      notification('notifications/cancelled', `{"requestId":${id},"reason":"The server has lost the session"}`),
    )
  }

  /**
   * The id for the client: the server's own in the first session. Later sessions would reuse it, because servers count
   * from 0.
   */
  #clientId(id: Id): Id {
    if (this.#session === 1) return id
    return (id.startsWith('"') ? `"${this.#session}.${id.slice(1)}` : `"${this.#session}:${id}"`) as Id
  }
}

/** A message of the server, encoded. */
export function plain(message: Request | Notification): Wire {
  const { method } = message
  const params = typeof message.params === 'string' ? undefined : message.params
  return message.kind === 'request' ? request(message.id, method, params) : notification(method, params)
}
