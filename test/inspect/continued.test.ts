/** Which call of a modern client continues which: the one whose questions it answers, of the same principal and tool. */
import t, { type Test } from 'tap'
import { EventRecorder } from '../../src/inspector/recorder/recorder.js'
import { Ring } from '../../src/inspector/ring.js'
import { Views } from '../../src/inspector/views.js'
import { ADA, NAME } from '../support/asking.js'
import { startBridge } from '../support/bridge.js'
import { until } from '../support/eventually.js'
import { messages } from '../support/inspected.js'
import { ModernHttp } from '../support/modern-http.js'
import { eventsIn } from '../support/sights.js'

const TOKENS = { alice: 'the-token-of-alice', bob: 'the-token-of-bob' }

/** A bridge with a modern server whose questions have this state, which its clients send back. */
async function start(t: Test, requestState: string | undefined) {
  const ring = new Ring()
  const server = await ModernHttp.start(t, {
    override: ({ message }, response) => {
      const { id, method, params } = message as { id: number; method: string; params?: { inputResponses?: object } }
      if (method !== 'tools/call') return false
      const asks = {
        resultType: 'input_required',
        inputRequests: { name: NAME },
        ...(requestState !== undefined && { requestState }),
      }
      const done = { resultType: 'complete', content: [] }
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end(JSON.stringify({ jsonrpc: '2.0', id, result: params?.inputResponses ? done : asks }))
      return true
    },
  })
  const { url } = await startBridge(
    t,
    { url: server.url },
    { auth: { tokens: TOKENS } },
    { recorder: new EventRecorder(ring.record) },
  )
  const call = async (who: keyof typeof TOKENS, name: string, answered = false) => {
    const { params, ...rest } = JSON.parse(messages.call(name, {})) as { params: { _meta: object } }
    const more = answered && { inputResponses: { name: ADA }, ...(requestState !== undefined && { requestState }) }
    const _meta = { ...params._meta, 'io.modelcontextprotocol/clientCapabilities': { elicitation: { form: {} } } }
    const body = JSON.stringify({ ...rest, params: { ...params, ...more, _meta } })
    const headers = { authorization: `Bearer ${TOKENS[who]}` }
    await (await messages.post(url, body, headers)).text()
  }
  const calls = () => {
    const views = new Views()
    for (const seen of eventsIn(ring)) views.add(seen)
    return [...views.calls.values()].filter(({ method }) => method === 'tools/call')
  }
  return { call, calls }
}

for (const state of ['step-1', undefined])
  t.test(`a server with ${state === undefined ? 'no state' : 'the same state for all'}`, async (t) => {
    const { call, calls } = await start(t, state)
    await call('alice', 'book')
    await call('bob', 'book')
    await call('alice', 'other')
    await call('alice', 'book', true)
    await until(() => calls().every(({ status }) => status !== 'open'))
    t.same(
      calls().map(({ principal, name, status }) => [principal, name, status]),
      [
        ['alice', 'book', 'ok'],
        ['bob', 'book', 'asks'],
        ['alice', 'other', 'asks'],
      ],
    )
  })
