/** What happens between a request and its answer. */
import type { Test } from 'tap'
import { until } from '../support/eventually.js'
import { text } from './calls.js'
import { type Cell, cancelledCalls, metaOf, only, paramsOf, resultOf, sameMeta } from './cell.js'
import type { Json, Message } from './client.js'
import { crosses, passesUnchanged } from './told.js'

/** Progress comes before the answer, on its stream, with the token that the client gave. */
export async function progress(t: Test, cell: Cell): Promise<void> {
  const { client, pair } = cell
  const values = [0.5, 1, 4]
  const tokens = ['tök"en', 7]
  for (const progressToken of tokens) {
    const from = cell.reached('tools/call').length
    const params = { name: 'progress', arguments: { values } }
    const answer = await client.request('tools/call', params, { meta: { progressToken } }).answer
    t.same(resultOf(t, cell, answer, 'CallToolResult'), { content: [] })
    const told = values.map((value) => ({ progressToken, progress: value, total: 5 }))
    t.same(answer.before.map(saidBy('notifications/progress')), told)
    const [reached] = cell.reached('tools/call').slice(from)
    const token = reached && metaOf(reached)['progressToken']
    if (passesUnchanged(pair)) t.equal(token, progressToken)
    t.match(typeof token, /^(?:string|number)$/, 'there is a token at the server')
    if (reached) sameMeta(t, cell, reached, { progressToken: token })
  }
  t.equal(client.of('notifications/progress').length, tokens.length * values.length, 'and nowhere else')
}

function saidBy(method: string): (message: Message) => unknown {
  return (message) => (message['method'] === method ? message['params'] : message)
}

const LEVELS = ['debug', 'warning', 'error']

/**
 * Log messages come as they were asked for: with each request in one era, once and for all in the other. Between a
 * client and a server that agree on the latter, it is the server who decides what goes out.
 */
export async function log(t: Test, cell: Cell): Promise<void> {
  const { client, pair } = cell
  const isServers = pair.server.era === 'legacy' && !crosses(pair)
  const heard = () => client.of('notifications/message').map(({ params }) => params)
  const messages = (levels: string[], data: string) => levels.map((level) => ({ level, data }))
  const logging = (say: string) => client.request('tools/call', { name: 'log', arguments: { say } }).answer

  await logging('nobody asked')
  const set = await client.logAt('warning')
  if (set) t.same(set.message.result, {}, 'the level is set')
  const answer = await logging('é')
  t.same(resultOf(t, cell, answer), { content: [] })
  const expected = isServers
    ? [...messages(LEVELS, 'nobody asked'), ...messages(LEVELS, 'é')]
    : messages(['warning', 'error'], 'é')
  // A server's own messages may come by another connection than the answer.
  await until(() => heard().length >= expected.length, 'the log messages have come')
  t.same(heard(), expected)
  if (!isServers) t.same(answer.before.map(saidBy('notifications/message')), expected, 'before the answer')

  const levels = cell.reached('logging/setLevel').map(paramsOf)
  t.same(levels, pair.server.era === 'legacy' ? [{ level: 'warning' }] : [], 'how the server was told')
  const [first, second] = cell.reached('tools/call')
  if (first) sameMeta(t, cell, first)
  if (second) sameMeta(t, cell, second, {}, 'warning')
}

/** A request that is taken back is taken back at the server, and nothing more is heard of it. */
export async function cancel(t: Test, cell: Cell): Promise<void> {
  const { client, pair, server } = cell
  const isLegacy = pair.server.era === 'legacy'
  // What lingers at a legacy server is answered when it is cancelled, because answers and cancellations may cross.
  const params: Json = isLegacy ? { name: 'linger', arguments: {} } : { name: 'wait', arguments: { ms: 600_000 } }
  const before = server.cancelled().length
  const pending = client.request('tools/call', params, { id: 'to be cancelled' })
  await until(() => cell.reached('tools/call').length > 0, 'the call has reached the server')
  const { message } = only(t, cell, 'tools/call')
  await pending.cancel('I have changed my mind')
  await until(() => cancelledCalls(cell, before).length > 0, 'the server knows')
  const again = await client.request('tools/call', { name: 'echo', arguments: {} }).answer
  t.same(resultOf(t, cell, again), { ...text('{}'), structuredContent: {} }, 'the next call is answered')
  t.same(cancelledCalls(cell, before), [message['id']], 'that call was cancelled, once')
  if (isLegacy && client.era === 'legacy') {
    const { reason } = paramsOf(only(t, cell, 'notifications/cancelled'))
    t.equal(reason, 'I have changed my mind')
  }
  if (passesUnchanged(pair)) return
  const { status } = await pending.ended
  if (pair.client.transport === 'HTTP' && client.era === 'legacy') t.equal(status, 202, 'no answer is owed')
  t.notOk(
    client.arrived.some(({ message: { id } }) => id === 'to be cancelled'),
    'nothing came for it',
  )
}
