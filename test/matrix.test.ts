/**
 * Every client with every server: each scenario happens between all of them, and each server says for itself whether what
 * reached it was of its era. The tables are in test/matrix: clients, servers, scenarios.
 */
import t from 'tap'
import { CLIENTS } from './matrix/clients.js'
import { type Recorded, save } from './matrix/recording.js'
import { nameOf, runPair } from './matrix/run.js'
import { SCENARIOS } from './matrix/scenarios.js'
import { SERVERS } from './matrix/servers.js'
import { type Row, tableOf } from './matrix/table.js'

const rows: Row[] = []
const recordings: Recorded[] = []
const file = process.env['MATRIX_RECORDING']

for (const client of CLIENTS) {
  for (const server of SERVERS) {
    t.test(`${nameOf(client)} client, ${nameOf(server)} server`, async (t) => {
      const { outcomes, recorded } = await runPair(t, { client, server })
      rows.push({ client: recorded.client, server: recorded.server, outcomes })
      recordings.push(recorded)
    })
  }
}

t.teardown(() => {
  const scenarios = SCENARIOS.map(({ name }) => name)
  for (const line of tableOf(scenarios, rows)) t.comment(line)
  if (file !== undefined) save(file, recordings)
})
