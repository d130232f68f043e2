/** What a tool gets to work with in this era: questions are requests to the client in the middle of the call. */
import type { Server } from '@modelcontextprotocol/sdk/server/index.js'
import type { RequestHandlerExtra } from '@modelcontextprotocol/sdk/shared/protocol.js'
import type { ServerNotification, ServerRequest } from '@modelcontextprotocol/sdk/types.js'
import { type Client, type Stream, said, sampling } from '../shared/client.js'
import type { Log, ToolCall } from '../shared/tool.js'

export type Extra = RequestHandlerExtra<ServerRequest, ServerNotification>

/** Asks on the stream of the session, as the SDK does unless it is told otherwise, or on that of the call. */
export function clientOf(server: Server, { requestId }: Extra): Client {
  const on = (stream?: Stream) => (stream === 'call' ? { relatedRequestId: requestId } : undefined)
  return {
    capabilities: server.getClientCapabilities() ?? {},
    elicit: (_key, question, stream) => server.elicitInput(question, on(stream)),
    sample: async (_key, prompt, stream) => said(await server.createMessage(sampling(prompt), on(stream))),
    roots: async (_key, stream) => (await server.listRoots(undefined, on(stream))).roots,
  }
}

export function progressOf(extra: Extra): ToolCall['progress'] {
  const progressToken = extra._meta?.progressToken
  return async (progress, total, message) => {
    if (progressToken === undefined) return
    await extra.sendNotification({
      method: 'notifications/progress',
      params: { progressToken, progress, total, message },
    })
  }
}

export function logOf(server: Server, extra: Extra): Log {
  return {
    // Heeds the level that was set, and writes to the stream of the session.
    info: (data) => server.sendLoggingMessage({ level: 'info', data }, extra.sessionId),
    onCall: (data, logger) =>
      extra.sendNotification({ method: 'notifications/message', params: { level: 'info', logger, data } }),
  }
}
