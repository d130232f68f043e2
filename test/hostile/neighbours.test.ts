/** One caller asks for many large answers at once: its calls take turns with those of others, in every lane. */
import { fastify } from 'fastify'
import t, { type Test } from 'tap'
import { mcpBridge } from '../../src/embed/fastify.js'
import { startBridge } from '../support/bridge.js'
import { LegacyClient } from '../support/legacy-client.js'
import { type Answer, call } from '../support/modern.js'
import { startFixture } from '../support/process.js'
import { bulkyStdio } from '../support/small-heap.js'

type Json = Record<string, unknown>
type McpServer = NonNullable<Parameters<typeof mcpBridge>[1]['mcpServers']>[string]
type Caller = (name: string, args?: Json) => Promise<Answer>

const TOKENS = { greedy: 'greedy-token-0123456789', modest: 'modest-token-0123456789' }
/** Large, and not more than others have to wait for. */
const LARGE = { bytes: 4_500_000 }
const COUNT = 4

const over = async (t: Test, era: 'legacy' | 'modern', transport: 'http' | 'sse') => {
  const { url } = await startFixture(t, 'bulky.mjs', era, transport)
  return transport === 'sse' ? { url, type: 'sse' as const } : { url }
}

const SERVERS: readonly [name: string, start: (t: Test) => Promise<McpServer> | McpServer][] = [
  ['a legacy program', () => bulkyStdio('legacy')],
  ['a modern program', () => bulkyStdio('modern')],
  ['a legacy server over HTTP', (t) => over(t, 'legacy', 'http')],
  ['a modern server over HTTP', (t) => over(t, 'modern', 'http')],
  ['a server over HTTP+SSE', (t) => over(t, 'legacy', 'sse')],
]

/** Where the server is served: alone, in a group with and without prefixes, and in an application. */
const PLACES: readonly [name: string, start: (t: Test, server: McpServer) => Promise<string>, prefix?: string][] = [
  ['alone', async (t, server) => (await startBridge(t, server)).url],
  ['with tokens', async (t, server) => (await startBridge(t, server, { auth: { tokens: TOKENS } })).url],
  [
    'in a group',
    async (t, server) => {
      const { bridge } = await startBridge(
        t,
        {},
        { mcpServers: { test: server, other: bulkyStdio('modern') }, groups: { all: {} } },
      )
      return bridge.groupUrls.get('all') as string
    },
    'test__',
  ],
  [
    'in an application',
    async (t, server) => {
      const app = fastify()
      await app.register(mcpBridge, { prefix: '/mcp', mcpServers: { test: server } })
      t.teardown(() => app.close())
      return `${await app.listen({ host: '127.0.0.1', port: 0 })}/mcp`
    },
  ],
]

async function callers(url: string, prefix: string): Promise<[name: string, caller: Caller, other: Caller][]> {
  const as = (who: keyof typeof TOKENS) => ({ headers: { authorization: `Bearer ${TOKENS[who]}` } })
  const modern =
    (who: keyof typeof TOKENS): Caller =>
    (name, args = {}) =>
      call(url, 'tools/call', { name: prefix + name, arguments: args }, as(who))
  const legacy = async (who: keyof typeof TOKENS): Promise<Caller> => {
    const client = await LegacyClient.open(url, as(who))
    return (name, args = {}) => client.call(prefix + name, args)
  }
  return [
    ['modern clients', modern('greedy'), modern('modest')],
    ['legacy clients', await legacy('greedy'), await legacy('modest')],
  ]
}

/** How many large answers there were before an answer of `echo`. */
const largeBefore = ({ message }: Answer) =>
  (message.result?.['structuredContent'] as { large: number } | undefined)?.large ?? Number.NaN

for (const [place, serve, prefix = ''] of PLACES)
  for (const [kind, start] of SERVERS)
    t.test(`calls pass large answers to others: ${kind}, ${place}`, async (t) => {
      const url = await serve(t, await start(t))
      for (const [who, greedy, modest] of await callers(url, prefix)) {
        const before = largeBefore(await modest('echo'))
        const answers = Promise.all(Array.from({ length: COUNT }, () => greedy('bulk', LARGE)))
        const between = largeBefore(await modest('echo')) - before
        t.ok(between <= 2, `${who}: ${between} large answers come first`)
        for (const { message } of await answers)
          t.match(message.result, { content: [{ type: 'text' }] }, `${who}: each call is answered`)
      }
    })
