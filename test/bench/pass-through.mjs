/** What the bridge is measured against, a proxy that reads nothing: `node pass-through.mjs <port> <upstream>`. */
import proxy from '@fastify/http-proxy'
import { fastify } from 'fastify'

const [port, upstream = ''] = process.argv.slice(2)
const app = fastify({ logger: false, keepAliveTimeout: 60_000 })
// As many streams as are wanted, and silent ones for as long as they are.
await app.register(proxy, { upstream, undici: { connections: 20_000, headersTimeout: 0, bodyTimeout: 0 } })
await app.listen({ host: '127.0.0.1', port: Number(port) })

// A profile is written when the process ends by itself.
process.once('SIGTERM', () => process.exit())
