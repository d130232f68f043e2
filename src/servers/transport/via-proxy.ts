/**
 * Sends requests through a proxy that gets them whole (RFC 9112, 3.2.2). An answer with 407 is of the proxy, and not of the
 * server: its text is dropped, because proxies repeat there what they were sent, which is a password.
 */
import type { Dispatcher } from 'undici'
import { refusalOf } from '../../mcp/protocol/refusal.js'
import { ChannelError } from './channel.js'

/** A proxy that gets requests with a whole address as their target (RFC 9112, 3.2.2). */
export interface ForwardProxy {
  /** Scheme, host and port of the proxy. */
  origin: string
  headers: Headers
}

type Headers = Readonly<Record<string, string>>

/** The status with which a proxy asks for a user and a password. */
const ASKS = 407
const ASKING = refusalOf(ASKS, () => undefined, '')

/** The server whose requests go through the proxy. */
type Target = Pick<URL, 'origin' | 'host'>

export function viaProxy({ origin, host }: Target, via: ForwardProxy): Dispatcher.DispatcherComposeInterceptor {
  return (dispatch) => (options, handler) => {
    const headers = { ...(options.headers as Headers), host, ...via.headers }
    const sent = { ...options, origin: via.origin, path: origin + options.path, headers }
    return dispatch(sent, new WithoutAsking(handler))
  }
}

/** Passes an answer on, unless the proxy asks for credentials. */
class WithoutAsking implements Dispatcher.DispatchHandler {
  readonly #handler: Dispatcher.DispatchHandler

  constructor(handler: Dispatcher.DispatchHandler) {
    this.#handler = handler
  }

  onRequestStart(...args: Parameters<NonNullable<Dispatcher.DispatchHandler['onRequestStart']>>): void {
    this.#handler.onRequestStart?.(...args)
  }

  onResponseStart(...args: Parameters<NonNullable<Dispatcher.DispatchHandler['onResponseStart']>>): void {
    const [controller, status] = args
    if (status === ASKS)
      controller.abort(new ChannelError(`The proxy answered with HTTP ${ASKS}`, { refusal: ASKING, delivered: 'no' }))
    else this.#handler.onResponseStart?.(...args)
  }

  onResponseData(...args: Parameters<NonNullable<Dispatcher.DispatchHandler['onResponseData']>>): void {
    this.#handler.onResponseData?.(...args)
  }

  onResponseEnd(...args: Parameters<NonNullable<Dispatcher.DispatchHandler['onResponseEnd']>>): void {
    this.#handler.onResponseEnd?.(...args)
  }

  onResponseError(...args: Parameters<NonNullable<Dispatcher.DispatchHandler['onResponseError']>>): void {
    this.#handler.onResponseError?.(...args)
  }
}
