/** An answer that is still arriving already shows that it is large. */
import type { ServerResponse } from 'node:http'
import t, { type Test } from 'tap'
import { startBridge } from '../support/bridge.js'
import { until } from '../support/eventually.js'
import { call } from '../support/modern.js'
import { PlainHttp, sendText } from '../support/plain-http.js'

interface Message {
  id?: number
  method?: string
  params?: { name?: string; protocolVersion?: string }
}

const MIB = 1024 * 1024
const TOKENS = { greedy: 'greedy-token-0123456789', modest: 'modest-token-0123456789' }
const as = (who: keyof typeof TOKENS) => ({ headers: { authorization: `Bearer ${TOKENS[who]}` } })

/** A legacy server whose tool `bulk` sends the most of a large answer, and ends it when the test says so. It answers others meanwhile. */
async function startSlowServer(t: Test, type: 'application/json' | 'text/event-stream') {
  const open: (() => void)[] = []
  let asked = 0
  const sendMost = async (response: ServerResponse, id: unknown) => {
    const prefix = type === 'application/json' ? '' : 'data: '
    response.writeHead(200, { 'content-type': type })
    response.write(`${prefix}{"jsonrpc":"2.0","id":${id},"result":{"content":[{"type":"text","text":"`)
    // In pieces, each when the one before has gone, so that most of it has arrived.
    for (let sent = 0; sent < 14 && response.writable; sent++)
      await new Promise<unknown>((resolve) => response.write('x'.repeat(MIB), resolve))
    open.push(() => response.end('"}]}}\n\n'))
  }
  const server = await PlainHttp.start(t, ({ message }, response) => {
    const { id, method, params } = (message ?? {}) as unknown as Message
    if (method === undefined) return void response.writeHead(405).end()
    if (id === undefined) return void response.writeHead(202).end()
    if (params?.name === 'bulk') {
      asked++
      sendMost(response, id).catch(() => response.destroy())
      return
    }
    const { protocolVersion } = params ?? {}
    const opened = { protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'slow', version: '1' } }
    const result = method === 'initialize' ? opened : method === 'tools/call' ? { content: [] } : {}
    sendText(response, JSON.stringify({ jsonrpc: '2.0', id, result }), { 'mcp-session-id': 'one' })
  })
  return { url: server.url, open, asked: () => asked }
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
        for (const end of server.open.slice(ended)) end()
        ended = server.open.length
        return ended === calls.length
      }, 'all answers')
      for (const { message } of await Promise.all(calls)) t.ok(message.result ?? message.error)
    },
  )
