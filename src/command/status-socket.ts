/**
 * Serves the state of this bridge to `mcp-bridge status` of the same user, on a socket that nobody else can open. So every bridge of a
 * user is found, wherever it listens, and shows its servers without an address for operators.
 */
import { createServer, type ServerResponse } from 'node:http'
import type { Bridge } from '../app/bridge.js'
import { listenForUser } from '../app/user-socket.js'
import type { Log } from '../base/log/events.js'
import { parseUrl } from '../base/texts/parse-url.js'

/** What is told on the socket: also the origins at which the bridge listens, none on stdio. */
export type LocalStatus = ReturnType<Bridge['inspected']['status']> & { origins: readonly string[] }

/** The origins of addresses, which may be on a unix socket. */
export function originsOf(urls: readonly (string | undefined)[]): string[] {
  const origins = urls.flatMap((url) =>
    url?.startsWith('unix:') ? url.replace(/:[^:]*$/, '') : (parseUrl(url ?? '')?.origin ?? []),
  )
  return [...new Set(origins)]
}

/** The socket of a bridge; none without a folder. */
export class StatusSocket {
  readonly #folder: string | undefined
  readonly #log: Pick<Log, 'debug'>
  #opening: Promise<() => void> | undefined

  constructor(folder: string | undefined, log: Pick<Log, 'debug'>) {
    this.#folder = folder
    this.#log = log
  }

  /** Starts to serve. A bridge serves its clients also without the socket. */
  serve(now: () => LocalStatus | Promise<LocalStatus>): void {
    const folder = this.#folder
    if (folder === undefined) return
    const answer = async (response: ServerResponse) => {
      response.setHeader('content-type', 'application/json').end(JSON.stringify(await now()))
    }
    const server = createServer((_request, response) => {
      answer(response).catch(() => response.destroy())
    })
    this.#opening = listenForUser(server, folder, 'status')
    this.#opening.then(
      () => server.unref(),
      (error: unknown) =>
        this.#log.debug({ event: 'status_socket_failed', err: error }, 'mcp-bridge status cannot find this bridge'),
    )
  }

  async close(): Promise<void> {
    const close = await this.#opening?.catch(() => undefined)
    close?.()
  }
}
