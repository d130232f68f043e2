/** Modern clients on a pipe that are asked something by legacy servers. Numbers are those of test/invariants.md. */
import t from 'tap'
import { ABLE, ADA, BLUE, COLOUR, NAME, of, type Step, startAsker, WAYS } from '../support/asking.js'
import { until } from '../support/eventually.js'
import { CAPABILITIES, envelope } from '../support/modern.js'
import { openPipe } from '../support/pipe.js'

type Json = Record<string, unknown>
type Asked = {
  resultType: string
  inputRequests: Record<string, Json>
  requestState: string
  content?: { text: string }[]
}

for (const way of WAYS) {
  t.test(`a client on a pipe answers a server ${way}, round after round`, async (t) => {
    const asker = await startAsker(t, way)
    const pipe = openPipe(t, asker.server)
    const call = async (id: unknown, steps: readonly Step[], more: Json = {}) => {
      const params = { name: 'steps', arguments: { steps, by: asker.by }, ...more }
      return (await pipe.call('tools/call', params, { id, meta: { [CAPABILITIES]: ABLE } }))['result'] as Asked
    }
    const steps = [{ ask: [NAME] }, { ask: [COLOUR] }]
    const first = await call(1, steps)
    t.equal(first.resultType, 'input_required')
    const [name = ''] = Object.keys(first.inputRequests)
    const second = await call(2, steps, { inputResponses: { [name]: ADA }, requestState: first.requestState })
    const [colour = ''] = Object.keys(second.inputRequests)
    const last = await call(1, steps, { inputResponses: { [colour]: BLUE }, requestState: second.requestState })
    t.same(last.content, [{ type: 'text', text: JSON.stringify([ADA, BLUE]) }])
    t.ok(
      pipe.messages().every((message) => !('method' in message)),
      'nothing but answers is said',
    )
    t.equal(of(asker, 'tools/call').length, 1)
  })

  t.test(`a client on a pipe cancels a running call of a server ${way}, and not one that waits for it`, async (t) => {
    const asker = await startAsker(t, way)
    const pipe = openPipe(t, asker.server)
    const params = { name: 'steps', arguments: { steps: [{ ask: [NAME] }, { wait: 'ever' }], by: asker.by } }
    const meta = { [CAPABILITIES]: ABLE }
    const first = (await pipe.call('tools/call', params, { id: 'a', meta }))['result'] as Asked
    const cancel = (requestId: unknown) =>
      pipe.line(JSON.stringify({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId } }))
    cancel('a')
    const [name = ''] = Object.keys(first.inputRequests)
    const retry = {
      ...params,
      inputResponses: { [name]: ADA },
      requestState: first.requestState,
      _meta: envelope(meta),
    }
    pipe.line(JSON.stringify({ jsonrpc: '2.0', id: 'b', method: 'tools/call', params: retry }))
    await until(() => of(asker).length === 1, 'the answer at the server')
    t.same(of(asker, 'notifications/cancelled'), [])
    cancel('b')
    await until(() => of(asker, 'notifications/cancelled').length === 1, 'the cancellation at the server')
    t.equal(pipe.messages().filter(({ id }) => id === 'b').length, 0, 'what was taken back is not answered')
  })
}
