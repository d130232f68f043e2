/** `createBridge`: a bridge for handlers of the Fetch API, and for transports in memory. */

import type { InMemoryHandler } from '../bridge/in-memory-http.js'
import { EmbeddedBridge } from './embedded.js'
import { logOf } from './log.js'
import type { Bridge, BridgeOptions } from './options.js'

/** The path of the endpoint, as that of the command. */
export const ENDPOINT = '/mcp'

/** Creates a bridge. Rejects with an error that names every mistake in the options. */
export async function createBridge(options: BridgeOptions): Promise<Bridge> {
  const { path = ENDPOINT, logger, principal, ...common } = options
  const embedded = new EmbeddedBridge(common, { path, hasPrincipals: principal !== undefined }, logOf(logger))
  embedded.warmUp()
  let answering: Promise<InMemoryHandler> | undefined
  const begin = async () => {
    const { fetcher } = await import('../bridge/in-memory-http.js')
    return fetcher(await embedded.attach(), embedded.callers)
  }
  return {
    fetch: async (request) => {
      const caller: unknown = await principal?.(request)
      answering ??= begin()
      return (await answering)(request, caller)
    },
    connect: (transport, whose) => embedded.connect(transport, whose),
    close: () => embedded.close(),
  }
}
