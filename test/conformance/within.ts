/** Program: the bridge in a program, by the plugin for Fastify or behind the Fetch API, at an address and in front of a server. */
import { serve } from '@hono/node-server'
import { fastify } from 'fastify'
import { createBridge } from '../../src/app/embed/create.js'
import { mcpBridge } from '../../src/app/embed/fastify.js'
import { parseUpstream } from '../../src/config/settings.js'

const [within, address = '', upstream = ''] = process.argv.slice(2)
const { hostname: host, port } = new URL(address)
const entry = parseUpstream(upstream) as { command: string; args: string[] }
// Without a name, nobody would get log messages of a program: they could be another caller's.
const principal = () => 'suite'
const mcpServers = { it: { ...entry, tasks: 'async' as const } }

if (within === 'plugin') {
  const app = fastify()
  app.register(mcpBridge, { prefix: '/mcp', mcpServers, principal })
  await app.listen({ host, port: Number(port) })
} else {
  const bridge = await createBridge({ mcpServers, principal })
  serve({ fetch: bridge.fetch, hostname: host, port: Number(port) })
}
