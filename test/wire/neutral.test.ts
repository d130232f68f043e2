/**
 * What has nothing to do with the wire does not change it: each scenario of the matrix happens once with nothing
 * configured, and once with each option. What clients and servers see is the same, byte for byte. This holds for the pairs
 * whose messages take one way (`PAIRS`); NEUTRAL names others to look at.
 */
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { Ring } from '../../src/inspect/ring.js'
import { EventRecorder } from '../../src/recorder/recorder.js'
import { CLIENTS } from '../matrix/clients.js'
import type { Recorded } from '../matrix/recording.js'
import { type Configured, nameOf, runPair } from '../matrix/run.js'
import { SERVERS } from '../matrix/servers.js'
import { temporaryFolder } from '../support/folder.js'

const OPTIONS: Record<string, (t: Test) => Configured | Promise<Configured>> = {
  'the audit log': (t) => ({ settings: { audit: { file: join(temporaryFolder(t), 'audit.log') } } }),
  'a limit that is never reached': () => ({
    settings: { limits: { tools: [{ tools: '*', per: 'principal', max: 1_000_000, every: '1h' }] } },
  }),
  'no cache': () => ({ entry: { cache: 'off' } }),
  'the cache': () => ({ entry: { cache: 'hints' } }),
  'a recorder': () => ({ context: { recorder: new EventRecorder(new Ring({ payloads: 'all' }).record) } }),
}

/** Pairs for which it holds. */
const PAIRS: readonly string[] = ['modern HTTP client, modern HTTP server']

interface Difference {
  where: string
  without: string | undefined
  with: string | undefined
}

const only = process.env['NEUTRAL']
for (const client of CLIENTS) {
  for (const server of SERVERS) {
    const pair = `${nameOf(client)} client, ${nameOf(server)} server`
    if (only === undefined ? !PAIRS.includes(pair) : !pair.includes(only)) continue
    t.test(pair, async (t) => {
      const { recorded: plain } = await runPair(t, { client, server })
      for (const [option, configure] of Object.entries(OPTIONS))
        await t.test(option, async (t) => {
          const { recorded } = await runPair(t, { client, server }, await configure(t))
          t.same(differences(plain, recorded).map(shown), [], 'both wires are as without it')
        })
    })
  }
}

function differences(plain: Recorded, other: Recorded): Difference[] {
  return [
    ...between('to the server', plain.toServer, other.toServer),
    ...Object.entries(plain.toClients).flatMap(([scenario, clients]) =>
      clients.flatMap((streams, index) =>
        Object.entries(streams).flatMap(([stream, messages]) =>
          between(`${scenario}, on ${stream}`, messages, other.toClients[scenario]?.[index]?.[stream] ?? []),
        ),
      ),
    ),
  ]
}

/** Messages of one list that the other has not, paired in order. */
function between(where: string, plain: readonly string[], other: readonly string[]): Difference[] {
  const [missing, added] = [rest(plain, other), rest(other, plain)]
  return Array.from({ length: Math.max(missing.length, added.length) }, (_, index) => ({
    where,
    without: missing[index],
    with: added[index],
  }))
}

/** A difference from where two messages begin to differ. */
function shown({ where, without, with: other }: Difference): Difference {
  if (without === undefined || other === undefined) return { where, without: cut(without), with: cut(other) }
  const same = [...without].findIndex((letter, index) => letter !== other[index])
  const from = Math.max(0, (same < 0 ? without.length : same) - 40)
  return { where, without: cut(without, from), with: cut(other, from) }
}

const cut = (text: string | undefined, from = 0) => text?.slice(from, from + 160)

/** What is left of a list of messages without those of the other. */
function rest(messages: readonly string[], others: readonly string[]): string[] {
  const left = [...others]
  return messages.filter((message) => {
    const at = left.indexOf(message)
    if (at >= 0) left.splice(at, 1)
    return at < 0
  })
}
