/**
 * Every client with every server: each scenario happens between all of them, and each server says for itself whether what
 * reached it was of its era. The tables are in test/matrix: clients, servers, scenarios.
 */
import t, { type Test } from 'tap'
import { type Cell, foreignTo, type Scenario } from './matrix/cell.js'
import type { Client } from './matrix/client.js'
import { CLIENTS, type ClientKind, connect } from './matrix/clients.js'
import { byStream, type Recorded, received, save } from './matrix/recording.js'
import { SCENARIOS } from './matrix/scenarios.js'
import { SERVERS, type ServerKind, type TestServer } from './matrix/servers.js'
import { type Outcome, type Row, tableOf } from './matrix/table.js'
import { type Started, startBridge } from './support/bridge.js'
import { until } from './support/eventually.js'

interface Between {
  pair: Cell['pair']
  server: TestServer
  bridge: Started
  toClients: Recorded['toClients']
}

const nameOf = ({ era, transport }: ClientKind | ServerKind) => `${era} ${transport}`
const rows: Row[] = []
const recordings: Recorded[] = []
const file = process.env['MATRIX_RECORDING']

for (const client of CLIENTS) {
  for (const kind of SERVERS) {
    t.test(`${nameOf(client)} client, ${nameOf(kind)} server`, async (t) => {
      const pair = { client, server: kind }
      const server = await kind.start(t)
      const between: Between = { pair, server, bridge: await startBridge(t, server.entry), toClients: {} }
      const outcomes: Outcome[] = []
      for (const scenario of SCENARIOS) outcomes.push(await outcomeOf(t, scenario, between))
      const names = { client: nameOf(client), server: nameOf(kind) }
      rows.push({ ...names, outcomes })
      await between.bridge.bridge.close()
      await until(() => server.open() === 0, 'nothing is left at the server')
      recordings.push({ ...names, toServer: received(server.reached()), toClients: between.toClients })
      t.same(server.complaints(), [], 'what reached the server was of its era to the end')
    })
  }
}

t.teardown(() => {
  const scenarios = SCENARIOS.map(({ name }) => name)
  for (const line of tableOf(scenarios, rows)) t.comment(line)
  if (file !== undefined) save(file, recordings)
})

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
