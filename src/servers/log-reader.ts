/** Decides which call gets a log message, which names none itself. */

import type { Params } from '../base/rpc/message.js'
import { value } from '../base/rpc/splice.js'
import { isLogLevel, isWantedLevel } from '../mcp/protocol/methods.js'
import type { Exchange } from './exchange.js'
import type { ServerLog } from './options.js'
import type { Peer } from './peer.js'

export const LOG = 'notifications/message'

export function giveLog(peer: Peer, params: Params, log: Pick<ServerLog, 'debug'>): void {
  const reader = logReader(peer, params)
  if (reader) reader.arrive({ kind: 'notification', method: LOG, params })
  else log.debug({ event: 'log_message_dropped', running: peer.size }, 'log message dropped: it belongs to no call')
}

/**
 * The call that gets a log message: the oldest one that asked for its level. Calls whose client waits come before parked
 * ones. Undefined if the message may belong to another caller.
 */
export function logReader({ open, activeCallers }: Peer, params: Params): Exchange | undefined {
  const level = typeof params === 'string' ? undefined : value(params, 'level')
  if (!isLogLevel(level) || activeCallers?.isSingle === false) return undefined
  let found: Exchange | undefined
  for (const exchange of open) {
    if (!isWantedLevel(level, exchange.call?.caller.logLevel)) continue
    if (exchange.read && !exchange.answered) return exchange
    // A parked call gets it in its next leg. A call that was just answered may still wait for late messages.
    if (!found || (found.answered && !exchange.answered)) found = exchange
  }
  return found
}
