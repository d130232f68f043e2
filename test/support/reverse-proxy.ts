/** A reverse proxy as people put before the bridge: it removes a path, and says in headers how it was reached. */
import { createServer, request as forward, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'
import { listenUntilEnd } from './listen-until-end.js'

export interface ReverseProxyOptions {
  /** The path that is removed. */
  prefix?: string
  /** What is sent in addition to the headers of the client. `Host` is that of the bridge. */
  headers?: IncomingHttpHeaders
}

/** Starts a proxy before an address. Returns its origin. */
export async function startReverseProxy(
  t: Test,
  target: string,
  { prefix = '', headers = {} }: ReverseProxyOptions = {},
): Promise<string> {
  const { hostname, port, host } = new URL(target)
  const server = createServer((request, response) => {
    const { method, url = '' } = request
    if (!url.startsWith(`${prefix}/`)) return void response.writeHead(404).end()
    const sent = { ...request.headers, host, ...headers }
    const passed = forward({ hostname, port, path: url.slice(prefix.length), method, headers: sent }, (answer) => {
      response.writeHead(answer.statusCode ?? 0, answer.headers)
      response.flushHeaders()
      answer.pipe(response)
    })
    passed.on('error', () => response.destroy())
    response.on('close', () => passed.destroy())
    request.pipe(passed)
  })
  await listenUntilEnd(t, server)
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}
