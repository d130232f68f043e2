/** Finds out whether a server still knows a session, with a request that changes nothing: a look. */
import type { Response } from '../base/rpc/message.js'
import { type Doubt, doubtIn, type Loss, lossShownBy } from './session-loss.js'
import { ChannelError } from './transport/channel.js'

/** Sends a request in the session, with a timeout in milliseconds. Rejects with a ChannelError. */
export type Ask = (method: string, timeout: number) => Promise<Response>

/** The result of a look; undefined if it could not be sent. */
type Answer = Response | ChannelError | undefined

/** Methods that a server answers in an initialized session only. */
const LISTS = ['tools/list', 'prompts/list', 'resources/list']
/** Milliseconds for the answer to a look. */
const WITHIN = 5_000
/** Milliseconds after which a session that has served nothing may have been lost. */
const SETTLED = 1_000

export class SessionCheck {
  readonly #ask: Ask
  readonly #offers: (method: string) => boolean
  readonly #session: { readonly hasServed: boolean }
  readonly #openedAt = performance.now()
  /** The session has been open elsewhere, or its client says so. */
  hasWorkedBefore = false
  /** Looks that have not been answered, by their methods. Callers share them. */
  readonly #looking = new Map<string, Promise<Answer>>()

  /** `session`: whether the server has answered a request in it. `offers`: whether the server offers a method. */
  constructor(session: { readonly hasServed: boolean }, ask: Ask, offers: (method: string) => boolean) {
    this.#session = session
    this.#ask = ask
    this.#offers = offers
  }

  /**
   * Whether a failure, or an error that the server answered to this method, means that the server has lost the session;
   * undefined if not. If the answer leaves that open, and the session has worked before, a look decides. Without that
   * condition, a server that refuses everything would get a new session for each call.
   */
  async lossBehind(failure: ChannelError | Response, method: string): Promise<Loss | undefined> {
    const doubt = doubtIn(failure, method)
    if (doubt === 'lost') return 'unacted'
    if (!doubt) return undefined
    const isLongOpen = performance.now() - this.#openedAt > SETTLED
    // Who only says that there is a session may have no access to the server.
    const hasWorked = isLongOpen || (this.hasWorkedBefore && doubt.status !== 401 && doubt.status !== 403)
    if (!hasWorked && !this.#session.hasServed) return undefined
    const loss = await this.#look('ping', doubt)
    if (loss || !doubt.speaks) return loss
    // Some servers answer `ping` without a session.
    const list = LISTS.find(this.#offers)
    return list === undefined ? undefined : this.#look(list, doubt)
  }

  /** Whether the server has lost the session, although it has not refused a request. */
  async isLost(): Promise<boolean> {
    const answer = await this.#answerTo('ping')
    return answer !== undefined && (await this.lossBehind(answer, 'ping')) !== undefined
  }

  async #look(method: string, doubt: Doubt): Promise<Loss | undefined> {
    const answer = await this.#answerTo(method)
    const found = answer && doubtIn(answer, method)
    return found && lossShownBy(doubt, found)
  }

  #answerTo(method: string): Promise<Answer> {
    const looking = this.#looking.get(method) ?? this.#send(method)
    this.#looking.set(method, looking)
    return looking
  }

  async #send(method: string): Promise<Answer> {
    try {
      return await this.#ask(method, WITHIN)
    } catch (error) {
      return error instanceof ChannelError ? error : undefined
    } finally {
      this.#looking.delete(method)
    }
  }
}
