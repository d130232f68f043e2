/** A replica of a legacy server: it knows the sessions that it has opened itself, and no others. */
import type { Override } from './legacy-http.js'

const OPENED = {
  protocolVersion: '2025-11-25',
  capabilities: { tools: {} },
  serverInfo: { name: 'replica', version: '1' },
}

export function ownSessions(): Override {
  const own = new Set<unknown>()
  return ({ headers, message, method }, response) => {
    const session = headers['mcp-session-id']
    if (session !== undefined && !own.has(session)) {
      response.writeHead(404).end()
      return true
    }
    if (message['method'] !== 'initialize') return false
    const id = crypto.randomUUID()
    own.add(id)
    response
      .writeHead(200, { 'content-type': 'application/json', 'mcp-session-id': id })
      .end(JSON.stringify({ jsonrpc: '2.0', id: message['id'], result: OPENED }))
    return method === 'POST'
  }
}
