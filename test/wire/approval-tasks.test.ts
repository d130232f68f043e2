/** Tasks of calls that a person approves: the call is approved once, before the server makes a task of it. */
import t, { type Test } from 'tap'
import type { Json, Question } from '../matrix/client.js'
import { CLIENTS, type ClientKind, connect, type Reachable } from '../matrix/clients.js'
import { isApproval, messageOf, person, RUN, toolResult } from '../support/approving.js'
import { ABLE, ADA, all, NAME, of, type Round, startAsker, talk, WAYS } from '../support/asking.js'
import { startBridge } from '../support/bridge.js'
import { untilFound } from '../support/eventually.js'
import { CAPABILITIES } from '../support/modern.js'
import { ModernHttp } from '../support/modern-http.js'

const TASKS = 'io.modelcontextprotocol/tasks'
const KNOWING = { ...ABLE, extensions: { [TASKS]: {} } }
const QUESTION = { name: { ...NAME, params: { mode: 'form', ...NAME.params } } }
const DECLINED = { approval: { action: 'decline' } }

interface Server {
  entry: Json
  /** The tool that is a task, and arguments with which it asks for a name. */
  tool: string
  asking: Json
  calls(): Json[]
  /** Legacy clients have sessions of the server itself. */
  hasSessions?: boolean
}

const taskIn = (result: unknown) => (result as { task: { taskId: string } }).task.taskId

const SERVERS: Record<string, (t: Test) => Promise<Server>> = {
  'a modern server': async (t) => {
    const server = await ModernHttp.start(t)
    const isOfTask = ({ params }: Json) => {
      const { _meta } = params as { _meta: Record<string, { extensions?: object }> }
      return _meta[CAPABILITIES]?.extensions !== undefined
    }
    const calls = () => server.of('tools/call').map(({ message = {} }) => message)
    return {
      entry: { url: server.url },
      tool: 'task',
      asking: { ask: QUESTION },
      // A client that knows no tasks is refused first, and the bridge repeats the call as one that does.
      calls: () => calls().filter(isOfTask),
    }
  },
  ...Object.fromEntries(
    WAYS.map((way) => [
      `a legacy server ${way}`,
      async (t: Test) => {
        const asker = await startAsker(t, way)
        return {
          entry: asker.server as Json,
          tool: 'job',
          asking: { steps: [{ ask: [NAME] }] },
          calls: () => of(asker, 'tools/call'),
          hasSessions: true,
        }
      },
    ]),
  ),
}

for (const [name, start] of Object.entries(SERVERS)) {
  t.test(`a modern client, ${name}: a call is approved before it becomes a task, and its task is not`, async (t) => {
    const { entry, tool, asking, calls } = await start(t)
    const { url } = await startBridge(t, { ...entry, tools: { approve: [tool] } })
    const client = talk(url, { capabilities: KNOWING })
    const ask = () => client.call('tools/call', { name: tool, arguments: asking })
    const asked = await ask()
    t.match(asked.requests['approval']?.params, {
      message: new RegExp(`^Run the tool "${tool}" of the server "test"`),
    })
    const refused = await client.again(asked, DECLINED)
    t.match(refused.message.result, { resultType: 'complete', isError: true, content: [{ text: /has refused it/ }] })
    t.same(calls(), [], 'nothing was sent')

    const again = await ask()
    const made = await client.again(again, { approval: RUN })
    t.match(made.message.result, { resultType: 'task' })
    t.match((await client.again(again, { approval: RUN })).message.result, { content: [{ text: /was used before/ }] })
    const about = (method: string, more: Json = {}): Promise<Round> =>
      client.call(method, { taskId: made.message.result?.['taskId'], ...more })
    const when = (status: string) =>
      untilFound(async () => {
        const found = await about('tasks/get')
        return found.message.result?.['status'] === status ? found : undefined
      }, `a task that is ${status}`)
    const input = await untilFound(async () => {
      const found = await when('input_required')
      return found.keys.length > 0 ? found : undefined
    }, 'its question')
    t.match(Object.values(input.requests), [{ params: { message: 'Your name?' } }], 'the server asks, and nobody else')
    t.match((await about('tasks/update', { inputResponses: all(input, ADA) })).message.result, {
      resultType: 'complete',
    })
    t.ok((await when('completed')).message.result?.['result'])
    t.equal(calls().length, 1)

    const other = await client.again(await ask(), { approval: RUN })
    const taskId = other.message.result?.['taskId']
    t.match((await client.call('tasks/cancel', { taskId })).message, { result: { resultType: 'complete' } })
    t.equal(calls().length, 2)
  })

  t.test(`a legacy client, ${name}: the call is approved once, and waits for its task`, async (t) => {
    const { entry, tool, asking, calls, hasSessions } = await start(t)
    const client = await legacyClient(await startBridge(t, { ...entry, tools: { approve: [tool] } }), () => said)
    let said: Json = { action: 'decline' }
    const task = hasSessions && { task: {} }
    const ask = () => client.call('tools/call', { name: tool, arguments: asking, ...task })
    t.match(toolResult((await ask()).message), { isError: true, content: [{ text: /has refused it/ }] })
    t.same(calls(), [])
    said = RUN
    const { result } = (await ask()).message
    t.ok(result)
    // In its own session with the server, the task is between both.
    if (hasSessions) t.ok((await client.call('tasks/result', { taskId: taskIn(result) })).message.result)
    t.same(client.asked.map(isApproval), [true, true, false], 'after the approval, the server asks')
    t.match(messageOf(client.asked.at(-1) as Question), /Your name\?$/)
    t.equal(calls().length, 1)
    await client.close()
  })

  t.test(
    `a legacy client that wants a task, ${name}: it is approved once, and only then is anything done`,
    async (t) => {
      const { entry, tool, asking, calls, hasSessions } = await start(t)
      const settings = { compat: { emulateTasks: true } }
      const client = await legacyClient(
        await startBridge(t, { ...entry, tools: { approve: [tool] } }, settings),
        () => said,
      )
      let said: Json = RUN
      const wait = async () => {
        const { message } = await client.call('tools/call', { name: tool, arguments: asking, task: {} })
        // A task of the bridge itself is approved when its result is waited for.
        const isMade = (message.result as Json)['task'] !== undefined
        t.equal(isMade, !hasSessions || said === RUN)
        return isMade ? (await client.call('tasks/result', { taskId: taskIn(message.result) })).message : message
      }
      t.ok((await wait()).result)
      t.same(client.asked.map(isApproval), [true, false])
      t.equal(calls().length, 1)
      said = { action: 'decline' }
      t.match(JSON.stringify(await wait()), /has refused it/)
      t.equal(calls().length, 1)
      await client.close()
    },
  )
}

async function legacyClient(bridge: Reachable, said: () => Json) {
  const kind = CLIENTS.find(({ era, transport }) => era === 'legacy' && transport === 'HTTP') as ClientKind
  const client = connect(kind, bridge, person(said))
  await client.open()
  return client
}
