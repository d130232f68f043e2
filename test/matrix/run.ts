/** Runs the scenarios between one client and one server of the matrix. */
import type { Test } from 'tap'
import type { BridgeContext } from '../../src/app/context.js'
import { startBridge } from '../support/bridge.js'
import { until } from '../support/eventually.js'
import { type Cell, foreignTo, REUSE, type Scenario } from './cell.js'
import type { Client } from './client.js'
import { type ClientKind, connect, type Reachable } from './clients.js'
import { byStream, type Recorded, received } from './recording.js'
import { SCENARIOS } from './scenarios.js'
import type { ServerKind, TestServer } from './servers.js'
import type { Outcome } from './table.js'

interface Between {
  pair: Cell['pair']
  server: TestServer
  bridge: Reachable
  toClients: Recorded['toClients']
}

export const nameOf = ({ era, transport }: ClientKind | ServerKind) => `${era} ${transport}`

/** How the bridge between a pair is configured, beside the server. */
export interface Configured {
  /** Options of the bridge. */
  settings?: object
  /** Options of the entry of the server. */
  entry?: object
  context?: Partial<BridgeContext>
  /** The path of the endpoint, if it is not the server's own. */
  path?: string
  /** Headers of all requests of the clients. */
  headers?: Record<string, string>
  /** Names of scenarios that do not happen, because the options are there to change them. */
  without?: readonly string[]
}

/** All scenarios of a pair, through one bridge. Gives how they ended, and what has passed. */
export async function runPair(
  t: Test,
  pair: Cell['pair'],
  { settings = {}, entry = {}, context = {}, path, headers = {}, without = [] }: Configured = {},
): Promise<{ outcomes: Outcome[]; recorded: Recorded }> {
  const server = await pair.server.start(t)
  // What a client leaves is given to the next one; in the last scenario nobody follows.
  const started = await startBridge(
    t,
    { ...server.entry, ...entry },
    { timeouts: { reuse: REUSE }, ...settings },
    context,
  )
  const url = path === undefined ? started.url : new URL(path, started.url).href
  const between: Between = { pair, server, bridge: { ...started, url, headers }, toClients: {} }
  const outcomes: Outcome[] = []
  for (const scenario of SCENARIOS.filter(({ name }) => !without.includes(name)))
    outcomes.push(await outcomeOf(t, scenario, between))
  await between.bridge.bridge.close()
  await until(() => server.open() === 0, 'nothing is left at the server')
  t.same(server.complaints(), [], 'what reached the server was of its era to the end')
  const names = { client: nameOf(pair.client), server: nameOf(pair.server) }
  return { outcomes, recorded: { ...names, toServer: received(server.reached()), toClients: between.toClients } }
}

async function outcomeOf(t: Test, scenario: Scenario, between: Between): Promise<Outcome> {
  const why = scenario.impossible?.(between.pair)
  if (why !== undefined) return { impossible: why }
  let outcome: Outcome = 'FAIL'
  await t.test(scenario.name, async (t) => {
    await happens(t, scenario, between)
    if (t.passing()) outcome = 'ok'
  })
  return outcome
}

/** One cell: a client of its own for the scenario, and at the end what either side has to complain of. */
async function happens(t: Test, { name, plan, run }: Scenario, between: Between): Promise<void> {
  const { pair, server, bridge } = between
  const clients: Client[] = []
  const open = async () => {
    const client = connect(pair.client, bridge, plan?.(pair))
    clients.push(client)
    return { client, opened: await client.open() }
  }
  const from = { reached: server.reached().length, complaints: server.complaints().length }
  const reached = (method?: string) =>
    server
      .reached()
      .slice(from.reached)
      .filter(({ message }) => method === undefined || message['method'] === method)
  try {
    const { client, opened } = await open()
    await run(t, { pair, server, client, opened, reached, connect: async () => (await open()).client })
  } finally {
    await Promise.all(clients.map((client) => client.close()))
  }
  between.toClients[name] = clients.map((client) => byStream(client.arrived))
  for (const client of clients) {
    t.same(client.complaints, [], 'the client has nothing to complain of')
    t.same(foreignTo(client, client.arrived), [], 'what reached the client was of its era')
  }
  t.same(server.complaints().slice(from.complaints), [], 'what reached the server was of its era')
}
