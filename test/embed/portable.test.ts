/** Tools are portable in a bridge that is part of a program: clients of the SDKs, a server in memory, and one that is a program. */
import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import { CallToolRequestSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js'
import t from 'tap'
import { createBridge } from '../../src/app/embed/create.js'
import type { SdkTransport } from '../../src/app/embed/options.js'
import { SDK_CLIENTS } from '../support/in-memory-sdks.js'
import { askedIn, CALLS, INTRICATE } from '../support/intricate.js'

/** A server with one tool of the other one. */
const inMemory = {
  serve: (transport: SdkTransport) => {
    const server = new Server({ name: 'in memory', version: '1' }, { capabilities: { tools: {} } })
    const properties = { 'the path': { type: 'string', format: 'uri' } }
    const inputSchema = { type: 'object' as const, properties, required: ['the path'] }
    server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: [{ name: 'files.read/all', inputSchema }] }))
    server.setRequestHandler(CallToolRequestSchema, ({ params: { name, arguments: args } }) => ({
      content: [{ type: 'text', text: JSON.stringify({ name, args }) }],
    }))
    return server.connect(transport)
  },
}

for (const [ofClient, connectClient] of Object.entries(SDK_CLIENTS))
  for (const [what, entry] of Object.entries({ 'in memory': inMemory, 'that is a program': INTRICATE }))
    t.test(`a client of ${ofClient} calls the portable tools of a server ${what}`, async (t) => {
      const bridge = await createBridge({ mcpServers: { notes: { ...entry, schemas: 'portable' } } })
      t.teardown(() => bridge.close())
      const { client, far, connect } = await connectClient()
      await bridge.connect(far)
      await connect()
      const { tools } = await client.listTools()
      let called = 0
      for (const [pattern, args, server] of CALLS) {
        const name = tools.find((tool) => pattern.test(tool.name))?.name
        if (name === undefined) continue
        t.same(askedIn(await client.callTool({ name, arguments: args })), server)
        called++
      }
      t.equal(called, entry === inMemory ? 1 : CALLS.length)
      await client.close()
    })
