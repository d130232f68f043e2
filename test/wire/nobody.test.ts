/** Programs end when the clients that used them have gone, behind every kind of endpoint. */
import t, { type Test } from 'tap'
import { startBridge } from '../support/bridge.js'
import { until } from '../support/eventually.js'
import { ended } from '../support/idle.js'
import { TRANSLATED } from '../support/lanes.js'
import { LegacyClient } from '../support/legacy-client.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { call } from '../support/modern.js'
import { modernStdio } from '../support/modern-stdio.js'

type Program = ReturnType<typeof legacyStdio>

/** Long, so that only what is meant ends. */
const TIMES = { clientIdle: 600_000, clientGone: 100, keepAlive: 50 }

/** Clients that come, call a tool, and go. */
const CLIENTS: readonly [name: string, timeouts: object, visit: (url: string, tool: string) => Promise<unknown>][] = [
  [
    'a client that ends its session',
    TIMES,
    async (url, tool) => {
      const client = await LegacyClient.open(url)
      await client.call(tool, { x: 1 })
      await client.end()
    },
  ],
  [
    'a client that can be asked, and ends its session',
    TIMES,
    async (url, tool) => {
      const client = await LegacyClient.open(url, { capabilities: { elicitation: {} } })
      await client.call(tool, { x: 1 })
      await client.end()
    },
  ],
  [
    'a client whose stream is lost',
    TIMES,
    async (url, tool) => {
      const client = await LegacyClient.open(url)
      const stream = await client.listen()
      await client.call(tool, { x: 1 })
      stream.leave()
    },
  ],
  [
    'a stateless client that calls no more',
    { ...TIMES, clientIdle: 200, clientGone: 600_000 },
    (url, tool) => call(url, 'tools/call', { name: tool, arguments: { x: 1 } }),
  ],
]

const PLACES: readonly [
  name: string,
  start: (t: Test, server: Program['server'], timeouts: object) => Promise<string>,
  prefix?: string,
][] = [
  ['alone', async (t, server, timeouts) => (await startBridge(t, server, { timeouts })).url],
  [
    'behind a policy',
    async (t, server, timeouts) => (await startBridge(t, { ...server, tools: { deny: ['no'] } }, { timeouts })).url,
  ],
  ['translated', async (t, server, timeouts) => (await startBridge(t, { ...server, ...TRANSLATED }, { timeouts })).url],
  [
    'in a group',
    async (t, server, timeouts) => {
      const other = legacyStdio(t)
      const mcpServers = { test: server, other: other.server }
      const { bridge } = await startBridge(t, {}, { mcpServers, groups: { all: {} }, timeouts })
      return bridge.groupUrls.get('all') as string
    },
    'test__',
  ],
]

for (const [kind, start] of [
  ['a legacy program', legacyStdio],
  ['a modern program', modernStdio],
] as const)
  for (const [place, serve, prefix = ''] of PLACES)
    t.test(`ends when its clients have gone: ${kind}, ${place}`, async (t) => {
      for (const [who, timeouts, visit] of CLIENTS) {
        // A modern program may be everybody's: it stays as for stateless clients.
        const times = kind === 'a modern program' ? { ...timeouts, clientIdle: 200 } : timeouts
        const program = start(t)
        const url = await serve(t, program.server, times)
        await visit(url, `${prefix}echo`)
        await until(() => program.pids().length > 0 && ended(program).length === program.pids().length, who)
        t.ok(program.pids().length <= 2, who)
      }
    })

t.test('a program of clients that have gone ends although others of the same principal stay', async (t) => {
  const program = legacyStdio(t)
  const { url } = await startBridge(t, { ...program.server, ...TRANSLATED }, { timeouts: TIMES })
  const staying = await LegacyClient.open(url)
  await staying.call('echo', { x: 1 })
  const leaving = await LegacyClient.open(url, { capabilities: { elicitation: {} } })
  await leaving.call('echo', { x: 1 })
  const [theirs, other] = program.pids()
  await leaving.end()
  await until(() => ended(program).length > 0, 'the end of the program that nobody uses')
  t.same(ended(program), [other])
  t.match((await staying.call('echo', { x: 2 })).message, { result: { structuredContent: { x: 2 } } })
  t.same(program.pids(), [theirs, other])
})

t.test('the next equal client gets the program of one that has just gone', async (t) => {
  const program = legacyStdio(t)
  const { url } = await startBridge(t, { ...program.server, ...TRANSLATED })
  for (let visit = 0; visit < 3; visit++) {
    const client = await LegacyClient.open(url, { capabilities: { elicitation: {} } })
    t.match((await client.call('echo', { x: visit })).message, { result: { structuredContent: { x: visit } } })
    await client.end()
  }
  t.equal(program.pids().length, 1)
})
