/** Portable schemas on the wire: between every client and every server, in groups, in searches, and for some clients only. */
import t, { type Test } from 'tap'
import { describeServer, serverInWords } from '../../src/middle/describe/server.js'
import { placeholderResult } from '../../src/services/oauth/placeholder.js'
import type { Json } from '../matrix/client.js'
import { CLIENTS, connect } from '../matrix/clients.js'
import { nameOf } from '../matrix/run.js'
import { SERVERS } from '../matrix/servers.js'
import { Raw } from '../matrix/wire.js'
import { faults } from '../policy/portable/values.js'
import { type Started, startBridge } from '../support/bridge.js'
import { messages } from '../support/inspected.js'
import { askedIn, CALLS, INTRICATE } from '../support/intricate.js'
import { LegacyHttp } from '../support/legacy-http.js'

type Tool = { name: string; inputSchema: Json }
const toolsIn = (message: Json) => (message['result'] as Json)['tools'] as Tool[]
const faultsOf = (tools: readonly Tool[]) =>
  tools.flatMap(({ name, inputSchema }) => faults(inputSchema).map((fault) => `${name}: ${fault}`))
const arrived = (message: Json) => askedIn(message['result'])

for (const clientKind of CLIENTS)
  for (const serverKind of SERVERS)
    t.test(
      `${nameOf(clientKind)} client, ${nameOf(serverKind)} server: portable tools are called as they are defined`,
      async (t) => {
        const server = await serverKind.start(t)
        const client = connect(clientKind, await startBridge(t, { ...server.entry, schemas: 'portable' }))
        await client.open()
        const tools = toolsIn((await client.call('tools/list', {})).message)
        t.ok(tools.length > 5)
        t.same(faultsOf(tools), [])
        const answer = await client.call('tools/call', {
          name: 'mirrored',
          arguments: { region: 'eu', count: new Raw('1.0') },
        })
        t.ok(answer.message['result'], JSON.stringify(answer.message))
        t.match(server.reached().at(-1)?.text ?? '', /"region":"eu","count":1\.0/)
        t.same(server.complaints(), [])
        await client.close()
      },
    )

/** A bridge in front of the group `all`. */
async function startGroup(t: Test, settings: object): Promise<Started> {
  const started = await startBridge(t, {}, settings)
  return { ...started, url: new URL('/all/mcp', started.url).href }
}

for (const kind of CLIENTS) {
  t.test(`${nameOf(kind)} client: names, unions and nulls are mapped back`, async (t) => {
    const bridge = await startBridge(t, { ...INTRICATE, schemas: 'portable' })
    const client = connect(kind, bridge)
    await client.open()
    // Without a list of its own, too.
    t.same(
      arrived(
        (await client.call('tools/call', { name: 'find', arguments: { input: { by: 'name', name: 'x' } } })).message,
      ),
      {
        name: 'find',
        args: { by: 'name', name: 'x' },
      },
    )
    const tools = toolsIn((await client.call('tools/list', {})).message)
    t.same(faultsOf(tools.filter(({ name }) => name !== 'lost')), [])
    t.match(
      tools.find(({ name }) => name === 'lost'),
      { inputSchema: { properties: { a: { $ref: '#/$defs/nowhere' } } } },
    )
    for (const [pattern, args, server] of CALLS) {
      const name = tools.find(({ name }) => pattern.test(name))?.name
      t.same(arrived((await client.call('tools/call', { name, arguments: args })).message), server)
    }
    t.same(
      arrived((await client.call('tools/call', { name: 'files.read/all', arguments: {} })).message),
      { name: 'files.read/all', args: {} },
      "a name that is not listed is the server's",
    )
    await client.close()
  })

  t.test(`${nameOf(kind)} client: a group is portable, with its prefixes and in its search`, async (t) => {
    const long = 'a-server-with-a-long-name-indeed'
    const mcpServers = { [long]: INTRICATE, b: INTRICATE }
    const groups = { all: { schemas: 'portable' } }
    const bridge = await startGroup(t, { mcpServers, groups })
    const client = connect(kind, bridge)
    await client.open()
    const tools = toolsIn((await client.call('tools/list', {})).message).filter(({ name }) => !name.endsWith('lost'))
    t.same(faultsOf(tools), [])
    t.same(
      tools.filter(({ name }) => !/^[a-zA-Z_][\w-]{0,63}$/.test(name)),
      [],
    )
    for (const [pattern, args, server] of CALLS) {
      const fitting = tools.filter(
        ({ name }) => pattern.test(name) || (pattern.source.startsWith('files') && /files_read/.test(name)),
      )
      t.equal(fitting.length, 2, pattern.source)
      for (const { name } of fitting)
        t.same(arrived((await client.call('tools/call', { name, arguments: args })).message), server)
    }
    await client.close()
  })
}

t.test('a search finds portable schemas, and call_tool takes their arguments', async (t) => {
  const groups = { all: { search: true, schemas: 'portable' } }
  const bridge = await startGroup(t, { mcpServers: { a: INTRICATE, b: INTRICATE }, groups })
  for (const kind of CLIENTS) {
    const client = connect(kind, bridge)
    await client.open()
    const answer = await client.call('tools/call', {
      name: 'search_tools',
      arguments: { query: 'finds by name', limit: 10 },
    })
    const found = toolsIn({
      result: (answer.message['result'] as Json)['structuredContent'] ?? arrived(answer.message),
    })
    const tool = found.find(({ name }) => name.endsWith('find'))
    t.same(faultsOf(tool ? [tool] : []), [], nameOf(kind))
    t.match(tool, { inputSchema: { required: ['input'] } })
    const called = await client.call('tools/call', {
      name: 'call_tool',
      arguments: { name: tool?.name, arguments: { input: { by: 'id', id: 1 } } },
    })
    t.same(arrived(called.message), { name: 'find', args: { by: 'id', id: 1 } })
    await client.close()
  }
})

t.test('what the bridge itself adds to lists is portable, whatever is configured', async (t) => {
  const mcpServers = { a: { ...INTRICATE, schemas: 'portable', results: { cut: 4_096 } } }
  const bridge = await startGroup(t, { mcpServers, groups: { all: { search: true } } })
  const signIn = placeholderResult('tools/list', { name: 'a', loginName: 'a', page: undefined })
  for (const kind of CLIENTS) {
    const client = connect(kind, bridge)
    await client.open()
    const tools = toolsIn((await client.call('tools/list', {})).message)
    t.same(
      tools.map(({ name }) => name),
      ['search_tools', 'call_tool', 'read_more'],
    )
    t.same(faultsOf([...tools, ...toolsIn({ result: signIn })]), [], nameOf(kind))
    await client.close()
  }
})

t.test('tools with names of the operator are portable, and are called by these', async (t) => {
  const override = {
    find: { name: 'search' },
    'files.read/all': { name: 'read.every.file' },
  }
  const bridge = await startBridge(t, { ...INTRICATE, schemas: 'portable', tools: { override } })
  for (const kind of CLIENTS) {
    const client = connect(kind, bridge)
    await client.open()
    const tools = toolsIn((await client.call('tools/list', {})).message)
    t.same(faultsOf(tools.filter(({ name }) => name !== 'lost')), [], nameOf(kind))
    for (const [pattern, args, server] of [
      [/^search$/, { input: { by: 'id', id: 3 } }, { name: 'find', args: { by: 'id', id: 3 } }],
      [/^read_every_file_\w{6}$/, { the_path: 'a' }, { name: 'files.read/all', args: { 'the path': 'a' } }],
    ] as const) {
      const name = tools.find(({ name }) => pattern.test(name))?.name
      t.same(arrived((await client.call('tools/call', { name, arguments: args })).message), server)
    }
    await client.close()
  }
})

/** Texts that a program would write otherwise: spaces, numbers, the order of members, and names that MCP does not know. */
const PLAIN =
  '{"name":"plain" , "x":1.0,"inputSchema":{"type" :"object","properties":{"n":{"maximum":1.50,"type":"number"}}}}'
const ODD = [
  '{"annotations":{"a" : 1e2},"inputSchema":',
  '{"type":"object","properties":{"a":{"const":1}}}',
  ',"name":"odd"}',
] as const

t.test('what is portable already passes byte for byte, and so does all around a schema that is not', async (t) => {
  const server = await LegacyHttp.start(t, {
    override: ({ message }, response) => {
      if (message['method'] !== 'tools/list') return false
      const result = `{"x":[1.0],"tools":[${PLAIN}, ${ODD.join('')}]}`
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end(`{"jsonrpc":"2.0","id":${JSON.stringify(message['id'])},"result":${result}}`)
      return true
    },
  })
  const { url } = await startBridge(t, { url: server.url, schemas: 'portable' })
  const { id, ...list } = JSON.parse(messages.call('', {})) as { id: number; params: { _meta: Json } }
  const body = JSON.stringify({ ...list, id, method: 'tools/list', params: { _meta: list.params._meta } })
  const text = await (await messages.post(url, body)).text()
  for (const same of ['"x":[1.0]', PLAIN, ODD[0], ODD[2]]) t.ok(text.includes(same), `${same}\n${text}`)
  t.notOk(text.includes(ODD[1]))
})

t.test('only clients of the configured names get portable schemas', async (t) => {
  for (const [names, isPortable] of [
    [['gemini*'], false],
    [['*'], true],
  ] as const) {
    const bridge = await startBridge(t, { ...INTRICATE, schemas: { portable: names } })
    for (const kind of CLIENTS) {
      const client = connect(kind, bridge)
      await client.open()
      const tools = toolsIn((await client.call('tools/list', {})).message)
      t.equal(
        tools.some(({ name }) => name === 'files.read/all'),
        !isPortable,
        `${nameOf(kind)} ${names}`,
      )
      const [args, within] = isPortable
        ? [{ input: { by: 'id', id: 1 } }, { by: 'id', id: 1 }]
        : [{ input: 1 }, { input: 1 }]
      t.same(arrived((await client.call('tools/call', { name: 'find', arguments: args })).message), {
        name: 'find',
        args: within,
      })
      await client.close()
    }
  }
})

t.test('probe says what is simplified, and which tool keeps its schema', async (t) => {
  const { bridge } = await startBridge(t, { ...INTRICATE, schemas: 'portable' })
  const described = await describeServer(bridge.server, { choice: { schemas: 'portable' } })
  const words = serverInWords('x', described)
  t.match(words, /for models {2}3 simplified, 1 with the schema of the server/)
  t.match(words, /tree: #\/\$defs\/node is recursive: cut after 2 levels/)
  t.match(words, /find: its alternatives are in the argument "input"/)
  t.match(
    words,
    /files\.read\/all: clients call it files_read_all_\w{6}; the member "the path" is called "the_path"; in words only: format/,
  )
  t.match(words, /lost: it keeps its schema, because its reference "#\/\$defs\/nowhere" leads nowhere/)
  t.equal((await describeServer(bridge.server)).simplified, undefined)
})
