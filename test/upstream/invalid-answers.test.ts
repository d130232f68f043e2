/** An answer that cannot be read fails the call that it answers, whatever number the calls of others have. */
import type { ServerResponse } from 'node:http'
import t from 'tap'
import { startBridge } from '../support/bridge.js'
import { until } from '../support/eventually.js'
import { call } from '../support/modern.js'
import { PlainHttp } from '../support/plain-http.js'

const DISCOVERED =
  '{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}'
const ANSWER_BYTES = 100_000

/** What follows `"result":` in an answer that is not to be read. */
const BROKEN = {
  'an answer that is no JSON': '{"x":NaN}}',
  'an answer that is too long': `{"content":[{"type":"text","text":"${'x'.repeat(2 * ANSWER_BYTES)}"}]}}`,
}

for (const [what, rest] of Object.entries(BROKEN)) {
  t.test(`${what} does not fail a call of somebody else, whose number its id is`, async (t) => {
    const held: ServerResponse[] = []
    const server = await PlainHttp.start(t, ({ message }, response) => {
      const id = JSON.stringify(message?.['id'])
      response.setHeader('content-type', 'application/json')
      if (message?.['method'] === 'server/discover')
        return response.end(`{"jsonrpc":"2.0","id":${id},"result":${DISCOVERED}}`)
      if (id === '"held"') held.push(response)
      else response.end(`{"jsonrpc":"2.0","id":${id},"result":${rest}`)
    })
    const { url } = await startBridge(t, { url: server.url }, { limits: { answerBytes: ANSWER_BYTES } })
    const waiting = call(url, 'tools/call', { name: 'wait' }, { id: 'held' })
    await until(() => held.length === 1, 'the call is at the server')
    for (let id = 1; id <= 12; id++) {
      const { message } = await call(url, 'tools/call', { name: 'break' }, { id })
      t.match(message, { id, error: { code: -32603 } }, `its own call fails, id ${id}`)
    }
    held[0]?.end('{"jsonrpc":"2.0","id":"held","result":{"resultType":"complete","content":[]}}')
    t.match((await waiting).message, { id: 'held', result: { content: [] } }, 'the other call is answered')
  })
}
