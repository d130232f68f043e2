/** Connections that the server closes while a request is on its way, as when it has been idle for long. */
import type { ServerResponse } from 'node:http'
import t, { type Test } from 'tap'
import { startBridge } from '../support/bridge.js'
import { LegacyClient } from '../support/legacy-client.js'
import { call } from '../support/modern.js'
import { type Arrival, PlainHttp, sendText } from '../support/plain-http.js'

const DISCOVERED =
  '{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}'
const OPENED = '{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"n","version":"1"}}'

/** Servers that close the connection of the first requests of each method. `times` is how many of them. */
const servers = {
  modern: (t: Test, times: number) => closing(t, times, { 'server/discover': DISCOVERED }),
  legacy: (t: Test, times: number) => closing(t, times, { initialize: OPENED }),
}

async function closing(t: Test, times: number, script: Record<string, string>) {
  const closed = new Map<string, number>()
  const answer = ({ message, method: verb }: Arrival, response: ServerResponse): void => {
    const method = String(message?.['method'])
    const id = JSON.stringify(message?.['id'])
    if (verb !== 'POST') return void response.writeHead(405).end()
    if (id === undefined) return void response.writeHead(202).end()
    const result = (text: string) => sendText(response, `{"jsonrpc":"2.0","id":${id},"result":${text}}`)
    if (script[method]) return result(script[method])
    if (!method.startsWith('tools/'))
      return sendText(response, `{"jsonrpc":"2.0","id":${id},"error":{"code":-32601,"message":"no"}}`, {}, 404)
    const before = closed.get(method) ?? 0
    if (before >= times) return result('{"resultType":"complete","tools":[],"ttlMs":0,"cacheScope":"private"}')
    closed.set(method, before + 1)
    response.destroy()
  }
  return PlainHttp.start(t, answer)
}

for (const era of ['modern', 'legacy'] as const) {
  const ask = async (t: Test, times: number) => {
    const server = await servers[era](t, times)
    const { url, bridge } = await startBridge(t, { url: server.url })
    await bridge.server.warmUp()
    const client = era === 'legacy' && (await LegacyClient.open(url))
    return {
      server,
      request: (method: string, params = {}) => (client ? client.request(method, params) : call(url, method, params)),
    }
  }

  t.test(
    `requests a list that passes unchanged once more from a ${era} server whose connection was closed`,
    async (t) => {
      const { server, request } = await ask(t, 1)
      t.match((await request('tools/list')).message, { result: { tools: [] } })
      t.equal(server.of('tools/list').length, 2)
    },
  )

  t.test(`does not request such a list of a ${era} server again and again`, async (t) => {
    const { server, request } = await ask(t, 100)
    t.match((await request('tools/list')).message.error, { data: { reason: 'upstream_closed', outcome: 'unknown' } })
    t.equal(server.of('tools/list').length, 2)
  })

  t.test(`sends a tool call to a ${era} server once, because it may have effects`, async (t) => {
    const { server, request } = await ask(t, 1)
    const failed = await request('tools/call', { name: 'x', arguments: {} })
    t.match(failed.message.error, { data: { reason: 'upstream_closed', outcome: 'unknown' } })
    t.equal(server.of('tools/call').length, 1)
  })
}
