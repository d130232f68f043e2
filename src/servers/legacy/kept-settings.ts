/** Remembers the settings that a legacy client has made in its session, and repeats them in a replacement session. */
import type { Log } from '../../base/log/events.js'
import type { Params, Response } from '../../base/rpc/message.js'
import { type Json, parseObject, stringUnder, value, write } from '../../base/rpc/splice.js'
import { isLogLevel } from '../../mcp/protocol/methods.js'
import type { AgreedSettings } from '../../mcp/protocol/upstream.js'
import type { DirectServerSession } from './direct-session.js'

/**
 * The maximum number of remembered subscriptions, and of characters in the parameters of one. Others are not renewed.
 */
const MAX_SUBSCRIPTIONS = 1_000
const MAX_SUBSCRIBE_PARAMS = 8 * 1024

export class KeptSettings {
  /** Parameters of `notifications/initialized`; undefined until the client has sent it. */
  #initialized: { params: Json | undefined } | undefined
  #level: Json | undefined
  /** Parameters of `resources/subscribe`, by the URI. */
  readonly #subscriptions = new Map<string, Json>()

  get now(): Omit<AgreedSettings, 'offered'> {
    const level = this.#level === undefined ? undefined : value(parseObject(this.#level), 'level')
    return {
      ready: this.#initialized !== undefined,
      logLevel: isLogLevel(level) ? level : undefined,
      uris: [...this.#subscriptions.keys()],
    }
  }

  initialized(params: Json | undefined): void {
    this.#initialized = { params }
  }

  /** Notes a request that the server has accepted. Ignores requests that set nothing. */
  agreed(method: string, params: Params): void {
    if (typeof params === 'string') return
    if (method === 'logging/setLevel') this.#level = write(params)
    if (method !== 'resources/subscribe' && method !== 'resources/unsubscribe') return
    const uri = stringUnder(params, 'uri')
    if (typeof uri !== 'string') return
    const text = write(params)
    if (method === 'resources/unsubscribe') this.#subscriptions.delete(uri)
    else if (this.#subscriptions.size < MAX_SUBSCRIPTIONS && text.length <= MAX_SUBSCRIBE_PARAMS)
      this.#subscriptions.set(uri, text)
  }

  /** Repeats the settings in a replacement session. Logs what the server refuses, and continues without it. */
  async restore(direct: DirectServerSession, log: Pick<Log, 'warn'>): Promise<void> {
    if (this.#initialized) direct.notify('notifications/initialized', this.#initialized.params)?.catch(() => {})
    await direct.begun
    const requests: [method: string, params: Json][] = [...this.#subscriptions.values()].map((params) => [
      'resources/subscribe',
      params,
    ])
    if (this.#level !== undefined) requests.push(['logging/setLevel', this.#level])
    await Promise.all(
      requests.map(async ([method, params]) => {
        const answer: Response | undefined = await direct.request(method, params).catch(() => undefined)
        if (answer?.outcome.kind !== 'result')
          log.warn({ event: 'setting_not_restored', method }, 'setting not restored in the new session with the server')
      }),
    )
  }
}
