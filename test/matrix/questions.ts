/** What a server asks in the middle of a call, as a request in one era and as a result in the other. */
import type { Test } from 'tap'
// @ts-expect-error: plain JavaScript, because servers on stdio run it without any loader
import { QUESTIONS as FROM_MODERN } from '../fixtures/modern-questions.mjs'
import { until } from '../support/eventually.js'
import { text } from './calls.js'
import { type Cell, cancelledCalls, resultOf, type Scenario } from './cell.js'
import type { Json, Question } from './client.js'
import { crosses, type Pair } from './told.js'

type Name = 'name' | 'page' | 'model' | 'roots'

const ASKED = FROM_MODERN as Record<Name, Question>
const CAPABILITIES: Json = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} }

/** What the clients of the matrix answer to each. */
const ANSWERS: Record<Name, Json> = {
  name: { action: 'accept', content: { name: 'Zoë' } },
  page: { action: 'accept' },
  model: { role: 'assistant', content: { type: 'text', text: 'Paris ✓' }, model: 'm', stopReason: 'endTurn' },
  roots: { roots: [{ uri: 'file:///é', name: 'x' }] },
}

/** A scenario in which a server asks these questions, those of each round at once, and is answered. */
export function asking(name: string, rounds: readonly Name[][], answers: Partial<typeof ANSWERS> = {}): Scenario {
  const all = { ...ANSWERS, ...answers }
  const names = rounds.flat()
  const plan = () => ({ capabilities: CAPABILITIES, answers: (question: Question) => all[nameOf(question)] })
  const impossible = ({ server }: Pair) =>
    names.includes('page') && server.era === 'legacy' && server.revision < '2025-11-25'
      ? `Servers of ${server.revision} have no word for addresses that a person is to go to.`
      : undefined

  async function run(t: Test, cell: Cell): Promise<void> {
    const { client, pair } = cell
    const put = (one: Name) => putBy(pair, one)
    const params = { name: 'ask', arguments: { rounds: rounds.map((round) => entries(round, put)) } }
    const answer = await client.call('tools/call', params)
    const { structuredContent, content } = resultOf(t, cell, answer, 'CallToolResult')
    t.same(
      structuredContent,
      entries(names, (one) => all[one]),
      'the server was answered',
    )
    t.same(JSON.parse((content as [{ text: string }])[0].text), structuredContent)

    const told = names.map((one) => toldQuestion(ASKED[one]))
    t.same(inOrder(client.asked.map(toldQuestion)), inOrder(told), 'what the client was asked')
    for (const question of client.asked.filter(({ params: { mode } }) => mode === 'url'))
      t.equal('elicitationId' in question.params, client.era === 'legacy', 'an id, where the era has one')
    const legs = cell.reached('tools/call').length
    t.equal(legs, pair.server.era === 'modern' ? rounds.length + 1 : 1, 'how often the server was called')
    const asks = client.arrived.filter(({ message }) => message.result?.['resultType'] === 'input_required').length
    t.equal(asks, client.era === 'modern' ? rounds.length : 0, 'how often a modern client was asked')
  }

  return { name, plan, impossible, run }
}

/** A question as a server puts it: legacy ones know an address by an id as well. */
function putBy({ server }: Pair, name: Name): Question {
  const { method, params } = ASKED[name]
  return name === 'page' && server.era === 'legacy'
    ? { method, params: { ...params, elicitationId: 'e 1' } }
    : ASKED[name]
}

/** A question as it is told, but for the id of an address, which is one side's own. */
function toldQuestion({ method, params }: Question): Question {
  const { elicitationId, ...others } = params
  return { method, params: others }
}

function nameOf({ method, params }: Question): Name {
  if (method === 'sampling/createMessage') return 'model'
  if (method === 'roots/list') return 'roots'
  return params['mode'] === 'url' ? 'page' : 'name'
}

function entries<T>(names: readonly Name[], value: (name: Name) => T): Record<string, T> {
  return Object.fromEntries(names.map((name) => [name, value(name)]))
}

/** Questions that are put at once come in any order. */
function inOrder(questions: Question[]): Question[] {
  return questions.toSorted((a, b) => a.method.localeCompare(b.method))
}

/** The client does not answer and takes its call back. */
export const unanswered: Scenario = {
  name: 'no answer',
  plan: () => ({ capabilities: CAPABILITIES, answers: () => undefined }),
  impossible: ({ client }) =>
    client.era === 'modern' ? 'A modern client that does not want to answer says nothing at all.' : undefined,
  async run(t, cell) {
    const { client, server, pair } = cell
    const before = server.cancelled().length
    const params = { name: 'ask', arguments: { rounds: [{ name: ASKED.name }] } }
    const pending = client.request('tools/call', params)
    await until(() => client.asked.length === 1, 'the client is asked')
    await pending.cancel('I do not want to say')
    if (crosses(pair)) {
      await until(() => client.of('notifications/cancelled').length === 1, 'the question is taken back')
      const [question] = client.of('elicitation/create')
      const [{ params: taken } = {}] = client.of('notifications/cancelled')
      t.equal((taken as Json)['requestId'], question?.['id'], 'that question')
    } else {
      await until(() => cancelledCalls(cell, before).length > 0, 'the server knows')
    }
    const again = await client.request('tools/call', { name: 'mirrored', arguments: {} }).answer
    t.same(resultOf(t, cell, again), text('{}'), 'the next call is answered')
    const asking = cell.reached('tools/call').filter(({ text: said }) => said.includes('"ask"'))
    t.equal(asking.length, 1, 'the server is not called again')
    const [call] = asking
    const told = crosses(pair) ? [] : [call?.message['id']]
    t.same(cancelledCalls(cell, before), told, 'a modern server has no open call that could be cancelled')
  },
}
