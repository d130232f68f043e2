/** What a client has set in its session with a legacy server, and how that is undone when it has gone. */
import { MAX_ADDRESS } from '../../base/limits/constants.js'
import { type Id, idKey, type Request } from '../../base/rpc/message.js'
import { detach } from '../../base/rpc/source.js'
import { type Json, stringUnder } from '../../base/rpc/splice.js'
import { LOG_LEVELS, methods } from '../../mcp/protocol/methods.js'
import { concernsTasks } from '../../mcp/protocol/owned-tasks.js'
import type { Peer } from '../peer.js'

/** The maximum number of subscriptions that are undone. */
const MAX_UNDONE = 100
/** Milliseconds for the answers of a server that has nothing else to do. */
const WITHIN = 2_000
/** Servers send all log messages before a client sets a level. */
const LOWEST = LOG_LEVELS[0]
/** Notifications of clients that leave nothing behind. */
const HARMLESS: ReadonlySet<string> = new Set([
  'notifications/initialized',
  'notifications/progress',
  'notifications/cancelled',
  'notifications/roots/list_changed',
])

/** Whether a notification of a client may leave something behind. */
export function leavesTraces(method: string): boolean {
  return !HARMLESS.has(method)
}

export class ClientTraces {
  readonly #uris = new Set<string>()
  /** Requests of the server that the client has not answered. */
  readonly #questions = new Map<string, Id>()
  #hasLevel = false
  /** Whether all of it can be undone. */
  canUndo = true

  requested(request: Pick<Request, 'method' | 'params'>): void {
    const { method, params } = request
    if (method === 'logging/setLevel') this.#hasLevel = true
    else if (method === 'resources/subscribe') {
      const uri = typeof params === 'string' ? undefined : stringUnder(params, 'uri')
      if (uri !== undefined && uri.length <= MAX_ADDRESS && this.#uris.size < MAX_UNDONE) this.#uris.add(uri)
      else this.canUndo = false
    } else if (!Object.hasOwn(methods, method) || concernsTasks(request)) this.canUndo = false
  }

  notified(method: string): void {
    if (leavesTraces(method)) this.canUndo = false
  }

  /** Notes a request of the server. It may keep the roots of this client. */
  asked({ method, id }: Request): void {
    if (method === 'roots/list') this.canUndo = false
    this.#questions.set(detach(idKey(id)), detach(id))
  }

  /** Notes that a request of the server has been answered, or withdrawn. */
  settled(key: string): void {
    this.#questions.delete(key)
  }

  /** Undoes all of it. Resolves to whether the server has agreed. */
  async undo(peer: Peer): Promise<boolean> {
    for (const id of this.#questions.values()) peer.respond(id, { code: -32603, message: 'The client has gone' })
    const agreed = [...this.#uris].map((uri) => agrees(peer, 'resources/unsubscribe', `{"uri":${JSON.stringify(uri)}}`))
    if (this.#hasLevel) agreed.push(resetsLevel(peer))
    return !(await Promise.all(agreed)).includes(false)
  }
}

/** Makes a server log as before a client has set a level. Resolves to whether it has agreed. */
export function resetsLevel(peer: Peer): Promise<boolean> {
  return agrees(peer, 'logging/setLevel', `{"level":"${LOWEST}"}`)
}

/** Whether a server still answers in a session. Over HTTP, an error may say that it has lost the session. */
export function answersIn(peer: Peer): Promise<boolean> {
  return agrees(peer, 'ping', undefined, peer.channel.transport === 'stdio')
}

async function agrees(peer: Peer, method: string, params: Json | undefined, orRefuses = false): Promise<boolean> {
  const answer = await peer.call(method, params, WITHIN).catch(() => undefined)
  return answer !== undefined && (orRefuses || answer.outcome.kind === 'result')
}
