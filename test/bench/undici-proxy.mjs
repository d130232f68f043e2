/**
 * The least that a proxy of Node.js and undici can be, and less than one should be: nothing is read, and a slow client is not
 * waited for: `node undici-proxy.mjs <port> <upstream>`.
 */
import { createServer } from 'node:http'
import { Pool } from 'undici'

const [port, upstream = ''] = process.argv.slice(2)
const pool = new Pool(upstream, { headersTimeout: 0, bodyTimeout: 0 })

const server = createServer((request, response) => {
  const { connection: _connection, 'keep-alive': _keepAlive, ...headers } = request.headers
  pool.dispatch(
    {
      path: request.url ?? '/',
      method: /** @type {import('undici').Dispatcher.HttpMethod} */ (request.method),
      headers,
      body: request.method === 'POST' ? request : null,
    },
    {
      onRequestStart() {},
      onResponseStart(_controller, status, { connection: _hop, 'keep-alive': _alive, ...more }) {
        delete more['transfer-encoding']
        response.writeHead(status, more)
      },
      onResponseData(_controller, chunk) {
        response.write(chunk)
      },
      onResponseEnd() {
        response.end()
      },
      onResponseError() {
        response.destroy()
      },
    },
  )
})
server.keepAliveTimeout = 60_000
server.listen(Number(port), '127.0.0.1')

// A profile is written when the process ends by itself.
process.once('SIGTERM', () => process.exit())
