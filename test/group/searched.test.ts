/** A group whose tools are searched, with servers of both eras on all transports, for every kind of client. */
import t from 'tap'
// @ts-expect-error: plain JavaScript, because servers on stdio run it without any loader
import { QUESTIONS } from '../fixtures/modern-questions.mjs'
import type { Answer, Json } from '../matrix/client.js'
import { CLIENTS, connect } from '../matrix/clients.js'
import { nameOf } from '../matrix/run.js'
import { SERVERS, type TestServer } from '../matrix/servers.js'
import { createBridge } from '../support/bridge.js'

const TASKS = 'io.modelcontextprotocol/tasks'
const PREFIXES = SERVERS.map(({ era, transport }) => `${era}-${transport.replace('+', '-')}`)

/** What the client gets, without the members that its era adds to every result. */
function resultOf({ message, text }: Answer): Json {
  if (!message.result) throw new Error(`There is no result: ${text}`)
  const { resultType, ttlMs, cacheScope, _meta, ...result } = message.result
  return result
}

for (const kind of CLIENTS)
  t.test(`a ${nameOf(kind)} client finds tools of all servers, and calls them through call_tool`, async (t) => {
    const servers = new Map<string, TestServer>()
    for (const [i, server] of SERVERS.entries()) servers.set(PREFIXES[i] as string, await server.start(t))
    const entries = [...servers].map(([name, { entry }]) => [name, { ...entry, tools: { deny: ['act'] } }] as const)
    const settings = { mcpServers: Object.fromEntries(entries), groups: { team: { search: { always: ['*__fail'] } } } }
    const { bridge, log } = createBridge(t, {}, settings)
    if (kind.transport !== 'stdio') await bridge.listen({ kind: 'http', host: '127.0.0.1', port: 0, path: '/mcp' })
    const client = connect(
      kind,
      { url: bridge.groupUrls.get('team') ?? '', bridge, log },
      {
        capabilities: { elicitation: { form: {} }, ...(kind.era === 'modern' && { extensions: { [TASKS]: {} } }) },
        answers: () => ({ action: 'accept', content: { name: 'Zoë' } }),
      },
    )
    t.match(resultOf(await client.open()), { instructions: /search_tools/, capabilities: { tools: {} } })

    const listed = resultOf(await client.request('tools/list', {}).answer)
    const names = (listed['tools'] as Json[]).map(({ name }) => name)
    t.same(names, ['search_tools', 'call_tool', ...PREFIXES.map((prefix) => `${prefix}__fail`)])
    const find = async (query: string) => {
      const params = { name: 'search_tools', arguments: { query, limit: 50 } }
      const { content } = resultOf(await client.request('tools/call', params).answer)
      const [{ text }] = content as [{ text: string }]
      return (JSON.parse(text) as { tools: Json[] }).tools.map(({ name }) => name)
    }
    t.same((await find('echo')).sort(), PREFIXES.map((prefix) => `${prefix}__echo`).sort())
    t.same(await find('act'), [], 'what is hidden is not found')

    for (const prefix of PREFIXES)
      await t.test(`calls of ${prefix}`, async (t) => {
        const server = servers.get(prefix) as TestServer
        const through = (name: string, args: Json = {}) => ({
          name: 'call_tool',
          arguments: { name: `${prefix}__${name}`, arguments: args },
        })
        const use = (name: string, args?: Json, meta: Json = {}) =>
          client.request('tools/call', through(name, args), { meta }).answer
        const args = { say: 'hé', deep: [1, null] }
        t.match(resultOf(await use('echo', args)), { structuredContent: args })
        const reached = server.reached().filter(({ message }) => message['method'] === 'tools/call')
        t.match(reached[0]?.message, { params: { name: 'echo', arguments: args } })
        t.match((await use('fail', { error: { code: 4711, message: 'broken' } })).message.error, { code: 4711 })
        t.match(resultOf(await use('act')), {
          isError: true,
          content: [{ text: new RegExp(`^Unknown tool: ${prefix}__act\\.`) }],
        })
        const { before } = await use('progress', { values: [1, 2] }, { progressToken: `p ${prefix}` })
        t.same(
          before.map(({ params }) => (params as Json)['progress']),
          [1, 2],
          'progress comes before the answer',
        )
        const asked = client.asked.length
        const rounds = [{ name: (QUESTIONS as Json)['name'] }]
        t.match(resultOf(await client.call('tools/call', through('ask', { rounds }))), {
          structuredContent: { name: { content: { name: 'Zoë' } } },
        })
        t.equal(client.asked.length - asked, 1, 'it asks once')
        const mirrored = await use('mirrored', { region: 'eu', count: 42 })
        t.match(resultOf(mirrored), { content: [{ type: 'text' }] }, 'the bridge repeats arguments in headers')
        if (kind.era === 'modern' && !prefix.includes('SSE')) {
          const created = resultOf(await use('task', { polls: 0, say: 'at last' }))
          t.match(created, { taskId: new RegExp(`^${prefix}__`) })
          const { taskId } = created
          t.match((await client.request('tasks/get', { taskId }).answer).message.result, { status: String })
        }
      })
    await client.close()
    await bridge.close()
    for (const [prefix, server] of servers) t.same(server.complaints(), [], `what has reached ${prefix} was of its era`)
    t.same(client.complaints, [])
    const echo = log.find(({ event, original }) => event === 'call' && original === 'echo')
    t.match(echo, { name: `${PREFIXES[0]}__echo`, through: 'call_tool', server: PREFIXES[0] })
  })
