/** An answer that is still arriving already shows that it is large. */
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import { startBridge } from '../support/bridge.js'
import { until } from '../support/eventually.js'
import { call } from '../support/modern.js'

interface Message {
  id?: number
  method: string
  params?: { name?: string; protocolVersion?: string }
}

const MIB = 1024 * 1024
const TOKENS = { greedy: 'greedy-token-0123456789', modest: 'modest-token-0123456789' }
const as = (who: keyof typeof TOKENS) => ({ headers: { authorization: `Bearer ${TOKENS[who]}` } })

/** A legacy server whose tool `bulk` sends the most of a large answer, and ends it when the test says so. It answers others meanwhile. */
async function startSlowServer(t: Test, type: 'application/json' | 'text/event-stream') {
  const open: { response: ServerResponse; end: () => void }[] = []
  const prefix = type === 'application/json' ? '' : 'data: '
  const answer = async ({ id, method, params }: Message, response: ServerResponse) => {
    if (id === undefined) return response.writeHead(202).end()
    const result = (value: unknown) =>
      response
        .writeHead(200, { 'content-type': 'application/json', 'mcp-session-id': 'one' })
        .end(JSON.stringify({ jsonrpc: '2.0', id, result: value }))
    if (method === 'initialize')
      return result({
        protocolVersion: params?.protocolVersion,
        capabilities: { tools: {} },
        serverInfo: { name: 'slow', version: '1' },
      })
    if (params?.name !== 'bulk') return result(method === 'tools/call' ? { content: [] } : {})
    response.writeHead(200, { 'content-type': type })
    response.write(`${prefix}{"jsonrpc":"2.0","id":${id},"result":{"content":[{"type":"text","text":"`)
    // In pieces, each when the one before has gone, so that most of it has arrived.
    for (let sent = 0; sent < 14 && response.writable; sent++)
      await new Promise<unknown>((resolve) => response.write('x'.repeat(MIB), resolve))
    open.push({ response, end: () => response.end('"}]}}\n\n') })
    return undefined
  }
  let asked = 0
  const server = createServer((request, response) => {
    if (request.method !== 'POST') return void response.writeHead(405).end()
    json(request)
      .then((message) => {
        if ((message as Message).params?.name === 'bulk') asked++
        return answer(message as Message, response)
      })
      .catch(() => response.destroy())
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}/mcp`, open, asked: () => asked }
}

for (const type of ['application/json', 'text/event-stream'] as const)
  t.test(
    `a server that sends a large answer (${type}) gets no more of these calls because it answers others`,
    async (t) => {
      const server = await startSlowServer(t, type)
      const { url } = await startBridge(t, { url: server.url }, { auth: { tokens: TOKENS } })
      const echo = () => call(url, 'tools/call', { name: 'echo' }, as('modest'))
      t.notOk((await echo()).message.error)
      const calls = Array.from({ length: 8 }, () => call(url, 'tools/call', { name: 'bulk' }, as('greedy')))
      await until(() => server.open.length > 0, 'an answer that lacks its end')
      for (let times = 0; times < 10; times++) t.notOk((await echo()).message.error)
      t.ok(server.asked() <= 2, `${server.asked()} calls at the server`)
      let ended = 0
      await until(() => {
        for (const { end } of server.open.slice(ended)) end()
        ended = server.open.length
        return ended === calls.length
      }, 'all answers')
      for (const { message } of await Promise.all(calls)) t.ok(message.result ?? message.error)
    },
  )
