/** A replica of a server of 2026-07-28, as one writes it with the SDK, at the port PORT: it echoes. */
import process from 'node:process'
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server'
import { z } from 'zod'
import { listen, report } from '../conformance/modern/listen.js'

function create(): McpServer {
  const server = new McpServer({ name: 'replica', version: '1.0.0' }, { capabilities: { tools: {} } })
  server.registerTool(
    'echo',
    { description: 'Says it again', inputSchema: z.object({ message: z.string() }) },
    ({ message }) => ({ content: [{ type: 'text', text: `Echo: ${message}` }] }),
  )
  return server
}

await listen(createMcpHandler(create, { legacy: 'reject', onerror: report }), Number(process.env['PORT']))
