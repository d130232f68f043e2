/** One caller asks for many large answers at once: its calls take turns with those of others, in every lane (hostile/neighbours). */
import { fastify } from 'fastify'
import type { Test } from 'tap'
import { mcpBridge } from '../../src/app/embed/fastify.js'
import { startBridge } from './bridge.js'
import { BULKY, type BulkyServer } from './bulky.js'
import { LegacyClient } from './legacy-client.js'
import { type Answer, call } from './modern.js'
import { bulkyStdio } from './small-heap.js'

type Json = Record<string, unknown>
type Caller = (name: string, args?: Json) => Promise<Answer>

const TOKENS = { greedy: 'greedy-token-0123456789', modest: 'modest-token-0123456789' }
/** Large, and not more than others have to wait for. */
const LARGE = { bytes: 4_500_000 }
const COUNT = 4

/** Where the server is served: alone, in a group with and without prefixes, and in an application. */
const PLACES: readonly [name: string, start: (t: Test, server: BulkyServer) => Promise<string>, prefix?: string][] = [
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

/** A part of the tests. Some have each server alone, and one of them in each other place. */
export function testNeighbours(t: Test, part: 'some' | 'rest'): void {
  for (const [n, place] of PLACES.entries())
    for (const [m, server] of BULKY.entries())
      if ((n === 0 || n === m) === (part === 'some')) testTurns(t, place, server)
}

function testTurns(
  t: Test,
  [place, serve, prefix = '']: (typeof PLACES)[number],
  [kind, start]: (typeof BULKY)[number],
): void {
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
}
