/** How a modern request is answered, with an upstream that the test plays: which messages are sent, and in which order. */
import t from 'tap'
import { Fault } from '../../src/base/fault/fault.js'
import { unlimited } from '../../src/base/limits/memory.js'
import type { Request } from '../../src/base/rpc/message.js'
import { join } from '../../src/base/rpc/source.js'
import { HangUp } from '../../src/base/time/hang-up.js'
import type { Frame } from '../../src/clients/frames.js'
import type { Logger } from '../../src/clients/logger.js'
import { ModernDownstream } from '../../src/clients/modern/half.js'
import type { Call, Final, Handler, ServerNotification } from '../../src/mcp/protocol/call.js'
import { envelopeIn } from '../../src/mcp/protocol/modern-client.js'
import { payload } from '../support/calls.js'
import { parseText } from '../support/messages.js'

const META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {},
  progressToken: 'p',
}
const LOG: Logger = { isLevelEnabled: () => false, debug() {}, info() {}, warn() {}, error() {} }
const DONE: Final = { kind: 'result', result: payload({ content: [] }) }
const progress = (value: number): ServerNotification => ({
  kind: 'notification',
  method: 'notifications/progress',
  params: payload({ progress: value }),
})

/** Answers a `tools/call`. `send` is called for each frame before the answer. */
async function answer(handle: Handler, send: (frame: Frame) => Promise<void> | undefined = () => undefined) {
  const params = { name: 'x', arguments: {}, _meta: META }
  const request = parseText(JSON.stringify({ jsonrpc: '2.0', id: 7, method: 'tools/call', params })) as Request
  const frames: { id?: number; method?: string; params?: { progress: number }; error?: object }[] = []
  const abort = new HangUp()
  const upstream = {
    handle,
    notify: () => undefined,
    legacyRoute: () => Promise.reject(new Fault('internal', 'Not used')),
  }
  const modern = new ModernDownstream({ upstream, compat: { draftErrorCodes: false }, memory: unlimited() })
  const envelope = envelopeIn(request.params)
  await modern.answerRequest(request, envelope, { principal: 'alice', abort, log: LOG, transport: 'http' }, (frame) => {
    frames.push(JSON.parse(join(frame.text)) as object)
    return send(frame)
  })
  return { frames, abort }
}

t.test('sends the messages of a call in order, and before the answer', async (t) => {
  const { frames } = await answer(async ({ notify }) => {
    await notify(progress(1))
    await notify(progress(2))
    return DONE
  })
  t.same(
    frames.map(({ id, params }) => params?.progress ?? id),
    [1, 2, 7],
  )
})

t.test('drops messages after the answer or after a failure', async (t) => {
  const ends: (() => Final)[] = [
    () => DONE,
    () => {
      throw new Fault('upstreamClosed', 'The server has gone')
    },
  ]
  for (const end of ends) {
    let call: Call | undefined
    const { frames } = await answer(async (asked) => {
      call = asked
      return end()
    })
    t.equal(call?.notify(progress(1)), undefined)
    t.equal(frames.length, 1)
    t.equal(frames[0]?.id, 7)
  }
})

t.test('a slow reader delays the sender', async (t) => {
  const order: string[] = []
  let drain = () => {}
  const drained = new Promise<void>((resolve) => {
    drain = resolve
  })
  const answering = answer(
    async ({ notify }) => {
      const held = notify(progress(1))
      t.ok(held, 'there is no room')
      order.push('told')
      await held
      order.push('goes on')
      return DONE
    },
    ({ last }) => (last ? undefined : drained),
  )
  await new Promise((resolve) => setImmediate(resolve))
  t.same(order, ['told'])
  drain()
  await answering
  t.same(order, ['told', 'goes on'])
})
