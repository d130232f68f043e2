/** A subscription of a client on a pipe ends with the pipe, also while something else begins to be served. */
import t from 'tap'
import { movingSubscription, PipeChanges } from '../../src/clients/modern/moving-subscription.js'
import type { Handler } from '../../src/mcp/protocol/call.js'
import { acknowledgement, CHANGING_LISTS, NOTHING } from '../../src/mcp/protocol/subscriptions.js'
import { callOf } from '../support/calls.js'
import { until } from '../support/eventually.js'

const LISTS = { ...NOTHING, lists: CHANGING_LISTS }

/** A server that acknowledges each subscription, and keeps it open. */
const handle: Handler = async (call) => {
  await call.notify(acknowledgement(LISTS))
  return new Promise((_resolve, reject) => {
    call.signal.addEventListener('abort', () => reject(call.signal.reason as Error))
  })
}

t.test('it ends if the pipe has ended before', async (t) => {
  const changes = new PipeChanges()
  changes.tell('over')
  t.match(await movingSubscription(callOf({ method: 'subscriptions/listen' }), changes, handle), { kind: 'result' })
})

t.test('it ends if the pipe ends while the client is told that everything has changed', async (t) => {
  const changes = new PipeChanges()
  const told: string[] = []
  let read = () => {}
  const call = callOf({
    method: 'subscriptions/listen',
    notify: ({ method }) => {
      told.push(method)
      return told.length === 1 ? undefined : new Promise<void>((resolve) => (read = resolve))
    },
  })
  const listening = movingSubscription(call, changes, handle)
  await until(() => told.length === 1)
  changes.tell('moved')
  await until(() => told.length === 2)
  changes.tell('over')
  for (let more = 2; more <= 4; more++) {
    await until(() => told.length === more)
    read()
  }
  t.match(await listening, { kind: 'result' })
})
