/** `createBridge`: a bridge for handlers of the Fetch API, and for transports in memory. */

import { ConfigError } from '../../config/settings.js'
import type { InMemoryHandler } from '../in-memory-http.js'
import { isPreflight } from './caller.js'
import { EmbeddedBridge } from './embedded.js'
import { logOf } from './log.js'
import type { Bridge, BridgeOptions } from './options.js'
import { checkFunctions } from './settings.js'

/** The path of the endpoint, as that of the command. */
export const ENDPOINT = '/mcp'

/** Creates a bridge. Rejects with an error that names every mistake in the options. */
export async function createBridge(options: BridgeOptions): Promise<Bridge> {
  if (typeof options !== 'object' || options === null)
    throw new ConfigError([
      {
        path: '',
        message: 'createBridge takes an object with options, as in { "upstream": "https://example.com/mcp" }',
      },
    ])
  const { path = ENDPOINT, logger, principal, ...common } = options
  checkFunctions({ principal, logger })
  const place = { option: 'path', path, hasPrincipals: principal !== undefined }
  const embedded = await EmbeddedBridge.create(common, place, logOf(logger))
  embedded.warmUp()
  let answering: Promise<InMemoryHandler> | undefined
  const begin = async () => {
    const { fetcher } = await import('../in-memory-http.js')
    return fetcher(await embedded.attach(), embedded.callers)
  }
  return {
    fetch: async (request) => {
      if (embedded.isClosed) return (await import('../in-memory-http.js')).closedResponse()
      const caller = isPreflight(request.method) ? undefined : ((await principal?.(request)) as unknown)
      answering ??= begin()
      return (await answering)(request, caller)
    },
    connect: (transport, whose) => embedded.connect(transport, whose),
    close: () => embedded.close(),
  }
}
