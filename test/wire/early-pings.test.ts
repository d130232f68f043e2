/** Servers that send `ping` before they answer: they may wait for its answer in any state of the connection. */
import t from 'tap'
import { startBridge } from '../support/bridge.js'
import { LegacyClient } from '../support/legacy-client.js'
import { LegacyHttp } from '../support/legacy-http.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { call } from '../support/modern.js'
import { openPipe } from '../support/pipe.js'
import { askOn, shakeHands } from '../support/spelled.js'
import { SseClient } from '../support/sse-client.js'

const ECHO = { name: 'echo', arguments: { x: 1 } }
const ECHOED = { result: { structuredContent: { x: 1 } } }
/** Nothing of these tests waits for a limit. */
const PATIENT = { timeouts: { probe: 3_600_000, initialize: 3_600_000 } }

t.test('answers a program at once that pings before it answers', async (t) => {
  for (const pingsBefore of ['initialize', 'server/discover', 'tools/list']) {
    const { server } = legacyStdio(t, { pingsBefore })
    const { url } = await startBridge(t, server, PATIENT)
    t.match((await call(url, 'tools/list')).message, { result: { tools: [] } }, `modern client, ${pingsBefore}`)
    if (pingsBefore === 'tools/list') continue
    const client = await LegacyClient.open(url)
    t.match((await client.request('tools/call', ECHO)).message, ECHOED, `legacy client on HTTP, ${pingsBefore}`)
    const old = await SseClient.open(url, '2025-11-25')
    t.match(await old.request('tools/call', ECHO), ECHOED, `legacy client over HTTP+SSE, ${pingsBefore}`)
    const pipe = openPipe(t, server, PATIENT)
    await shakeHands(pipe)
    t.match(await askOn(pipe, 'tools/call', ECHO), ECHOED, `legacy client on stdio, ${pingsBefore}`)
  }
})

t.test('answers a server at once that pings on the stream of initialize', async (t) => {
  const waiting: (() => void)[] = []
  const http = await LegacyHttp.start(t, {
    override: ({ message }, response) => {
      if (message['id'] === 'early') {
        response.writeHead(202).end()
        for (const answer of waiting.splice(0)) answer()
        return true
      }
      if (message['method'] !== 'initialize') return false
      response.writeHead(200, {
        'content-type': 'text/event-stream',
        'mcp-session-id': `session ${Math.random()}`.replace(' ', '-'),
      })
      response.write('data: {"jsonrpc":"2.0","id":"early","method":"ping"}\n\n')
      const { protocolVersion } = message['params'] as { protocolVersion: string }
      const result = { protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'n', version: '1' } }
      waiting.push(() => response.end(`data: ${JSON.stringify({ jsonrpc: '2.0', id: message['id'], result })}\n\n`))
      return true
    },
  })
  const { url } = await startBridge(t, { url: http.url }, PATIENT)
  t.match((await call(url, 'tools/call', ECHO)).message, ECHOED)
  const pipe = openPipe(t, { url: http.url }, PATIENT)
  await shakeHands(pipe)
  t.match(await askOn(pipe, 'tools/call', ECHO), ECHOED)
})
