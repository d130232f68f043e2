/** A client whose list waits for servers is told so: by progress and in the log, as it wants them. */
import t from 'tap'
import type { Call } from '../../src/mcp/protocol/call.js'
import { until } from '../support/eventually.js'
import { callOf, FakeServer, groupOf, named, paramsOf, resultOf } from './fakes.js'

const caller = { revision: '2026-07-28', capabilities: '{}' } as const

/** A list that waits for one of two servers, until the test lets that one answer. */
function waiting(more: Partial<Call>, plan: object = {}) {
  let go = () => {}
  const slow = new FakeServer({
    'tools/list': () =>
      new Promise((resolve) => {
        go = () => resolve(resultOf({ tools: named('x') }))
      }),
  })
  const quick = new FakeServer({ 'tools/list': { tools: named('y') } })
  const { group } = groupOf({ quick, slow }, plan)
  const call = callOf('tools/list', {}, more)
  return { call, list: group.handle(call), go: () => go() }
}

const messages = ({ told }: ReturnType<typeof callOf>) => told.map((one) => [one.method, paramsOf(one)] as const)
const WAITS = 'Waiting for slow: 1 of 2 servers have answered'

t.test('by progress with a progress token', async (t) => {
  const { call, list, go } = waiting({ progress: true })
  await until(() => call.told.length >= 2, 'it is told twice')
  go()
  t.match(await list, { kind: 'result' })
  const told = messages(call)
  for (const [method, params] of told) t.match([method, params], ['notifications/progress', { message: WAITS }])
  const values = told.map(([, { progress }]) => progress as number)
  t.ok(
    values.every((value, i) => value > (values[i - 1] ?? 0) && value < 1),
    'it grows, below what a server would say',
  )
})

t.test('in the log, if it wants what is less than a warning', async (t) => {
  const { call, list, go } = waiting({ caller: { ...caller, logLevel: 'info' } })
  await until(() => call.told.length > 0, 'it is told')
  go()
  await list
  t.match(messages(call)[0], ['notifications/message', { level: 'info', logger: 'mcp-bridge', data: WAITS }])
})

t.test('also while a search reads the lists', async (t) => {
  const { call, list, go } = waiting({ progress: true }, { search: { always: ['*'], limit: 5 } })
  await until(() => call.told.length > 0, 'it is told')
  go()
  await list
  t.match(messages(call)[0], ['notifications/progress', { message: WAITS }])
})

t.test('a client that wants neither is told nothing', async (t) => {
  const other = waiting({ progress: true })
  const { call, list, go } = waiting({ caller: { ...caller, logLevel: 'warning' } })
  await until(() => other.call.told.length > 0, 'another client is told')
  other.go()
  go()
  await Promise.all([list, other.list])
  t.same(call.told, [])
})
