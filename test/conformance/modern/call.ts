/** What a request has with it in this era: what its client can do, and the way to its stream. */
import { CLIENT_CAPABILITIES_META_KEY, type ClientCapabilities, type ServerContext } from '@modelcontextprotocol/server'
import type { Log, ToolCall } from '../shared/tool.js'

export function capabilitiesOf({ mcpReq }: ServerContext): ClientCapabilities {
  // The SDK has read them, but its type does not say so.
  const envelope = mcpReq.envelope as Partial<Record<string, unknown>> | undefined
  return (envelope?.[CLIENT_CAPABILITIES_META_KEY] ?? {}) as ClientCapabilities
}

export function progressOf({ mcpReq }: ServerContext): ToolCall['progress'] {
  const progressToken = mcpReq._meta?.progressToken
  return async (progress, total, message) => {
    if (progressToken === undefined) return
    await mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress, total, message } })
  }
}

/** Both ways are one here, and the SDK heeds the level that the request asks for. */
export function logOf({ mcpReq }: ServerContext): Log {
  return {
    info: (data) => mcpReq.log('info', data),
    onCall: (data, logger) => mcpReq.log('info', data, logger),
  }
}
