/** A subscription of a client on a pipe ends with the pipe, also while something else begins to be served. */
import t from 'tap'
import { movingSubscription, type PipeChanges } from '../../src/clients/modern/moving-subscription.js'
import { acknowledgement, CHANGING_LISTS, NOTHING } from '../../src/mcp/protocol/subscriptions.js'
import { callOf } from '../support/calls.js'
import { until } from '../support/eventually.js'

const LISTS = { ...NOTHING, lists: CHANGING_LISTS }

/** A pipe whose server acknowledges each subscription, and keeps it open. */
function pipe(hasEnded = false) {
  const followers: Parameters<PipeChanges['follow']>[0][] = []
  const changes: PipeChanges = {
    follow: (changed) => {
      followers.push(changed)
      if (hasEnded) changed('over')
      return () => {}
    },
    handle: async (call) => {
      await call.notify(acknowledgement(LISTS))
      return new Promise((_resolve, reject) => {
        call.signal.addEventListener('abort', () => reject(call.signal.reason as Error))
      })
    },
  }
  return { changes, tell: (what: 'moved' | 'over') => followers.forEach((changed) => changed(what)) }
}

t.test('it ends if the pipe has ended before', async (t) => {
  const { changes } = pipe(true)
  t.match(await movingSubscription(callOf({ method: 'subscriptions/listen' }), changes), { kind: 'result' })
})

t.test('it ends if the pipe ends while the client is told that everything has changed', async (t) => {
  const { changes, tell } = pipe()
  const told: string[] = []
  let read = () => {}
  const call = callOf({
    method: 'subscriptions/listen',
    notify: ({ method }) => {
      told.push(method)
      return told.length === 1 ? undefined : new Promise<void>((resolve) => (read = resolve))
    },
  })
  const listening = movingSubscription(call, changes)
  await until(() => told.length === 1)
  tell('moved')
  await until(() => told.length === 2)
  tell('over')
  for (let more = 2; more <= 4; more++) {
    await until(() => told.length === more)
    read()
  }
  t.match(await listening, { kind: 'result' })
})
