/**
 * What a person approves, what is cut, and portable schemas, all together: clients of the SDKs of both eras call renamed tools in
 * groups, by a search or by their names, and each of their requests goes to the other one of two replicas.
 */
import { fileURLToPath } from 'node:url'
import { Client as ModernClient, StreamableHTTPClientTransport as ModernHttp } from '@modelcontextprotocol/client'
import { Client as LegacyClient } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as LegacyHttp } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js'
import t, { type Test } from 'tap'
import type { Json } from '../matrix/client.js'
import { faults } from '../policy/portable/values.js'
import { as, type Person as Name, TOKENS } from '../support/approving.js'
import { startBridge } from '../support/bridge.js'
import { Person } from '../support/in-memory-sdks.js'
import { ModernHttp as ModernServer } from '../support/modern-http.js'
import { noRedis, RedisServer } from '../support/redis.js'

const INFO = { name: 'sdk', version: '1' }
const OPTIONS = { capabilities: { elicitation: { form: {} } } }
const LIMIT = 4_096
type Block = { type: string; text?: string; uri?: string }
type Fetch = (url: string | URL, init?: RequestInit) => Promise<Response>

const CLIENTS = {
  'SDK v2': async (url: string, headers: Record<string, string>, fetch: Fetch, person: Person) => {
    const client = new ModernClient(INFO, { ...OPTIONS, versionNegotiation: { mode: { pin: '2026-07-28' } } })
    client.setRequestHandler('elicitation/create', person.ask)
    await client.connect(new ModernHttp(new URL(url), { requestInit: { headers }, fetch }))
    return client
  },
  'SDK v1': async (url: string, headers: Record<string, string>, fetch: Fetch, person: Person) => {
    const client = new LegacyClient(INFO, OPTIONS)
    client.setRequestHandler(ElicitRequestSchema, person.ask)
    await client.connect(new LegacyHttp(new URL(url), { requestInit: { headers }, fetch }) as never)
    return client
  },
}

/** Two replicas with a group, and clients whose requests go to them in turns. */
async function start(t: Test, search: boolean) {
  const redis = await RedisServer.start(t)
  const modern = await ModernServer.start(t)
  const cut = { results: { cut: LIMIT }, schemas: 'portable' }
  const intricate = fileURLToPath(new URL('../fixtures/intricate.mjs', import.meta.url))
  const mcpServers = {
    trees: {
      ...cut,
      command: process.execPath,
      args: [intricate],
      tools: { allow: ['tree', 'find'], override: { tree: { name: 'grow' } }, approve: ['grow'] },
    },
    shop: {
      ...cut,
      url: modern.url,
      tools: { allow: ['echo'], override: { echo: { name: 'order', set: { org: 'acme' } } }, approve: 'destructive' },
    },
  }
  const settings = {
    redis: { url: redis.url, timeout: 30_000 },
    stateKeys: ['a secret that all the replicas know of'],
    auth: { tokens: TOKENS },
    mcpServers,
    groups: { all: { search } },
  }
  const replicas = await Promise.all([1, 2].map(() => startBridge(t, {}, settings)))
  const origins = replicas.map(({ url }) => new URL(url).origin)
  let requests = 0
  const inTurns: Fetch = (url, init) => {
    const { pathname, search } = new URL(url)
    return fetch(`${origins[requests++ % 2]}${pathname}${search}`, init)
  }
  const connect = (sdk: keyof typeof CLIENTS, who: Name, person = new Person()) =>
    CLIENTS[sdk](`${origins[0]}/all/mcp`, as(who), inTurns, person)
  return { connect, modern }
}

for (const sdk of ['SDK v2', 'SDK v1'] as const)
  for (const search of [true, false])
    t.test(`a client of ${sdk}, ${search ? 'with' : 'without'} a search`, { skip: noRedis }, async (t) => {
      const { connect, modern } = await start(t, search)
      const person = new Person()
      const client = await connect(sdk, 'ada', person)
      const tools = []
      for (let cursor: string | undefined, isLast = false; !isLast; isLast = cursor === undefined) {
        const page = await client.listTools(cursor === undefined ? {} : { cursor })
        tools.push(...page.tools)
        cursor = page.nextCursor
      }
      const names = tools.map(({ name }) => name).sort()
      t.same(
        names,
        search
          ? ['call_tool', 'read_more', 'search_tools']
          : ['read_more', 'shop__order', 'trees__find', 'trees__grow'],
      )
      t.same(
        tools.flatMap(({ name, inputSchema }) => (isOfSearch(name) ? [] : faults(inputSchema as Json))),
        [],
      )
      const use = async (name: string, args: Json) => {
        const params = search ? { name: 'call_tool', arguments: { name, arguments: args } } : { name, arguments: args }
        const { content, isError } = await client.callTool(params)
        return { blocks: content as Block[], isError }
      }
      const readOn = async (blocks: readonly Block[], by = client) => {
        const parts = [blocks[0]?.text]
        for (let next = linkIn(blocks); next !== undefined; ) {
          const more = (await by.callTool({ name: 'read_more', arguments: { uri: next } }))['content'] as Block[]
          parts.push(more[0]?.text)
          next = linkIn(more)
        }
        return JSON.parse(parts.join('')) as Json
      }

      const root = { children: [{ name: 'é'.repeat(4_000) }] }
      person.answer = 'Do not run'
      t.match(await use('trees__grow', { root }), { isError: true, blocks: [{ text: /has refused it/ }] })
      person.answer = 'Run'
      const grown = await use('trees__grow', { root })
      t.match(person.asked.at(-1), /Run the tool "tree" of the server "trees"\?\n\nroot\.children\[0\]\.name: "é+…/)
      t.equal(Buffer.byteLength(grown.blocks[0]?.text ?? ''), LIMIT)
      t.same(
        await readOn(grown.blocks),
        { name: 'tree', args: { root: { ...root, name: null } } },
        'as the server defines',
      )
      const asked = person.asked.length
      t.match(await use('trees__find', { input: { by: 'id', id: 3 } }), {
        blocks: [{ text: '{"name":"find","args":{"by":"id","id":3}}' }],
      })
      t.equal(person.asked.length, asked, 'nobody has to approve this one')
      t.match(await readOn((await use('shop__order', { note: 'n'.repeat(6_000) })).blocks), {
        org: 'acme',
        note: /^n+$/,
      })
      t.equal(modern.of('tools/call').length, 1)
      await t.rejects(
        use('trees__plain', {}).then(({ isError, blocks }) => isError && Promise.reject(new Error(blocks[0]?.text))),
        'what the configuration hides',
      )

      const stranger = await connect(sdk, 'bob')
      const uri = linkIn(grown.blocks) ?? ''
      t.match(await stranger.callTool({ name: 'read_more', arguments: { uri } }), { isError: true })
      await t.rejects(stranger.readResource({ uri }), /not found/i)
      t.ok((await client.readResource({ uri })).contents.length > 0)
      await Promise.all([client.close(), stranger.close()])
    })

/** The schemas of these are the bridge's own, whatever the servers have. */
const isOfSearch = (name: string) => name === 'call_tool' || name === 'search_tools'

function linkIn(blocks: readonly Block[]): string | undefined {
  return blocks.find(({ type }) => type === 'resource_link')?.uri
}
