/** A group of real servers of both eras on all transports, one of which is dead, for every kind of client. */
import t, { type Test } from 'tap'
// @ts-expect-error: plain JavaScript, because servers on stdio run it without any loader
import { QUESTIONS } from '../fixtures/modern-questions.mjs'
import type { Answer, Client, Json } from '../matrix/client.js'
import { CLIENTS, type ClientKind, type ClientPlan, connect } from '../matrix/clients.js'
import { SERVERS, type TestServer } from '../matrix/servers.js'
import { createBridge, type Started } from '../support/bridge.js'
import { until } from '../support/eventually.js'
import { freePort } from '../support/free-port.js'

const UNAVAILABLE = 'io.github.mcp-bridge/unavailable'
const TASKS = 'io.modelcontextprotocol/tasks'
const PREFIXES = SERVERS.map(({ era, transport }) => `${era}-${transport.replace('+', '-')}`)
const DEAD = 'dead'

interface Together {
  servers: ReadonlyMap<string, TestServer>
  bridge: Started
  clients: Client[]
  open(plan?: ClientPlan): Promise<{ client: Client; opened: Answer }>
}

/** A bridge with a group of all kinds of servers, for a kind of client. */
async function together(t: Test, kind: ClientKind): Promise<Together> {
  const servers = new Map<string, TestServer>()
  for (const [i, server] of SERVERS.entries()) servers.set(PREFIXES[i] as string, await server.start(t))
  const entries = [...servers].map(([name, { entry }]) => [name, entry] as const)
  const dead = { url: `http://127.0.0.1:${await freePort()}/mcp` }
  const mcpServers = Object.fromEntries([...entries.slice(0, 2), [DEAD, dead], ...entries.slice(2)])
  const { bridge, log } = createBridge(t, {}, { mcpServers })
  const isPipe = kind.transport === 'stdio'
  if (!isPipe) await bridge.listen({ kind: 'http', host: '127.0.0.1', port: 0, path: '/mcp' })
  const started = { url: bridge.groupUrls.get('all') ?? '', bridge, log }
  const clients: Client[] = []
  const open = async (plan?: ClientPlan) => {
    const client = connect(kind, started, plan)
    clients.push(client)
    return { client, opened: await client.open() }
  }
  return { servers, bridge: started, clients, open }
}

/** What the client gets from a server, without the members that its era adds to every result. */
function resultOf({ message, text }: Answer): Json {
  if (!message.result) throw new Error(`There is no result: ${text}`)
  const { resultType, ttlMs, cacheScope, _meta, ...result } = message.result
  return result
}

const metaOf = ({ message }: Answer) => (message.result?.['_meta'] ?? {}) as Json

async function walk(client: Client, method: string, key: string): Promise<{ items: Json[]; answers: Answer[] }> {
  const items: Json[] = []
  const answers: Answer[] = []
  for (let cursor: unknown; answers.length === 0 || cursor !== undefined; ) {
    const answer = await client.request(method, cursor === undefined ? {} : { cursor }).answer
    answers.push(answer)
    const page = resultOf(answer)
    items.push(...(page[key] as Json[]))
    cursor = page['nextCursor']
  }
  return { items, answers }
}

for (const kind of CLIENTS)
  t.test(`a ${kind.era} client over ${kind.transport}, and servers of all kinds at one endpoint`, async (t) => {
    const { servers, clients, bridge, open } = await together(t, kind)

    await t.test('opens without waiting for a dead server, and lists all others in order', async (t) => {
      const { client, opened } = await open()
      t.match(resultOf(opened), { capabilities: { tools: {}, resources: {}, prompts: {}, completions: {} } })
      const { items, answers } = await walk(client, 'tools/list', 'tools')
      const names = items.map(({ name }) => String(name))
      const order = [...new Set(names.map((name) => name.split('__')[0]))]
      t.same(order, PREFIXES, 'by server')
      for (const prefix of PREFIXES) t.ok(names.includes(`${prefix}__echo`))
      t.match(metaOf(answers.find((answer) => UNAVAILABLE in metaOf(answer)) as Answer)[UNAVAILABLE], [
        { server: DEAD, reason: 'upstream_unavailable' },
      ])
      const { items: resources } = await walk(client, 'resources/list', 'resources')
      t.ok(resources.some(({ uri }) => uri === `${PREFIXES[0]}+test://static`))
    })

    for (const prefix of PREFIXES)
      await t.test(`calls of ${prefix}`, async (t) => {
        const server = servers.get(prefix) as TestServer
        const from = server.reached().length
        const reached = (method: string) =>
          server
            .reached()
            .slice(from)
            .filter(({ message }) => message['method'] === method)
        const capabilities = {
          elicitation: { form: {} },
          ...(kind.era === 'modern' && { extensions: { [TASKS]: {} } }),
        }
        const { client } = await open({ capabilities, answers: () => ({ action: 'accept', content: { name: 'Zoë' } }) })
        const use = (name: string, args: Json = {}, meta: Json = {}) =>
          client.request('tools/call', { name: `${prefix}__${name}`, arguments: args }, { meta }).answer

        const args = { say: 'hé', deep: [1, null] }
        t.match(resultOf(await use('echo', args)), { structuredContent: args })
        t.match(reached('tools/call')[0]?.message, { params: { name: 'echo', arguments: args } })
        t.match((await use('fail', { error: { code: 4711, message: 'broken' } })).message.error, { code: 4711 })
        t.match((await use('nobody')).message.error, { code: -32602, message: /nobody/ })

        const values = [1, 2, 3]
        const { before } = await use('progress', { values }, { progressToken: 'p' })
        t.same(
          before.map(({ params }) => (params as Json)['progress']),
          values,
          'progress comes before the answer',
        )
        await client.logAt('warning')
        const logged = await use('log', { levels: ['debug', 'error'], say: 'x' })
        t.match(
          logged.before.filter(({ method }) => method === 'notifications/message').map(({ params }) => params),
          [{ level: 'error', logger: prefix, data: 'x' }],
          'log messages say whose they are',
        )

        const rounds = [{ name: (QUESTIONS as Json)['name'] }]
        const asked = await client.call('tools/call', { name: `${prefix}__ask`, arguments: { rounds } })
        t.match(resultOf(asked), { structuredContent: { name: { content: { name: 'Zoë' } } } }, 'it asks')
        t.equal(client.asked.length, 1, 'once')

        const read = resultOf(await client.request('resources/read', { uri: `${prefix}+test://static` }).answer)
        t.same(read, { contents: [{ uri: `${prefix}+test://static`, text: 'x' }] })
        t.match(reached('resources/read')[0]?.message, { params: { uri: 'test://static' } })
        const prompt = { name: `${prefix}__greet`, arguments: { who: 'Zoë' } }
        t.match(resultOf(await client.request('prompts/get', prompt).answer), { messages: [{ role: 'user' }] })
        const ref = { type: 'ref/prompt', name: `${prefix}__greet` }
        const complete = { ref, argument: { name: 'who', value: 'Zo' } }
        t.match(resultOf(await client.request('completion/complete', complete).answer), {
          completion: { values: ['Zo…'] },
        })
        t.match(reached('completion/complete')[0]?.message, { params: { ref: { name: 'greet' } } })

        await walk(client, 'tools/list', 'tools')
        const mirrored = await client.request(
          'tools/call',
          { name: `${prefix}__mirrored`, arguments: { region: 'eu', count: 42 } },
          { mirrored: { region: 'eu', count: '42' } },
        ).answer
        t.match(resultOf(mirrored), { content: [{ type: 'text' }] }, 'arguments that headers repeat')
      })

    await t.test('only calls to the dead server fail, as not executed', async (t) => {
      const { client } = await open()
      const { message } = await client.request('tools/call', { name: `${DEAD}__echo`, arguments: {} }).answer
      t.match(message.error, { data: { outcome: 'not_executed', reason: 'upstream_unavailable' } })
      t.match(message.error?.message, DEAD)
    })

    await Promise.all(clients.map((client) => client.close()))
    await bridge.bridge.close()
    for (const [prefix, server] of servers) {
      await until(() => server.open() === 0, `nothing is left at ${prefix}`)
      t.same(server.complaints(), [], `what has reached ${prefix} was of its era`)
    }
    for (const client of clients) t.same(client.complaints, [])
  })
