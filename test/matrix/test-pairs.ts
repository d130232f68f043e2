/**
 * A client with a server: each scenario happens between them, and each server says for itself whether what reached it was of its era.
 * The tables are clients.ts, servers.ts and scenarios.ts.
 */
import type { Test } from 'tap'
import type { Part } from '../support/part.js'
import { pairsOf } from './pairs.js'
import { type Recorded, save } from './recording.js'
import { nameOf, runPair } from './run.js'
import { SCENARIOS } from './scenarios.js'
import { type Row, tableOf } from './table.js'

/** Tests a part of the pairs, and shows a table of them. They are recorded into the file, if there is one. */
export function testPairs(t: Test, part: Part, file?: string): void {
  const rows: Row[] = []
  const recordings: Recorded[] = []
  for (const [client, server] of pairsOf(part))
    t.test(`${nameOf(client)} client, ${nameOf(server)} server`, async (t) => {
      const { outcomes, recorded } = await runPair(t, { client, server })
      rows.push({ client: recorded.client, server: recorded.server, outcomes })
      recordings.push(recorded)
    })

  t.teardown(() => {
    const scenarios = SCENARIOS.map(({ name }) => name)
    for (const line of tableOf(scenarios, rows)) t.comment(line)
    if (file !== undefined) save(file, recordings)
  })
}
