/** HTTP+SSE on its way out: servers that no longer have it and say what to use, and the metric of who still uses it. */
import t from 'tap'
import { Fault } from '../../src/base/fault/fault.js'
import { describeServer, serverInWords } from '../../src/middle/describe/server.js'
import { adviceOn } from '../../src/servers/advice.js'
import { Metrics } from '../../src/services/telemetry/metrics.js'
import { createBridge, startBridge } from '../support/bridge.js'
import { LegacyClient } from '../support/legacy-client.js'
import { LegacySse } from '../support/legacy-sse.js'
import { call } from '../support/modern.js'
import { ModernHttp } from '../support/modern-http.js'
import { PlainHttp } from '../support/plain-http.js'
import { SseClient } from '../support/sse-client.js'

const SAID = 'HTTP+SSE has ended here. Use https://mcp.example/mcp'
const FORMS = {
  'a text': ['text/plain', SAID],
  'a JSON-RPC error': [
    'application/json',
    JSON.stringify({ jsonrpc: '2.0', id: null, error: { code: -32000, message: SAID } }),
  ],
  'a page': ['text/html', `<p>${SAID}</p>`],
} as const

for (const [form, [type, body]] of Object.entries(FORMS))
  for (const sse of [false, true])
    t.test(
      `a server that answers 410 with ${form} is explained${sse ? ', where its entry says "sse"' : ''}`,
      async (t) => {
        const gone = await PlainHttp.start(t, (_arrival, response) =>
          response.writeHead(410, { 'content-type': type }).end(body),
        )
        const server = { url: `${gone.origin}/sse`, ...(sse && { type: 'sse' }) }
        const probed = createBridge(t, server).bridge
        const fault = Fault.from(await describeServer(probed.server).catch((error: unknown) => error))
        t.match(adviceOn(fault), {
          status: 410,
          said: body.startsWith('<') ? body : SAID,
          next: /HTTP\+SSE endpoint, use its Streamable HTTP address instead: most servers are at \/mcp/,
        })
        const { url } = await startBridge(t, server)
        const isForCallers = type !== 'text/html'
        for (const message of [
          (await call(url, 'tools/list')).message,
          (await LegacyClient.open(url)).opened.message,
        ]) {
          const text = JSON.stringify(message)
          t.equal(text.includes(SAID), isForCallers, text)
          t.notMatch(text, /jsonrpc.*jsonrpc/, 'the message, not the JSON')
        }
      },
    )

t.test('probe says of a server over HTTP+SSE that MCP may remove it, and of others nothing', async (t) => {
  const [old, today] = [await LegacySse.start(t), await ModernHttp.start(t)]
  const words = async (url: string) => serverInWords(url, await describeServer(createBridge(t, { url }).bridge.server))
  t.match(await words(old.url), /over HTTP\+SSE\n {2}note {7}MCP may remove HTTP\+SSE.*Streamable HTTP.*\/mcp/)
  t.notMatch(await words(today.url), /note/)
})

t.test('a metric says which clients and servers still use HTTP+SSE', async (t) => {
  const [old, today] = [await LegacySse.start(t), await ModernHttp.start(t)]
  const mcpServers = { old: { url: old.url }, today: { url: today.url } }
  const metrics = new Metrics({ version: '0' })
  const { url } = await startBridge(t, {}, { mcpServers, groups: { team: {} } }, { metrics })
  const at = (path: string) => new URL(path, url).href
  const used = async () =>
    (await metrics.text([]))
      .split('\n')
      .filter((line) => line.startsWith('mcp_bridge_sse_sessions_total{'))
      .sort()
  await call(at('/today/mcp'), 'tools/list')
  await LegacyClient.open(at('/today/mcp'))
  t.same(await used(), [])
  // To a server of another era, to one of the same, and to a group.
  for (const name of ['today', 'old', 'team'])
    await SseClient.open(at(`/${name}/mcp`), '2024-11-05', { clientInfo: { name: `agent of ${name}`, version: '1' } })
  const lines = await used()
  for (const labels of [
    'server="today",side="client",client="agent of today"',
    'server="old",side="client",client="agent of old"',
    'server="",group="team",side="client",client="agent of team"',
    'server="old",side="server",client=""',
  ])
    t.ok(
      lines.some((line) => line.includes(labels)),
      `${labels} in ${lines.join('\n')}`,
    )
  t.notOk(lines.some((line) => /server="today".*side="server"/.test(line)))
})
