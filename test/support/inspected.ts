/** Modern requests as text, for tests that watch how they pass. */
const META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
}

export const messages = {
  call(name: string, args: object, { id = 1, meta = {} }: { id?: number; meta?: object } = {}): string {
    const params = { name, arguments: args, _meta: { ...META, ...meta } }
    return JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params })
  },
  post(url: string, body: string, more: Record<string, string> = {}): Promise<Response> {
    const { method, params } = JSON.parse(body) as { method: string; params: { name?: string } }
    const headers = {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': method,
      ...(params.name !== undefined && { 'mcp-name': params.name }),
      ...more,
    }
    return fetch(url, { method: 'POST', headers, body })
  },
}
