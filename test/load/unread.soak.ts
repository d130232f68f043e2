/**
 * One caller asks for 40 answers of 15 MB and reads none of them, another one calls beside it: none of its calls fails, nor when the
 * first one has gone. The bridge has a heap of 512 MB, but for the one in an application. Prints how the other one fared; `UNREAD_RUNS`
 * says how often.
 */
import { setTimeout as wait } from 'node:timers/promises'
import { type FastifyRequest, fastify } from 'fastify'
import t, { type Test } from 'tap'
import { mcpBridge } from '../../src/app/embed/fastify.js'
import { inParallel, MEGA, modernRequest } from '../support/attack.js'
import { BULKY, type BulkyServer } from '../support/bulky.js'
import { askDeaf } from '../support/deaf.js'
import { LegacyClient } from '../support/legacy-client.js'
import { besideHealthy, startSmall } from '../support/small-heap.js'

const RUNS = Number(process.env['UNREAD_RUNS'] ?? 1)
const ASKED = 40
/** Milliseconds for which the answers stay unread. */
const UNREAD = 2_500
const GREEDY = { authorization: 'Bearer greedy-token-0123456789' }
const MODEST = { authorization: 'Bearer modest-token-0123456789' }
const auth = { tokens: { greedy: 'greedy-token-0123456789', modest: 'modest-token-0123456789' } }

type Neighbours = Parameters<typeof besideHealthy>[1]

const PLACES: readonly [name: string, start: (t: Test, server: BulkyServer) => Promise<Neighbours>, prefix?: string][] =
  [
    ['alone', (t, server) => startSmall(t, server, { auth })],
    [
      'in a group',
      async (t, server) => {
        const attacked = await startSmall(t, server, { auth, groups: { all: { servers: ['test'] } } })
        return { ...attacked, url: `${attacked.origin}/all/mcp` }
      },
      'test__',
    ],
    [
      'in an application',
      async (t, server) => {
        const app = fastify()
        // The users of the application are told apart by their header, as callers of the bridge are by their token.
        const principal = ({ headers }: FastifyRequest) => headers.authorization
        await app.register(mcpBridge, { prefix: '/mcp', mcpServers: { test: server }, principal })
        t.teardown(() => app.close())
        return { url: `${await app.listen({ host: '127.0.0.1', port: 0 })}/mcp`, alive: () => app.server.listening }
      },
    ],
  ]

/** Requests of who reads nothing: of a modern client, and in the session of a legacy one. */
const asked = { arguments: { bytes: 15 * MEGA } }
const CLIENTS: readonly [
  name: string,
  request: (url: string, name: string) => Promise<{ headers: object; body: string }>,
][] = [
  ['a modern client', async (_url, name) => modernRequest('tools/call', { ...asked, name })],
  [
    'a legacy client',
    async (url, name) => {
      const { headers } = await LegacyClient.open(url, { headers: GREEDY })
      const params = { ...asked, name }
      return { headers, body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }) }
    },
  ],
]

for (const [kind, start] of BULKY)
  for (const [place, serve, prefix = ''] of PLACES)
    for (const [client, requestOf] of CLIENTS)
      for (let run = 1; run <= RUNS; run++)
        t.test(`${client} that reads nothing costs no other a call: ${kind} ${place}, run ${run}`, async (t) => {
          const attacked = await serve(t, await start(t))
          const { headers, body } = await requestOf(attacked.url, `${prefix}bulk`)
          const beside = (attack: () => Promise<unknown>) =>
            besideHealthy(t, attacked, attack, MODEST.authorization, `${prefix}echo`)
          await beside(async () => {
            const ask = () => askDeaf(t, { url: attacked.url, headers: { ...headers, ...GREEDY }, body })
            const sockets = await inParallel(ASKED, ASKED, ask)
            await wait(UNREAD)
            for (const socket of sockets) socket.destroy()
            await wait(500)
          })
          await beside(() => wait(400))
        })
