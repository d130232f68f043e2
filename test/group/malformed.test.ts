/** Items of lists that are not as MCP defines them: what clients of a group get of them, and what the log says. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Client as ModernClient, StreamableHTTPClientTransport as ModernHttp } from '@modelcontextprotocol/client'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import t, { type Test } from 'tap'
import type { Call } from '../../src/mcp/protocol/call.js'
import { createBridge } from '../support/bridge.js'
import { ask, FakeServer, groupOf, paramsOf, resultOf } from './fakes.js'

type Json = Record<string, unknown>

const INPUT = { type: 'object' }
const LEFT_OUT = undefined
/** A member, what a server says there, and what clients get; LEFT_OUT if they do not get the item. */
type Kind = readonly [member: string, said: unknown, got: Json | typeof LEFT_OUT]

/** By list: an item that is as it has to be, and its kinds of malformed members. */
const KINDS: Readonly<Record<string, { key: string; id: string; item: Json; kinds: readonly Kind[] }>> = {
  'tools/list': {
    key: 'tools',
    id: 'name',
    item: { inputSchema: INPUT },
    kinds: [
      ['description', null, {}],
      ['description', 7, {}],
      ['description', ['a'], {}],
      ['title', null, {}],
      ['title', { en: 'a' }, {}],
      ['annotations', null, {}],
      ['annotations', 'readOnly', {}],
      ['annotations', [], {}],
      ['annotations', { readOnlyHint: 'true', title: 'a' }, { annotations: { title: 'a' } }],
      ['annotations', { destructiveHint: null, title: 7 }, { annotations: {} }],
      ['icons', 'https://a.example/a.png', {}],
      ['icons', null, {}],
      ['icons', ['https://a.example/a.png', { src: 'data:,' }, { src: 7 }], { icons: [{ src: 'data:,' }] }],
      ['icons', [{ src: 'data:,', sizes: '48x48' }], { icons: [] }],
      ['icons', [{ src: 'data:,', theme: 'blue' }], { icons: [] }],
      ['inputSchema', null, {}],
      ['inputSchema', 'object', {}],
      ['inputSchema', {}, {}],
      ['inputSchema', { type: ['object', 'null'] }, {}],
      ['inputSchema', { type: 'object', properties: null }, {}],
      ['inputSchema', { type: 'object', required: null }, {}],
      ['inputSchema', { type: 'object', required: 'path' }, {}],
      ['inputSchema', { type: 'object', $schema: 7 }, {}],
      ['outputSchema', null, {}],
      ['outputSchema', 'object', {}],
      ['execution', 'task', {}],
      ['execution', { taskSupport: true }, { execution: {} }],
      ['_meta', null, {}],
      ['_meta', [], {}],
      ['name', null, LEFT_OUT],
      ['name', 7, LEFT_OUT],
    ],
  },
  'prompts/list': {
    key: 'prompts',
    id: 'name',
    item: {},
    kinds: [
      ['description', 7, {}],
      ['arguments', null, {}],
      ['arguments', { path: {} }, {}],
      ['arguments', [null, 'a', { name: 'b', required: 'yes' }, { name: 7 }], { arguments: [{ name: 'b' }] }],
      ['name', {}, LEFT_OUT],
    ],
  },
  'resources/list': {
    key: 'resources',
    id: 'uri',
    item: { name: 'r' },
    kinds: [
      ['mimeType', null, {}],
      ['size', '7', {}],
      ['size', 1.5, {}],
      ['annotations', { audience: 'user', priority: 2, lastModified: 'today' }, { annotations: {} }],
      ...['2025-02-30T00:00:00Z', '2025-01-01T24:00:00Z', '2025-01-01T10:00Z', '2025-01-01T10:00:00+25:00'].map(
        (lastModified) => ['annotations', { lastModified }, { annotations: {} }] as const,
      ),
      ['uri', null, LEFT_OUT],
    ],
  },
  'resources/templates/list': {
    key: 'resourceTemplates',
    id: 'uriTemplate',
    item: { name: 't' },
    kinds: [
      ['mimeType', 7, {}],
      ['title', false, {}],
      ['uriTemplate', 7, LEFT_OUT],
    ],
  },
}

/** The name or URI of the item with a malformed member. */
const idOf = (key: string, at: number) => (key.startsWith('resource') ? `x://${at}` : `${key}-${at}`)

/** The lists of a server whose items are all malformed, but for things that are no item. */
function malformed(method: string): Json {
  const { key, id, item, kinds } = KINDS[method] as (typeof KINDS)[string]
  return {
    [key]: [null, 'text', ...kinds.map(([member, said], at) => ({ [id]: idOf(key, at), ...item, [member]: said }))],
  }
}

/** What clients get of it. */
function expected(method: string, prefix: (id: string) => string): Json[] {
  const { key, id, item, kinds } = KINDS[method] as (typeof KINDS)[string]
  return kinds.flatMap(([, , got], at) => (got ? [{ [id]: prefix(idOf(key, at)), ...item, ...got }] : []))
}

const good = (method: string): Json => {
  const { key, id, item } = KINDS[method] as (typeof KINDS)[string]
  return { [key]: [{ [id]: idOf(key, 99), ...item }] }
}
const METHODS = Object.keys(KINDS)

for (const method of METHODS)
  t.test(`${method} of a group repairs malformed items, or leaves them out with one warning`, async (t) => {
    const { key, id, kinds } = KINDS[method] as (typeof KINDS)[string]
    const bad = new FakeServer({ [method]: malformed(method) })
    const { group, log } = groupOf({ bad, fine: new FakeServer({ [method]: good(method) }) })
    const prefix = (server: string) => (one: string) =>
      key.startsWith('resource') ? `${server}+${one}` : `${server}__${one}`
    const listed = (await ask(group, method))[key] as Json[]
    t.same(listed.slice(0, -1), expected(method, prefix('bad')))
    t.match(listed.at(-1), { [id]: prefix('fine')(idOf(key, 99)) }, 'the list of another server is as it was')
    await ask(group, method)
    const repaired = log.filter(({ event }) => event === 'group_items_repaired')
    t.match(repaired, [{ server: 'bad', method, items: [/: / as unknown as string] }])
    const left = log.filter(({ event }) => event === 'group_name_hidden')
    t.equal(left.length, 2 + kinds.filter(([, , got]) => !got).length, 'one for each item that is left out')
    t.ok(group.hidden.every(({ why }) => why === 'malformed'))
  })

t.test('an item that is as it has to be stays as it is, byte for byte', async (t) => {
  const tool = `{"name" : "a", "extra":[1,2 ],"inputSchema":{"type":"object","x":null},"description":"d"}`
  const a = new FakeServer({ 'tools/list': { tools: [JSON.parse(tool) as Json] } })
  const { group, log } = groupOf({ a }, { bareNames: true, bareUris: true })
  t.same((await ask(group, 'tools/list'))['tools'], [JSON.parse(tool)])
  t.same(log, [])
})

t.test(
  'what a list says of its call is not passed on, because some clients refuse a list with other values',
  async (t) => {
    const _meta = { progressToken: {}, 'io.modelcontextprotocol/related-task': 7, 'example.org/x': 1 }
    for (const method of METHODS) {
      const a = new FakeServer({ [method]: { ...good(method), _meta } })
      t.same((await ask(groupOf({ a, b: new FakeServer() }).group, method))['_meta'], { 'example.org/x': 1 }, method)
    }
  },
)

t.test('resources without a name get one, because they are used by their URIs', async (t) => {
  const resources = [{ uri: 'x://a' }, { uri: 'x://b', title: 'B' }]
  const a = new FakeServer({ 'resources/list': { resources } })
  t.match((await ask(groupOf({ a, b: new FakeServer() }).group, 'resources/list'))['resources'], [
    { uri: 'a+x://a', name: 'x://a' },
    { uri: 'a+x://b', name: 'B' },
  ])
})

t.test('what a server lists twice is listed once, and told once', async (t) => {
  const tool = (name: string, description: string) => ({ name, description, inputSchema: INPUT })
  const twice = {
    'tools/list': { tools: [tool('a', 'first'), tool('b', ''), tool('a', 'second')] },
    'prompts/list': { prompts: [{ name: 'p' }, { name: 'p' }] },
    'resources/list': {
      resources: [
        { uri: 'x://r', name: 'r' },
        { uri: 'x://r', name: 's' },
      ],
    },
  }
  for (const bareNames of [false, true]) {
    const { group, log } = groupOf({ one: new FakeServer(twice), other: new FakeServer() }, { bareNames })
    for (let times = 0; times < 2; times++) {
      const { tools } = await ask(group, 'tools/list')
      t.match(tools, [{ description: 'first' }, { description: '' }])
      t.equal((tools as Json[]).length, 2)
      t.equal(((await ask(group, 'prompts/list'))['prompts'] as Json[]).length, 1)
      t.equal(((await ask(group, 'resources/list'))['resources'] as Json[]).length, 1)
    }
    t.same(
      log.map(({ event, name }) => [event, name]),
      [
        ['group_name_hidden', 'a'],
        ['group_name_hidden', 'p'],
        ['group_name_hidden', 'x://r'],
      ],
    )
  }
})

t.test('what is on an earlier page of its server is listed once, and told once', async (t) => {
  const pages: Record<string, Json> = {
    undefined: { tools: ['a', 'b'].map((name) => ({ name, inputSchema: INPUT })), nextCursor: '2' },
    '2': { tools: ['c', 'a'].map((name) => ({ name, inputSchema: INPUT })), nextCursor: '3' },
    '3': { tools: ['d', 'c', 'b'].map((name) => ({ name, inputSchema: INPUT })) },
  }
  const list = (call: Call) => resultOf(pages[String(paramsOf(call)['cursor'])] as Json)
  for (const bareNames of [false, true]) {
    const servers = { one: new FakeServer({ 'tools/list': list }), other: new FakeServer() }
    const search = { always: ['*'], limit: 5 }
    const names = ['a', 'b', 'c', 'd'].map((name) => (bareNames ? name : `one__${name}`))
    const { group, log } = groupOf(servers, { bareNames })
    const listed: unknown[] = []
    let cursor: unknown
    do {
      const page = await ask(group, 'tools/list', cursor === undefined ? {} : { cursor })
      listed.push(...(page['tools'] as Json[]).map(({ name }) => name))
      cursor = page['nextCursor']
    } while (cursor !== undefined)
    t.same(listed, names)
    const warned = log.filter(({ event }) => event === 'group_name_hidden')
    t.same(
      warned.map(({ name }) => name),
      ['a', 'c', 'b'],
    )
    const { tools } = await ask(groupOf(servers, { bareNames, search }).group, 'tools/list')
    t.same(
      (tools as Json[]).map(({ name }) => name),
      ['search_tools', 'call_tool', ...names],
      'in a list that is read to its end',
    )
  }
})

t.test('names of tools that APIs of models refuse are told once, and stay as they are', async (t) => {
  const names = ['a.b', 'a/b', 'a b', '天気', 'fine_Name-1', 'für']
  const a = new FakeServer({ 'tools/list': { tools: names.map((name) => ({ name, inputSchema: INPUT })) } })
  const { group, log } = groupOf({ a, b: new FakeServer() })
  for (let times = 0; times < 2; times++) {
    const listed = (await ask(group, 'tools/list'))['tools'] as Json[]
    t.same(
      listed.map(({ name }) => name),
      names.map((name) => `a__${name}`),
    )
  }
  t.match(log, [{ event: 'group_names_unusual', server: 'a', count: 5 }])
  t.equal(log.length, 1)
})

/** A server of an era over HTTP that gives these answers. */
async function serverOf(t: Test, isModern: boolean, answers: Json): Promise<string> {
  const capabilities = { tools: {}, prompts: {}, resources: {} }
  const serverInfo = { name: 'raw', version: '1' }
  const server = createServer((request, response) => {
    let body = ''
    request.setEncoding('utf8').on('data', (chunk: string) => {
      body += chunk
    })
    request.on('end', () => {
      if (request.method !== 'POST') return void response.writeHead(405).end()
      const { id, method = '' } = JSON.parse(body) as { id?: unknown; method?: string }
      if (id === undefined) return void response.writeHead(202).end()
      const opening = isModern
        ? { 'server/discover': { supportedVersions: ['2026-07-28'], capabilities, serverInfo } }
        : { initialize: { protocolVersion: '2025-11-25', capabilities, serverInfo } }
      const answer = ({ ...opening, ...answers } as Json)[method] as Json | undefined
      const modern = isModern && { resultType: 'complete', ttlMs: 0, cacheScope: 'private' }
      const outcome = answer
        ? { result: { ...answer, ...modern } }
        : { error: { code: -32601, message: 'Method not found' } }
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end(JSON.stringify({ jsonrpc: '2.0', id, ...outcome }))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`
}

for (const isModern of [true, false])
  t.test(
    `clients that check their schema use a group with malformed items of a ${isModern ? 'modern' : 'legacy'} server`,
    async (t) => {
      const bad = await serverOf(t, isModern, Object.fromEntries(METHODS.map((method) => [method, malformed(method)])))
      const fine = await serverOf(t, isModern, Object.fromEntries(METHODS.map((method) => [method, good(method)])))
      const mcpServers = { bad: { url: bad }, fine: { url: fine } }
      const { bridge } = createBridge(t, {}, { mcpServers, groups: { team: {} } })
      await bridge.listen({ kind: 'http', host: '127.0.0.1', port: 0, path: '/mcp' })
      const url = new URL(bridge.groupUrls.get('team') ?? '')
      const info = { name: 'checking', version: '1' }
      const modern = new ModernClient(info, { versionNegotiation: { mode: { pin: '2026-07-28' } } })
      await modern.connect(new ModernHttp(url))
      const legacy = new Client(info)
      await legacy.connect(new StreamableHTTPClientTransport(url))
      for (const client of [modern, legacy]) {
        t.equal((await client.listTools()).tools.length, expected('tools/list', String).length + 1)
        t.equal((await client.listPrompts()).prompts.length, expected('prompts/list', String).length + 1)
        t.equal((await client.listResources()).resources.length, expected('resources/list', String).length + 1)
        const { resourceTemplates } = await client.listResourceTemplates()
        t.equal(resourceTemplates.length, expected('resources/templates/list', String).length + 1)
        await client.close()
      }
    },
  )
