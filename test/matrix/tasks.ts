/** A call that becomes a task: the server's doing in one era, the client's in the other. */
import type { Test } from 'tap'
import { text, walk } from './calls.js'
import { type Cell, paramsOf, resultOf, type Scenario } from './cell.js'
import type { Json } from './client.js'
import { crosses } from './told.js'

const EXTENSION = 'io.modelcontextprotocol/tasks'
/** More than enough looks at a task that gets on with each of them. */
const LOOKS = 10

export const task: Scenario = {
  name: 'task',
  plan: ({ client }) => (client.era === 'modern' ? { capabilities: { extensions: { [EXTENSION]: {} } } } : {}),
  impossible: ({ server }) =>
    server.era === 'legacy' && server.revision < '2025-11-25'
      ? `Servers of ${server.revision} have no tasks.`
      : undefined,
  async run(t, cell) {
    const { pair, client } = cell
    // Whether a tool has to be a task stands in the list.
    await walk(t, cell, 'tools/list')
    const result = client.era === 'modern' ? modernTask(t, cell) : crosses(pair) ? noTask(t, cell) : legacyTask(t, cell)
    t.same(await result, text('at last'))
    const calls = cell.reached('tools/call').map(paramsOf)
    if (pair.server.era === 'modern') {
      t.ok(cell.reached('tasks/get').length > 0, 'the server is asked how the task stands')
      return
    }
    t.equal(calls.length, 1, 'the tool is called once')
    t.type((calls[0]?.['task'] as Json)['ttl'], 'number', 'as a task')
    for (const { taskId } of ['tasks/get', 'tasks/result'].flatMap((method) => cell.reached(method).map(paramsOf)))
      t.match(taskId, /^task \d+$/, 'the id is the server’s own')
  },
}

const call = (polls: number, more: Json = {}) => ({ name: 'task', arguments: { polls, say: 'at last' }, ...more })

/** A client that has said that it knows tasks is given one, and looks until it is over. */
async function modernTask(t: Test, cell: Cell): Promise<Json> {
  const { client, pair } = cell
  const created = (await client.request('tools/call', call(1)).answer).message.result ?? {}
  t.match(created, { resultType: 'task', status: 'working', taskId: String, ttlMs: Number, pollIntervalMs: 10 })
  const ended = await look(cell, String(created['taskId']))
  const { resultType, ...result } = ended['result'] as Json
  if (crosses(pair)) t.equal(resultType, 'complete', 'what came of it is a whole result')
  return result
}

/** A client that asks for a task where there is such a thing for both. */
async function legacyTask(t: Test, cell: Cell): Promise<Json> {
  const { client } = cell
  const created = resultOf(t, cell, await client.request('tools/call', call(1, { task: { ttl: 60_000 } })).answer)
  const { taskId, status } = created['task'] as Json
  t.equal(status, 'working')
  await look(cell, String(taskId))
  const answer = await client.request('tasks/result', { taskId }).answer
  const { _meta, ...result } = resultOf(t, cell, answer, 'CallToolResult')
  t.same(_meta, { 'io.modelcontextprotocol/related-task': { taskId } }, 'the task that it is of')
  return result
}

/** A client that knows of no tasks waits for the answer. */
async function noTask(t: Test, cell: Cell): Promise<Json> {
  return resultOf(t, cell, await cell.client.request('tools/call', call(0)).answer, 'CallToolResult')
}

async function look({ client }: Cell, taskId: string): Promise<Json> {
  for (let looks = 0; looks < LOOKS; looks++) {
    const { message } = await client.request('tasks/get', { taskId }).answer
    if (message.result?.['status'] === 'completed') return message.result
  }
  throw new Error('The task does not come to an end')
}
