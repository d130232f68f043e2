/** What a server says of its own accord: in one era to whoever is there, in the other to who has asked for it. */
import type { Test } from 'tap'
import { until } from '../support/eventually.js'
import { text } from './calls.js'
import { type Cell, paramsOf, resultOf } from './cell.js'
import type { Json, Pending } from './client.js'
import { crosses } from './told.js'

const URI = 'test://static'
const ANOTHER = 'test://item/1'
const UPDATED = 'notifications/resources/updated'
const TOOLS = 'notifications/tools/list_changed'
const PROMPTS = 'notifications/prompts/list_changed'
const SUBSCRIPTION = 'io.modelcontextprotocol/subscriptionId'

/** Whether it is the server alone who decides what its client is told. */
const isServers = ({ pair }: Cell) => pair.server.era === 'legacy' && !crosses(pair)

/** A client hears of the resources that it has asked for, until it wants to hear no more. */
export async function subscription(t: Test, cell: Cell): Promise<void> {
  const { client } = cell
  const listening = await subscribe(t, cell)
  await touch(t, cell, { uris: [ANOTHER, URI] })
  const heard = () => client.of(UPDATED).map(({ params }) => params)
  const expected = [...(isServers(cell) ? [ANOTHER] : []), URI].map((uri) => told({ uri }, listening))
  await until(() => heard().length >= expected.length, 'the client has heard')
  t.same(heard(), expected)
  if (listening) await listening.cancel('enough')
  else t.same((await client.request('resources/unsubscribe', { uri: URI }).answer).message.result, {})
  if (cell.pair.server.era === 'modern') await until(() => !hasUri(cell), 'the server knows')
  if (isServers(cell)) return
  await touch(t, cell, { uris: [URI] })
  t.equal(heard().length, expected.length, 'nothing more is heard')
}

async function subscribe(t: Test, cell: Cell): Promise<Pending | undefined> {
  const { client } = cell
  if (client.era === 'modern') return listen(t, cell, { resourceSubscriptions: [URI] })
  const { message } = await client.request('resources/subscribe', { uri: URI }).answer
  t.same(message.result, {}, 'the subscription is taken')
  return undefined
}

/** Opens the subscription of a modern client, and waits until the server has agreed. */
async function listen(t: Test, { client }: Cell, notifications: Json): Promise<Pending> {
  const pending = client.request('subscriptions/listen', { notifications }, { id: 'listen 1' })
  const agreed = () => client.of('notifications/subscriptions/acknowledged')
  await until(() => agreed().length > 0, 'the subscription is acknowledged')
  const params = told({ notifications }, pending)
  t.same(
    agreed().map((message) => message['params']),
    [params],
    'as it was asked for',
  )
  return pending
}

/** What belongs to a subscription says so. */
function told(params: Json, listening: Pending | undefined): Json {
  return listening ? { ...params, _meta: { [SUBSCRIPTION]: listening.id } } : params
}

/** Whether the last subscription that has reached a modern server, and is not cancelled, is for the resource. */
function hasUri({ server, reached }: Cell): boolean {
  const open = reached('subscriptions/listen').filter(({ message }) => !server.cancelled().includes(message['id']))
  return open.some((one) => JSON.stringify(paramsOf(one)).includes(URI))
}

async function touch(t: Test, cell: Cell, what: Json): Promise<void> {
  const answer = await cell.client.request('tools/call', { name: 'touch', arguments: what }).answer
  t.same(resultOf(t, cell, answer), text('touched'))
}

/** A client hears that a list has changed; a modern one of those that it has asked for. */
export async function listChange(t: Test, cell: Cell): Promise<void> {
  const { client, pair } = cell
  const listening = client.era === 'modern' ? await listen(t, cell, { toolsListChanged: true }) : undefined
  if (pair.server.era === 'modern')
    await until(() => cell.reached('subscriptions/listen').length > 0, 'the bridge listens')
  await touch(t, cell, { prompts: true, tools: true })
  const heard = () =>
    client.arrived.map(({ message }) => message).filter(({ method }) => /list_changed$/.test(String(method)))
  const expected = listening ? [TOOLS] : [TOOLS, PROMPTS]
  await until(() => heard().length >= expected.length, 'the client has heard')
  t.same(new Set(heard().map(({ method }) => method)), new Set(expected))
  t.equal(heard().length, expected.length, 'once')
  for (const { params = {} } of heard()) t.same(params, told({}, listening))
  await listening?.cancel('enough')
}
