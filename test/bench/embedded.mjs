/** The bridge in a program: `node embedded.mjs <port> <URL of the server> <path of the bridge's program>`. */
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import fastify from 'fastify'

const [port, url, bridge] = process.argv.slice(2)
const { default: mcpBridge } = await import(pathToFileURL(join(dirname(bridge ?? ''), 'fastify.js')).href)
const app = fastify()
await app.register(mcpBridge, { prefix: '/mcp', upstream: url })
await app.listen({ host: '127.0.0.1', port: Number(port) })
process.on('SIGTERM', () => {
  const exit = () => process.exit()
  app.close().then(exit, exit)
})
